"""Messages of the gate: levels of findings, launches of a warning, warnings of ``pin``, kernels of ``init``."""

from __future__ import annotations

import json

import pytest

from ptxcount.command_line import main
from tests.ptxcount.gate_repository import LAUNCH, OTHER, Repository, repository

__all__ = ["repository"]

RACE = ("if (i < n) out[i] = ", "__shared__ int s; s = i; if (i < n) out[i] = s + ")
THIRD = LAUNCH.replace("= 4", "= 3")


def test_warning_does_not_fail_and_names_launches(repository: Repository) -> None:
    repository.kernel(2, RACE)
    repository.launch(LAUNCH + OTHER + THIRD)
    repository.run("pin", "--accept")
    code, (line,) = repository.run("check")
    assert (code, line[:28]) == (0, "scale.cu:6: warning: PC006 r")
    assert line.endswith(" [launch scale<float> (launch 1), and 2 more launches]")
    report = json.loads("\n".join(repository.run("check", "--format", "json")[1]))
    assert report["version"] == 3  # the first with more_launches
    (finding,) = report["findings"]
    assert finding["more_launches"] == ["scale<float> (launch 2)", "scale<float> (launch 3)"]
    repository.kernel(8, RACE)
    code, lines = repository.run("check")
    assert (code, {line.split()[1] for line in lines}) == (1, {"error:", "warning:"})
    repository.kernel(1, RACE)
    assert {line.split()[1] for line in repository.run("check")[1]} == {"note:", "warning:"}


def test_pin_prints_warnings(repository: Repository) -> None:
    repository.kernel(2, RACE)
    code, lines = repository.run("pin", "--accept")
    assert (code, repository.run("check")) == (0, (0, lines[-1:]))
    assert lines[-1][:26] == "scale.cu:6: warning: PC006"
    repository.kernel(2, RACE, ("STRIDE];", "STRIDE];  // ptxcount: ignore[wrong-kernel] of use"))
    assert repository.run("pin") == (0, [])


def test_init_leaves_out_known_kernels(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.folder / "sum.cu").write_text("__global__ void sum(float* out) { out[threadIdx.x] = 1; }\n")
    repository.launch(LAUNCH.replace("<float>", "< float >"))
    code, lines = repository.run("init", "./scale.cu", "sum.cu")
    assert (code, [line for line in lines if "file" in line]) == (0, ['file = "sum.cu"'])
    repository.launch("# no launches yet\n")
    code, lines = repository.run("init", "sum.cu")
    assert (code, lines[1]) == (0, 'file = "sum.cu"')
    repository.launch('[[launch]]\nfile = "sum.cu"\ngrid = 1\nblock = 1\n')
    assert main(["init", str(repository.folder / "sum.cu")]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.chdir(repository.folder)
    assert main(["init", "sum.cu", "scale.cu"]) == 0
    output = capsys.readouterr()
    assert ('"scale.cu"' in output.out, '"sum.cu"' in output.out) == (True, False)
    assert output.err == "left out 1 kernel that ptxcount.toml already has\n"
