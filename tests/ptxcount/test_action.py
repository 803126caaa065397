"""The pull request check of action.yml: annotations, summary, exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxcount.gate.count_cache import cache_folder
from tests.ptxcount.gate_repository import LAUNCH, Repository

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed; asv brings it along")
ACTION = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text(encoding="utf-8"))
(CHECK,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == "Check")
FILE = "cuda/scale.cu"
TITLE = "### Memory transactions: "


class Checkout(Repository):
    """A repository with kernels in ``cuda``, whose stride is in a header that nvcc's flags find."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.top, self.temp = folder / "checkout", folder / "temp"
        self.top.mkdir()
        super().__init__(self.top / "cuda", capsys)
        self.write_launches(f'{LAUNCH}flags = "-I include"\n')
        tool = self.temp / "ptxcount" / "bin" / "ptxcount"
        for directory in (tool.parent, self.folder / "include"):
            directory.mkdir(parents=True)
        tool.write_text(f'#!/bin/bash\nexec "{sys.executable}" -m ptxcount "$@"\n')
        tool.chmod(0o755)
        self.git("init", "-q", "..")

    def stride(self, stride: int, *edits: tuple[str, str]) -> None:
        """Write the kernel with a stride between lanes."""
        (self.folder / "include" / "stride.h").write_text(f"#define STRIDE {stride}\n")
        self.write_kernel(0, *edits)
        text = (self.folder / "scale.cu").read_text().replace("#define STRIDE 0", '#include "stride.h"')
        (self.folder / "scale.cu").write_text(text)

    def commit(self) -> str:
        """Commit all changes, pinned or not; return the commit."""
        self.git("add", ".")
        self.git("commit", "-qm", "a change")
        return self.git("rev-parse", "HEAD")

    def action(self, base: str, arguments: str = "") -> tuple[int, list[str], str]:
        """Run the step for HEAD against a base; return its exit code, log, and lines of the job's summary."""
        self.git("worktree", "add", "-q", str(self.top / ".ptxcount-base"), base)
        summary = self.temp / "summary"
        summary.write_text("")
        inputs = {"FOLDER": "cuda", "ARGUMENTS": arguments}
        assert inputs.keys() == CHECK["env"].keys()
        environment = {**os.environ, **inputs, "RUNNER_TEMP": str(self.temp), "GITHUB_STEP_SUMMARY": str(summary)}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]]
        done = subprocess.run(command, cwd=self.top, capture_output=True, text=True, env=environment)
        assert done.stderr == ("" if done.returncode else "1 launch passed\n")
        assert not (self.top / ".ptxcount-base").exists()
        self.git("worktree", "prune")
        return done.returncode, done.stdout.splitlines(), summary.read_text()


def _cut_messages(log: list[str]) -> list[str]:
    return [line.partition("PC")[0] for line in log]


def test_rise_fails_unless_waived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = Checkout(tmp_path, capsys)
    checkout.stride(2)
    assert checkout.run("pin")[1] == ["ptxcount.lock: new: scale<float>"]
    first = checkout.commit()

    checkout.stride(2, ("namespace", "// moved\n\nnamespace"))  # the counts of the launch stay
    good = checkout.commit()
    code, log, summary = checkout.action(first)
    assert (code, log, summary) == (0, [], f"{TITLE}same\n\n    1 of 1 launches kept their counts.\n")

    checkout.stride(8)
    bad = checkout.commit()
    code, log, summary = checkout.action(good, "--advise")
    annotations = [("error", "rise"), ("warning", "strided-access")]  # at the access; only stride.h changed
    assert code == 1
    assert _cut_messages(log) == [f"::{how} file={FILE},line=6,title={t}::" for how, t in annotations]
    assert f"{TITLE}1 line rose, 0 fell" in summary

    checkout.stride(8, ("STRIDE];", "STRIDE];  // ptxcount: ignore[rise] read once"))
    checkout.commit()
    code, log, summary = checkout.action(bad, "--advise")  # the lock file of `bad` has the counts of stride 2
    assert (code, _cut_messages(log)) == (0, [f"::warning file={FILE},line=6,title=strided-access::"])
    assert f"{TITLE}1 line rose, 0 fell" in summary


def test_committed_counts_are_not_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The good kernel's counts are committed under the name of the cache file of the bad kernel."""
    checkout = Checkout(tmp_path, capsys)
    checkout.stride(2)
    checkout.run("pin")
    first = checkout.commit()
    (good,) = cache_folder().glob("*.json")
    assert not cache_folder().is_relative_to(checkout.top)
    counts = good.read_bytes()
    checkout.stride(8)
    checkout.run("check")
    (bad,) = {*cache_folder().glob("*.json")} - {good}
    for folder in (".ptxcount_cache", ".cache/ptxcount/counts", "counts"):
        forged = checkout.folder / folder / bad.name
        forged.parent.mkdir(parents=True)
        forged.write_bytes(counts)
        checkout.git("add", "--force", str(forged))
    bad.unlink()
    code, log = checkout.run("check")
    assert (code, [line[:37] for line in log]) == (1, ["scale.cu:6: error: PC003 global load "])
    checkout.commit()
    code, log, summary = checkout.action(first)
    assert (code, _cut_messages(log)) == (1, [f"::error file={FILE},line=6,title=rise::"])
    assert f"{TITLE}1 line rose, 0 fell" in summary
