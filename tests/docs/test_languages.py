"""Examples for kernels of other tools: each is short, on its page, and runs where its tool is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernelwatch.config.project_root import ROOT

PAGE = ROOT / "docs" / "count-other-languages.md"
EXAMPLES = sorted((ROOT / "docs" / "languages").glob("*.py"))
#: Most lines of an example, besides imports.
LINES = 8


def find_missing(example: Path) -> list[str]:
    """Return the packages that an example imports and that are not installed."""
    names = re.findall(r"^(?:import|from) (\w+)", example.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [name for name in names if find_spec(name) is None]


def test_page_names_all() -> None:
    """The page links each example, and nothing else there."""
    links = re.findall(r"\(languages/(\w+\.py)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(links) == [example.name for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_length(example: Path) -> None:
    """It is as short as the page says."""
    lines = example.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith(("import ", "from "))]) <= LINES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example(example: Path, tmp_path: Path) -> None:
    """It counts 32 sectors, those of 256 floats, both ways."""
    if missing := find_missing(example):
        pytest.skip(f"{', '.join(missing)} not installed: before a release, in an environment of its own")
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sectors = re.findall(r"^  (?:load|store) +\d+ +(\d+)", done.stdout.partition("lines")[0], flags=re.MULTILINE)
    assert sectors == ["32", "32"]
