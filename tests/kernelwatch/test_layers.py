"""The structure of both libraries: imports, dependence on suites, and settings."""

import ast
import graphlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import pytest

from gpu_kernels import KERNELS, MIXED
from kernelwatch.config import project_root
from kernelwatch.config.project_root import ROOT

#: Library -> its packages in order of imports. Packages between two `<` do not import each other.
LAYERS = {
    "kernelwatch": "error_text errors < config < toolchain < kernel < suite < store < instrument < counting"
    " < benchmarks < scaffold review < workflow < show < runner < fleet < cli < __main__",
    "ptxcount": "util < ptx < lanes < counting < machine < isa < source < engine < report < cli < gate"
    " < command_line pytest_plugin < __main__",
}
LIBRARIES = {name: ROOT / name / "src" / name for name in ("kernelwatch", "ptxcount")}


@cache
def _modules(library: str) -> dict[str, ast.Module]:
    folder = LIBRARIES[library]
    paths = {".".join(path.relative_to(folder.parent).with_suffix("").parts): path for path in folder.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8")) for name, path in paths.items()}


def _iter_imports(module: str, modules: dict[str, ast.Module], *, late: bool) -> Iterator[str]:
    """Yield the imported modules of the same library, but not for type checking; with `late`, also of functions."""
    nodes: list[ast.AST] = list(modules[module].body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            folder = LIBRARIES[module.partition(".")[0]].parent / module.replace(".", "/")
            package = module if folder.is_dir() else module.rpartition(".")[0]
            base = resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{base}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else base for name in names if name in modules or base in modules)


@pytest.mark.parametrize("library", LIBRARIES)
def test_packages_import_only_earlier_ones(library: str) -> None:
    modules = _modules(library)
    places = {layer: place for place, layers in enumerate(LAYERS[library].split(" < ")) for layer in layers.split()}
    upward = [
        f"{module} imports {imported}"
        for module in modules
        for imported in _iter_imports(module, modules, late=True)
        if "." in module and "." in imported
        for importer, imported_layer in [(module.split(".")[1], imported.split(".")[1])]
        if importer != imported_layer and places[importer] <= places[imported_layer]
    ]
    assert upward == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_circular_imports(library: str) -> None:
    modules = _modules(library)
    graph = {module: {*_iter_imports(module, modules, late=False)} - {module, library} for module in modules}
    graphlib.TopologicalSorter(graph).prepare()


PYTHON = {folder: [*folder.rglob("*.py")] for folder in (*LIBRARIES.values(), ROOT / "tests" / "ptxcount")}
SUFFIXES = (".py", ".js", ".css", ".cu", ".html")
FILES = sorted(path for path in LIBRARIES["kernelwatch"].rglob("*") if path.suffix in SUFFIXES)
OWN = [path for path in FILES if "vendor" not in path.parts]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        (r"(?m)^ *(from|import) (benchmarks|gpu_kernels|tests)\b", PYTHON[LIBRARIES["kernelwatch"]]),
        (r"(?m)^ *(from|import) (benchmarks|gpu_kernels|kernelwatch)\b", PYTHON[ROOT / "tests" / "ptxcount"]),
        ("unittest", [path for folder in LIBRARIES.values() for path in PYTHON[folder]]),  # only tests need mocks
        (rf"\b({'|'.join([*KERNELS.keys() - MIXED, 'gpu_kernels'])})\b", OWN),
        ("pip install ['\"]?(kernelwatch|ptxcount)", OWN),  # on PyPI, somebody else may use the names
    ],
    ids=["imports", "imports of tests", "mocks", "kernels of the suite", "advice to install from PyPI"],
)
def test_no_file_of_a_library_mentions(pattern: str, files: list[Path]) -> None:
    assert [path for path in files if re.search(pattern, path.read_text("utf-8"))] == []


def test_project_root_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (project_root.VARIABLE, project_root.ASV_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    copy = tmp_path / "mine" / ".asv" / "env" / "build"
    copy.mkdir(parents=True)
    for folder in (tmp_path / "mine", copy):
        (folder / "asv.conf.json").write_text("{}")
    assert project_root.find_root(copy) == project_root.find_root(tmp_path / "mine") == tmp_path / "mine"
    for name in (project_root.ASV_VARIABLE, project_root.VARIABLE):  # the second takes precedence
        monkeypatch.setenv(name, str(copy / name))
        assert project_root.find_root(tmp_path) == copy / name


#: Variables that a run sets for its own processes.
OF_A_RUN = {f"KERNELWATCH_{name}" for name in ("RUN", "MEASURING", "FLEET", "FLEET_CORES", "LIBRARIES", "CHECKOUT", "")}


def test_all_variables_are_documented() -> None:
    texts = (path.read_text(encoding="utf-8") for path in OWN)
    variables = {name for text in texts for name in re.findall(r"\bKERNELWATCH_[A-Z_]*", text)}
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `(KERNELWATCH_\w+)` \| .+ \|$", page, re.MULTILINE)} == variables - OF_A_RUN
