"""What jobs whose token may write install: every requirement is locked at one version, each file by its hash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.kernelwatch.github.test_workflows import ROOT, WORKFLOWS, WRITES, jobs

FOLDER = ROOT / "requirements"
LOCK = (FOLDER / "locked.txt").read_text(encoding="utf-8")

#: The runner of all jobs that install it, and its Python.
RUNNER, PYTHON = "ubuntu-24.04", "3.12"

_ENTRY = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?P<hashes>(?: \\\n {4}--hash=sha256:[0-9a-f]{64})+)\n", re.M
)
LOCKED = {entry["name"]: entry["version"] for entry in _ENTRY.finditer(LOCK)}


def asked(path: Path) -> Iterator[Requirement]:
    """The requirements of a file, and of those that it takes in."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            yield from asked(path.parent / text[3:])
        elif text:
            yield Requirement(text)


def missing(requirement: Requirement) -> bool:
    """Whether the lock has no version for that Python that a requirement allows."""
    here = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "extra": ""}
    if requirement.marker and not requirement.marker.evaluate(here):
        return False
    version = LOCKED.get(canonicalize_name(requirement.name))
    return version is None or version not in requirement.specifier


def test_only_hashed_lines() -> None:
    """Nothing else is there: no line without a hash, no address, no option; `make lock` names that Python."""
    assert LOCKED
    assert re.fullmatch(r"(?:\s*#.*\n)*", _ENTRY.sub("", LOCK))
    assert f"--python-version {PYTHON} " in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("requirement", list(asked(FOLDER / "locked.in")), ids=str)
def test_what_is_asked_for_is_locked(requirement: Requirement) -> None:
    """A requirement that was added or raised needs `make lock`."""
    assert not missing(requirement), f"{requirement} is not in requirements/locked.txt; run: make lock"


@pytest.mark.parametrize("name", sorted(LOCKED))
def test_what_that_needs_is_locked(name: str) -> None:
    """As far as the packages installed here are those of the lock."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        pytest.skip("not installed here")
    if found.version == LOCKED[name]:
        needed = map(Requirement, found.requires or ())
        assert not [str(each) for each in needed if missing(each)]


def test_jobs_with_tokens_that_write_install_the_lock() -> None:
    """And nothing else from PyPI, on the runner that it is made for; the recipe asks for hashes and for wheels."""
    installing = set()
    for workflow in WORKFLOWS:
        for name, job in jobs(workflow):
            if (workflow, name) in WRITES:
                commands = [step["run"] for step in job.get("steps", ()) if step.get("run", "").startswith("make")]
                assert set(commands) <= {"make locked"}, (workflow, name)
                assert not commands or job["runs-on"] == RUNNER
                installing |= {(workflow, name)} if commands else set()
    assert installing == {("comment.yml", "comment"), ("history.yml", "keep"), ("history.yml", "issue")}
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlocked:\n")[2].partition("\n\n")[0]
    for line in (each for each in recipe.splitlines() if "$(PIP)" in each):
        assert "--require-hashes --only-binary :all:" in line or "--no-index --no-deps --no-build-isolation" in line
