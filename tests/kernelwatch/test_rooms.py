"""Imports between packages of the libraries: in one direction, without circles."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name

import pytest

from kernelwatch.config.project_root import ROOT

#: Library -> packages in order of imports; packages between two arrows do not import each other.
ROOMS = {
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


def _iter_imports(module: str, tree: ast.Module, modules: dict[str, ast.Module], *, late: bool) -> Iterator[str]:
    """Yield imported modules of the own library, without type checking; `late` includes those in functions."""
    nodes: list[ast.AST] = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            folder = LIBRARIES[module.partition(".")[0]].parent / module.replace(".", "/")
            package = module if folder.is_dir() else module.rpartition(".")[0]
            base = resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{base}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else base for name in names if name in modules or base in modules)


@pytest.mark.parametrize("library", LIBRARIES)
def test_packages_are_in_order(library: str) -> None:
    """Imports in functions count, too."""
    modules = _modules(library)
    places = {room: place for place, rooms in enumerate(ROOMS[library].split(" < ")) for room in rooms.split()}
    upward = [
        f"{module} imports {imported}"
        for module, tree in modules.items()
        for imported in _iter_imports(module, tree, modules, late=True)
        if "." in module and "." in imported
        for importer, imported_room in [(module.split(".")[1], imported.split(".")[1])]
        if importer != imported_room and places[importer] <= places[imported_room]
    ]
    assert upward == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_circles(library: str) -> None:
    """Circles are checked among imports at module level."""
    modules = _modules(library)
    graph = {
        module: {*_iter_imports(module, tree, modules, late=False)} - {module, library}
        for module, tree in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()
