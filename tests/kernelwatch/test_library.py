"""The library is independent of suites: imports, names, and settings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import kernelwatch
from gpu_kernels import KERNELS, MIXED
from kernelwatch.config import project_root
from kernelwatch.config.project_root import ROOT

LIBRARY = Path(kernelwatch.__file__).parent
FILES = [path for path in sorted(LIBRARY.rglob("*")) if path.suffix in (".py", ".js", ".css", ".cu", ".html")]
OWN = [path for path in FILES if "vendor" not in path.parts]


@pytest.mark.parametrize(
    ("folder", "foreign"),
    [
        (LIBRARY, {"benchmarks", "gpu_kernels", "tests"}),
        (ROOT / "tests" / "ptxcount", {"benchmarks", "gpu_kernels", "kernelwatch"}),
    ],
)
def test_imports_stay_within_the_library(folder: Path, foreign: set[str]) -> None:
    """Local imports count, too: the tests of ptxcount run without library and suite."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in modules} & foreign, path


def test_library_names_no_kernel_of_the_suite() -> None:
    pattern = re.compile(rf"\b({'|'.join([*KERNELS.keys() - MIXED, 'gpu_kernels'])})\b")
    assert [str(path) for path in OWN if pattern.search(path.read_text(encoding="utf-8"))] == []


def test_project_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable's folder, or the nearest parent with asv's configuration outside asv's copies."""
    for name in (project_root.VARIABLE, project_root.ASV_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    copy = tmp_path / "mine" / ".asv" / "env" / "build"
    copy.mkdir(parents=True)
    for folder in (tmp_path / "mine", copy):
        (folder / "asv.conf.json").write_text("{}")
    assert project_root.find_root(copy) == project_root.find_root(tmp_path / "mine") == tmp_path / "mine"
    for name in (project_root.ASV_VARIABLE, project_root.VARIABLE):  # the later of both counts
        monkeypatch.setenv(name, str(copy / name))
        assert project_root.find_root(tmp_path) == copy / name


#: Variables that a run sets for its own processes.
OF_A_RUN = {f"KERNELWATCH_{name}" for name in ("RUN", "MEASURING", "FLEET", "FLEET_CORES", "LIBRARIES", "CHECKOUT", "")}


def test_settings_are_in_one_table() -> None:
    """No file reads another variable, and each has a row in the documentation."""
    texts = (path.read_text(encoding="utf-8") for path in OWN)
    variables = {name for text in texts for name in re.findall(r"\bKERNELWATCH_[A-Z_]*", text)}
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `(KERNELWATCH_\w+)` \| .+ \|$", page, re.MULTILINE)} == variables - OF_A_RUN
