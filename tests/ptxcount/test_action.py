"""action.yml's check on pull requests: annotations, the job's summary, the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ptxcount.test_gate import KERNEL, LAUNCH

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed; asv brings it along")
ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(CHECK,) = (step for step in ACTION["runs"]["steps"] if step.get("name") == "Check")
FILE = "cuda/scale.cu"
TITLE = "### Memory transactions: "


class Repository:
    """Kernels in a folder of a repository, whose stride is in a header that nvcc's flags lead to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temp = folder / "repository", folder / "temp"
        for each in (self.folder / "cuda" / "include", self.temp / "ptxcount" / "bin"):
            each.mkdir(parents=True)
        python = f'#!/bin/bash\nexec "{sys.executable}" '
        tools = {"python": f'{python}"$@"\n', "ptxcount": f'{python}-m ptxcount "$@"\n'}
        for name, text in tools.items():
            tool = self.temp / "ptxcount" / "bin" / name
            tool.write_text(text)
            tool.chmod(0o755)
        self.write("ptxcount.toml", f'{LAUNCH}flags = "-I include"\n')
        self.write("scale.cu", f'#include "stride.h"\n{KERNEL}')
        self._git("init", "-q")

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder."""
        (self.folder / "cuda" / name).write_text(text)

    def stride(self, stride: int) -> None:
        """The elements between two lanes."""
        self.write("include/stride.h", f"#define STRIDE {stride}\n")

    def _git(self, *words: str) -> str:
        who = [word for name in ("name", "email") for word in ("-c", f"user.{name}=somebody")]
        done = subprocess.run(["git", *who, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def add(self, folder: Path) -> None:
        """Commit what git ignores, too."""
        self._git("add", "--force", str(folder))

    def commit(self) -> str:
        """Commit all, pinned or not; the commit."""
        self._git("add", ".")
        self._git("commit", "-qm", "a change")
        return self._git("rev-parse", "HEAD")

    def ptxcount(self, *words: str) -> str:
        """A command at the top of the repository; what it says."""
        command = [str(self.temp / "ptxcount" / "bin" / "ptxcount"), *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True).stdout

    def action(self, base: str, arguments: str = "") -> tuple[int, list[str], str]:
        """The exit code of the step for the head, its log, and what it adds to the job's summary."""
        self._git("worktree", "add", "-q", ".ptxcount-base", base)
        summary = self.temp / "summary"
        summary.write_text("")
        tools = f"{self.temp / 'ptxcount' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        more = {"FOLDER": "cuda", "ARGUMENTS": arguments, "LINK": "https://example.org/blob/1234"}
        assert more.keys() == CHECK["env"].keys()
        github = {"RUNNER_TEMP": self.temp, "GITHUB_STEP_SUMMARY": summary}
        environment = {**os.environ, "PATH": tools, **more, **{name: str(each) for name, each in github.items()}}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env=environment)
        assert not done.stderr
        assert not (self.folder / ".ptxcount-base").exists()
        self._git("worktree", "prune")
        return done.returncode, done.stdout.splitlines(), summary.read_text()


def test_commits(tmp_path: Path) -> None:
    """Good, bad, waived; what the others of `check` are is told in `test_gate`."""
    repository = Repository(tmp_path)
    repository.stride(2)
    assert repository.ptxcount("pin", "cuda") == "ptxcount.lock: new: scale<float>\n"
    first = repository.commit()

    repository.write("scale.cu", f'// moved\n\n#include "stride.h"\n{KERNEL}')
    good = repository.commit()
    code, log, summary = repository.action(first)
    assert (code, log) == (0, [])
    assert summary.startswith(f"<!-- coalescing-watch: ptxcount -->\n{TITLE}same\n\n1 of 1 launches count the same.")

    repository.stride(8)
    bad = repository.commit()
    code, log, summary = repository.action(good, "--advise")
    assert code == 1
    said = [("error", "rise"), ("warning", "strided-access")]  # the stride is in another file
    assert [line.partition("PC")[0] for line in log] == [f"::{how} file={FILE},line=8,title={t}::" for how, t in said]
    assert f"{TITLE}1 rose, 0 fell" in summary
    assert f"](https://example.org/blob/1234/{FILE}#L8)" in summary

    waiver = "STRIDE];  // ptxcount: ignore[rise] read once"
    repository.write("scale.cu", f'#include "stride.h"\n{KERNEL.replace("STRIDE];", waiver)}')
    repository.commit()
    code, log, summary = repository.action(bad, "--advise")
    assert (code, len(log)) == (0, 1)
    assert log[0].startswith(f"::warning file={FILE},line=6,title=strided-access::PC101 ")
    assert f"{TITLE}same" in summary


@pytest.mark.parametrize("by", ["the head", "base and head", "a link"])
def test_counts_that_are_committed(by: str, tmp_path: Path) -> None:
    """They count for nothing: a cache that says that nothing rose is not read, of neither side."""
    repository = Repository(tmp_path)
    cache = repository.folder / "cuda" / ".ptxcount_cache"
    repository.stride(2)
    repository.ptxcount("pin", "cuda")
    if by == "base and head":
        repository.add(cache)
    first = repository.commit()
    (held,) = cache.glob("*.json")
    good = json.loads(held.read_text())["counts"]
    repository.stride(8)
    repository.ptxcount("check", "cuda")
    held.write_text(json.dumps({**json.loads(held.read_text()), "counts": good}))
    assert repository.ptxcount("check", "cuda") == ""
    if by == "a link":
        cache = cache.rename(repository.folder / "held")
        (repository.folder / "cuda" / ".ptxcount_cache").symlink_to("../held")
    repository.add(cache)
    repository.commit()
    code, log, summary = repository.action(first)
    assert (code, [line.partition("PC")[0] for line in log]) == (1, [f"::error file={FILE},line=6,title=rise::"])
    assert f"{TITLE}1 rose, 0 fell" in summary
