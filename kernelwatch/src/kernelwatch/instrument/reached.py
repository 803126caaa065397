"""What a function depends on: its own source, and that of everything it reaches by name within its package."""

from __future__ import annotations

import ast
import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


class _Module:
    """The statements of a module, and by name those that bind or may change it."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tree = tree(path.read_text("utf-8"))
        self.by_name: defaultdict[str, list[ast.stmt]] = defaultdict(list)
        for statement in (part for each in self.tree.body for part in _parts(each)):
            for each in _bound(statement):
                self.by_name[each].append(statement)


def tree(source: str) -> ast.Module:
    """Return a module's tree without docstrings."""
    parsed = ast.parse(source)
    for node in ast.walk(parsed):
        if isinstance(node, (ast.Module, *_NAMED)) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return parsed


def _parts(statement: ast.stmt) -> list[ast.stmt]:
    """Return a statement; of an import one for each name."""
    if isinstance(statement, ast.ImportFrom):
        return [ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names]
    return [ast.Import([alias]) for alias in statement.names] if isinstance(statement, ast.Import) else [statement]


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds or may change: of a definition its own, of others more than too few."""
    if isinstance(statement, _NAMED):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement]
    nodes = [node for target in targets for node in ast.walk(target)]
    imported = (alias for node in nodes if isinstance(node, _IMPORTS) for alias in node.names)
    return {
        *(node.id for node in nodes if isinstance(node, ast.Name)),
        *(node.name for node in nodes if isinstance(node, _NAMED)),
        *(alias.asname or alias.name.partition(".")[0] for alias in imported),
    }


@cache
def _module(name: str) -> _Module | None:
    """Return a module by its full name, without importing it; None if there is none, or it is no Python file."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:  # what would hold it is no package
        return None
    is_python = spec is not None and spec.origin is not None and spec.origin.endswith(".py")
    return _Module(name, Path(str(spec.origin))) if spec is not None and is_python else None


def sources(one: object) -> list[tuple[str, str]] | None:
    """Return all that a function depends on within its package, in an order that layout does not change.

    Parameters
    ----------
    one : object
        The function.

    Returns
    -------
    list of tuple of str, or None
        Module without the package's name, and the tree of a statement. None if the source does not say: of what is no
        function of a module, and of a function that has variables of another one.
    """
    if not isinstance(one, FunctionType) or one.__code__.co_freevars:
        return None
    home = _module(one.__globals__.get("__name__", ""))
    nodes = [node for node in ast.walk(home.tree) if _begins(node) == one.__code__.co_firstlineno] if home else []
    if home is None or not nodes:
        return None
    package = home.name.partition(".")[0]
    found: dict[ast.AST, str] = {}
    todo = [(home, node) for node in nodes]
    while todo:
        module, node = todo.pop()
        if node not in found:
            found[node] = module.name.removeprefix(package)
            todo += _next(module, node, package)
    return sorted((name, ast.dump(node)) for node, name in found.items())


def _begins(node: ast.AST) -> int | None:
    """Return the line that Python gives a function's code: of its first decorator if there is one."""
    decorators = getattr(node, "decorator_list", [])
    return min(each.lineno for each in (node, *decorators)) if isinstance(node, _FUNCTIONS) else None


def _next(module: _Module, node: ast.AST, package: str) -> Iterator[tuple[_Module, ast.AST]]:
    """Yield what a node names: statements of its module, and of those of the package that it imports from."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield from ((module, statement) for statement in module.by_name.get(each.id, ()))
        elif isinstance(each, ast.Import):
            for alias in each.names:
                yield from _whole(_module(alias.name) if alias.name.partition(".")[0] == package else None)
        elif isinstance(each, ast.ImportFrom):
            base = _base(each, module)
            for alias in each.names if base.partition(".")[0] == package else ():
                there = _module(base)
                yield from _whole(_module(f"{base}.{alias.name}") or (there if alias.name == "*" else None))
                yield from ((there, statement) for statement in there.by_name.get(alias.name, ())) if there else ()


def _base(node: ast.ImportFrom, module: _Module) -> str:
    spec = importlib.util.find_spec(module.name)
    assert spec is not None, "it was found"
    return importlib.util.resolve_name("." * node.level + (node.module or ""), spec.parent)


def _whole(module: _Module | None) -> Iterator[tuple[_Module, ast.AST]]:
    yield from ((module, statement) for statement in module.tree.body) if module else ()
