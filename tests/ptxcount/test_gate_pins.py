"""``ptxcount pin``, ``init``, warnings, and the cache of counts."""

import json
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxcount.command_line import main
from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine import kernel_counts
from tests.ptxcount.gate_repository import FELL, LAUNCH, OTHER, ROSE, Change, Repository

#: Change, options of pin, exit code, part of the output, and True if the lock file changes.
PINS: list[tuple[Change, list[str], int, str, bool]] = [
    (lambda repo: repo.kernel(8), [], 1, ROSE, False),
    (lambda repo: repo.kernel(8), ["--accept"], 0, ROSE.replace("error", "note"), True),
    (lambda repo: repo.kernel(1), [], 0, FELL, True),
    (lambda repo: repo.launch(LAUNCH + OTHER), [], 0, "new: scale<float> (launch 2)", True),
    (lambda repo: repo.launch(OTHER), [], 0, "gone: scale.cu: phys::scale<float> <<<(4, ", True),
    (lambda repo: repo.lock('"nvcc": "13.0.88"', '"nvcc": "12.4.99"'), [], 0, "nvcc: 12.4.99 before, 13.0", True),
    (lambda repo: repo.lock("{", ""), [], 0, "run ptxcount pin to replace the file", True),
    (lambda repo: repo.launch(LAUNCH.replace("8192", "100")), [], 1, "scale.cu:6: error: PC006 ", False),
    (lambda repo: None, [], 0, "", False),
]


@pytest.mark.parametrize(("change", "words", "code", "message", "written"), PINS)
def test_pin_needs_consent_to_higher_counts(
    change: Change, words: list[str], code: int, message: str, written: bool, repository: Repository
) -> None:
    change(repository)
    lock = repository.folder / "ptxcount.lock"
    old_text = lock.read_text()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if written:
        repository.run("check")  # compiles, which needs larger files
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
        try:
            full = repository.run("pin", *words)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert full[0] == 2
        assert full[1][-1] == "ptxcount.toml:1: error: PC009 OSError: [Errno 27] File too large"
        assert (lock.read_text(), [*repository.folder.glob("*.unfinished")]) == (old_text, [])
    exit_code, lines = repository.run("pin", *words)
    assert (exit_code, message in "\n".join(lines), bool(lines)) == (code, True, bool(message)), lines
    assert (lines[-1:] == ["ptxcount.lock was not written: 1 of 1 launches failed"]) is ("PC006" in message)
    assert (lock.read_text() != old_text) == written
    assert code or repository.run("check") == (0, [])


def test_failing_launch_keeps_its_counts(repository: Repository) -> None:
    def read_launches() -> Any:
        return json.loads((repository.folder / "ptxcount.lock").read_text())["launches"]

    named = LAUNCH.replace("]]\n", ']]\nname = "first"\n')
    repository.launch(named + OTHER)
    assert repository.run("pin")[0] == 0
    old_launches = read_launches()
    repository.launch(named.replace("8192", "100") + OTHER)  # the first launch now reads out of bounds
    repository.kernel(1)  # another stride: the other launch has new counts
    code, lines = repository.run("pin")
    assert (code, lines[0][:25]) == (2, "scale.cu:6: error: PC006 ")
    assert lines[-1] == "ptxcount.lock was written without new counts of failed launches: 1 of 2 launches failed"
    launches = read_launches()
    assert {key for key in launches if launches[key] == old_launches[key]} == {"first"}
    assert launches.keys() == old_launches.keys()


def test_pin_writes_counts_above_a_limit(repository: Repository) -> None:
    repository.launch(f"{LAUNCH}limits = {{ load_sectors_per_request = 7 }}\n")
    repository.kernel(2, ("STRIDE];", "STRIDE];  // ptxcount: requests <= 31"))
    code, (limit, line, end) = repository.run("pin")
    begins = ("scale.cu:6: error: PC001 load_sectors_per_re", "scale.cu:6: error: PC002 r")
    assert (code, limit[:44], line[:26]) == (0, *begins)
    assert end == "ptxcount.lock was written, but ptxcount check will fail: 2 counts above a limit"
    assert repository.run("check") == (1, [limit, line])


