"""The library is independent of suites: imports, names, and settings."""

from __future__ import annotations

import ast
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

import kernelwatch
from gpu_kernels import KERNELS, MIXED
from kernelwatch.cli.compare import compare
from kernelwatch.config import project_root, settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import KernelwatchError
from tests.stored import BASE, COUNT, HEAD, pair, write

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
    assert not {
        str(path): kernel_names for path in OWN if (kernel_names := pattern.findall(path.read_text(encoding="utf-8")))
    }


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


def test_advice_installs_from_a_clone() -> None:
    """Neither library is on PyPI: somebody else may take the name there."""
    advice = [path for path in OWN if re.search("pip install ['\"]?(kernelwatch|ptxcount)", path.read_text("utf-8"))]
    assert advice == []


#: Variables that a run sets for its own processes.
OF_A_RUN = {f"KERNELWATCH_{name}" for name in ("RUN", "MEASURING", "FLEET", "FLEET_CORES", "LIBRARIES", "CHECKOUT", "")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[tool.kernelwatch]\ntrades = 'none'", "[tool.kernelwatch] has 'trades'; did you mean 'trade'? allowed are"),
        ("[tool.kernelwatch]\nx = 1", "[tool.kernelwatch] has 'x'; allowed are package, suite, trade, limits"),
        (
            "[tool.kernelwatch.limits]\ninstrutions = 2",
            "[tool.kernelwatch.limits] has 'instrutions'; did you mean 'ins",
        ),
        ("[tool.kernelwatch.limits]\nshared_bytes = 2", "[tool.kernelwatch.limits] has 'shared_bytes'; did you mean '"),
        ("[tool.kernelwatch]\nlimits = 3", "tool.kernelwatch.limits is 3; Expected `object`, got `int`"),
        ("[tool.kernelwatch]\npackage = ['a']", "tool.kernelwatch.package is ['a']; Expected `str`, got `array`"),
        ("[tool]\nkernelwatch = 3", "tool.kernelwatch is 3; Expected `object`, got `int`"),
        ("tool = 3", "tool is 3; Expected `object`, got `int`"),
        ("[tool.other]\nx = 1", ""),
    ],
)
def test_mistyped_settings(text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error switches no rule off: the error has the value and the allowed names."""
    write(tmp_path, pair(1.0, 1.0, COUNT))
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr(settings, "ROOT", tmp_path)
    settings._load_settings.cache_clear()
    refused = pytest.raises(KernelwatchError, match="^" + re.escape(f"{tmp_path / 'pyproject.toml'}: {problem}"))
    try:
        with refused if problem else nullcontext():
            assert compare([BASE, HEAD], tmp_path) == 0
    finally:
        settings._load_settings.cache_clear()


def test_settings_are_in_one_table() -> None:
    """No file reads another variable, and each has a row in the documentation."""
    variables = {
        name for path in OWN for name in re.findall(r"\bKERNELWATCH_[A-Z_]*", path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `(KERNELWATCH_\w+)` \| .+ \|$", page, re.MULTILINE)} == variables - OF_A_RUN
