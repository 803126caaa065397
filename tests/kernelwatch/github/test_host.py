"""What is for the machine with the GPU: the hook that refuses jobs, the timer, and the recipes in docs/runners.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HOST = ROOT / "kernelwatch/src/kernelwatch/github/host"
UNITS = ("coalescing-watch.service", "coalescing-watch.timer")

ALLOWED = "owner/project/.github/workflows/gpu.yml@refs/heads/main"


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (ALLOWED, True),
        ("owner/project/.github/workflows/history.yml@refs/heads/main", True),
        (ALLOWED.replace("heads/main", "pull/1/merge"), False),
        (ALLOWED.replace("heads/main", "heads/main2"), False),
        (ALLOWED.replace("owner", "someone"), False),
        (ALLOWED.replace("gpu.yml", "gpuXyml"), False),
        (ALLOWED.replace("gpu", "tests"), False),
        (f"x{ALLOWED}", False),
        (".*", False),
        ("", False),
        (None, False),
    ],
)
def test_hook(asked: str | None, taken: bool, tmp_path: Path) -> None:
    """Jobs of the named workflows as they are on main, and no others: a pull request brings its own workflows."""
    hook = tmp_path / "job_started.sh"
    shutil.copy(HOST / hook.name, hook)
    (tmp_path / "workflows").write_text(f"{ALLOWED}\n{ALLOWED.replace('gpu', 'history')}\n", encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], **({} if asked is None else {"GITHUB_WORKFLOW_REF": asked})}
    done = subprocess.run([str(hook)], env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) is taken
    assert ("takes no jobs of" in done.stderr) is not taken


def test_hook_without_its_list_takes_nothing(tmp_path: Path) -> None:
    """What is not set up refuses."""
    shutil.copy(HOST / "job_started.sh", tmp_path)
    done = subprocess.run([str(tmp_path / "job_started.sh")], env={**os.environ, "GITHUB_WORKFLOW_REF": ALLOWED})
    assert done.returncode == 1


def test_units_are_what_systemd_expects(tmp_path: Path) -> None:
    """Systemd's own check where it is; else the sections that it needs. The paths of the recipe exist only for it."""
    for name in UNITS:
        parser = ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(HOST / name, encoding="utf-8")
        assert {"Unit", name.rpartition(".")[2].capitalize()} <= set(parser.sections())
    if shutil.which("systemd-analyze") is None:
        return
    for name in UNITS:
        text = (HOST / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *(str(tmp_path / name) for name in UNITS)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


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