def test_launches_of_init_can_be_pinned(repository: Repository) -> None:
    (repository.folder / "include").mkdir()
    (repository.folder / "include" / "sum.h").write_text("#define SUM +=\n")
    source = '#include "sum.h"\n__global__ void sum(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] SUM 1; }\n'
    (repository.folder / "sum.cu").write_text(source)
    repository.launch("")
    code, lines = repository.run("init", "scale.cu", "sum.cu", "-I", "include", "--flags", "-DMORE")
    assert code == 0
    repository.launch("\n".join(lines).replace("int32:65528", "int32:1024"))
    assert repository.run("pin")[1] == [
        *(f"ptxcount.lock: new: {name}" for name in ("phys::scale<float>", "sum")),
        "ptxcount.lock: gone: scale.cu: phys::scale<float> <<<(4, 1, 1), (256, 1, 1)>>> (out=float32[1024], i…",
    ]
    launches = json.loads((repository.folder / "ptxcount.lock").read_text())["launches"]
    assert [key[:55] for key in launches] == [
        "scale.cu: phys::scale<float> <<<(256, 1, 1), (256, 1, 1",
        "sum.cu: sum <<<(256, 1, 1), (256, 1, 1)>>> (out=float32",
    ]


def test_check_counts_again_only_after_a_change(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxcount.gate import compute, count_cache

    counted: list[object] = []
    count = kernel_counts.count_compiled

    def counting_count(*args: Any, **options: Any) -> LaunchCounters:
        counted.append(args)
        return count(*args, **options)

    monkeypatch.setattr(compute, "count_compiled", counting_count)

    def changes(change: Callable[[], object]) -> bool:
        counted.clear()
        change()
        repository.run("check")
        return bool(counted)

    first, stored = repository.folder / "first" / "more.h", repository.folder / "in.npy"
    first.parent.mkdir()
    include = "#if __has_include(<more.h>)\n#include <more.h>\n#else\n#define MORE 0\n#endif\nnamespace"
    flags = 'flags = "-Ifirst -I ."\n'  # these flags bypass the shared compilations of conftest
    assert not changes(lambda: None)
    assert changes(lambda: repository.launch(LAUNCH + flags))
    assert changes(lambda: repository.kernel(2, ("namespace", include), ("int i =", "int i = MORE +")))
    assert not changes(lambda: None)
    assert changes(lambda: (repository.folder / "more.h").write_text("#define MORE 1\n"))
    assert changes(lambda: first.write_text("#define MORE 2\n"))  # first on the path
    assert not changes(lambda: first.write_text("#define MORE 2  // it is the same\n"))
    variable = "__device__ float held[8192];\nnamespace"
    assert changes(lambda: repository.kernel(2, ("namespace phys", variable), ("2 *", "held[0] *")))
    assert not changes(lambda: None)  # nvcc names anonymous namespaces differently each time
    assert changes(lambda: repository.launch(LAUNCH.replace("random(1)", "random(2)")))
    assert not changes(lambda: repository.launch(LAUNCH.replace("random(1)", "random(2)") + "limits = {}\n"))
    assert changes(lambda: monkeypatch.setattr(count_cache, "hash_own_code", lambda: "another"))
    assert changes(lambda: monkeypatch.setattr(count_cache, "nvcc_release", lambda: "another"))
    assert changes(lambda: monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DOTHER"))
    np.save(stored, np.ones(8192, np.float32))
    assert changes(lambda: repository.launch(LAUNCH.replace("float32[8192]=random(1)", "@in.npy")))
    assert changes(lambda: np.save(stored, np.zeros(8192, np.float32)))
    assert not changes(lambda: None)
    assert changes(lambda: repository.launch(LAUNCH + 'variables = ["held=@in.npy"]\n'))
    assert changes(lambda: np.save(stored, np.ones(8192, np.float32)))
    assert changes(lambda: [file.write_text("{") for file in count_cache.cache_folder().glob("*.json")])


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
