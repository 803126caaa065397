"""Scripts of runners, and what is for the machine with the GPU: its hook, its timer, the recipes in docs/runners.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwatch.store import git

ROOT = Path(__file__).parents[3]
HOST = ROOT / "kernelwatch/src/kernelwatch/github/host"
UNITS = ("coalescing-watch.service", "coalescing-watch.timer")

ALLOWED = "owner/project/.github/workflows/gpu.yml@refs/heads/main"


#: What is asked -> whether it is taken, where there is a list of what is allowed.
ASKED: dict[str | None, bool] = {
    ALLOWED: True,
    ALLOWED.replace("gpu", "history"): True,
    **dict.fromkeys((f"x{ALLOWED}", ".*", "", None), False),
    **{
        ALLOWED.replace(*each): False
        for each in (
            ("heads/main", "pull/1/merge"),
            ("heads/main", "heads/main2"),
            ("owner", "someone"),
            ("gpu.yml", "gpuXyml"),
            ("gpu", "tests"),
        )
    },
}


@pytest.mark.parametrize("has_list", [True, False])
@pytest.mark.parametrize("asked", ASKED)
def test_hook(asked: str | None, has_list: bool, tmp_path: Path) -> None:
    """Jobs of the named workflows as they are on main, and no others: a pull request brings its own workflows."""
    hook = tmp_path / "job_started.sh"
    shutil.copy(HOST / hook.name, hook)
    if has_list:
        (tmp_path / "workflows").write_text(f"{ALLOWED}\n{ALLOWED.replace('gpu', 'history')}\n", encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], **({} if asked is None else {"GITHUB_WORKFLOW_REF": asked})}
    done = subprocess.run([str(hook)], env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) is (has_list and ASKED[asked])
    assert ("takes no jobs of" in done.stderr) is (done.returncode == 1)


def test_recipes_call_what_exists() -> None:
    """Every make target and every file of the project that the recipes name is there."""
    text = (ROOT / "docs" / "runners.md").read_text(encoding="utf-8") + "".join(
        (HOST / name).read_text(encoding="utf-8") for name in UNITS
    )
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = {word for words in re.findall(r"\bmake ((?:-\S+ |[a-z]+\b ?)+)", text) for word in words.split()}
    assert {"history", "site", "measure"} <= {word for word in called if word[0] != "-"} <= targets
    named = set(re.findall(r"\b(?:runner|\.github|docs|requirements)/[\w./-]+\w", text))
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_push_results(tmp_path: Path) -> None:
    """New results are one commit on the branch; without any there is none."""
    remote, checkout = tmp_path / "remote.git", tmp_path / "checkout"
    git.text(tmp_path, "init", "--quiet", "--bare", "--initial-branch=results", str(remote))
    git.text(tmp_path, "clone", "--quiet", str(remote), str(checkout))
    (checkout / "results").mkdir()
    for number, (file, expected) in enumerate({"results/a": 1, "notes": 1, "results/b": 2}.items()):
        (checkout / file).write_text(str(number), encoding="utf-8")
        said = subprocess.check_output([HOST.parent / "push_results.sh", checkout], text=True)
        assert (said == "nothing new\n") is (file == "notes")
        assert git.text(remote, "rev-list", "--count", "results") == str(expected)
    assert git.text(remote, "ls-tree", "-r", "--name-only", "results").split() == ["results/a", "results/b"]
