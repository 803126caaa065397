"""What a function depends on: its module, and the modules of its package and of the suite's that are imported there."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path
from types import FunctionType

from kernelwatch import settings


def files(one: object) -> dict[str, Path] | None:
    """Return the files that a function's result can depend on, by their modules without the package's name.

    None if the source does not say: of what is no function of a module, and of a function that has variables of another
    one.
    """
    name = one.__globals__.get("__name__", "") if isinstance(one, FunctionType) else ""
    if not isinstance(one, FunctionType) or one.__code__.co_freevars or _file(name) is None:
        return None
    packages = {name.partition(".")[0], settings.package()}
    found: dict[str, Path] = {}
    todo = [name]
    while todo:
        name = todo.pop()
        path = _file(name)
        if path is not None and name not in found:
            found[name] = path
            todo += (each for each in _imported(name, path) if each.partition(".")[0] in packages)
    return {name.partition(".")[2]: path for name, path in found.items()}


@cache
def _file(name: str) -> Path | None:
    """Return a module's file, without importing it; None if there is no module, or no file of Python."""
    try:
        spec = importlib.util.find_spec(name) if name else None
    except (ImportError, ValueError):  # what would hold it is no package; __main__ has no spec
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


@cache
def _imported(name: str, path: Path) -> tuple[str, ...]:
    """Return the modules that one names in its imports, wherever they stand, and what may be modules of these."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found += (base, *(f"{base}.{alias.name}" for alias in node.names))
    return tuple(found)
