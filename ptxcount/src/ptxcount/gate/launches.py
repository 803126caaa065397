"""Launches as ``ptxcount.toml`` has them, or ``[tool.ptxcount]`` in ``pyproject.toml``, and their counts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..arguments import arguments, variables
from ..counters import LaunchCounters
from ..errors import LaunchError
from ..launch import compiled, count
from ..listing import lines, source_lines
from ..names import cpp_name
from ..nvcc import ARCH

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "ptxcount.toml"
#: Compiles what several launches share once.
once = lru_cache(maxsize=256)(compiled)


@dataclass(frozen=True)
class Launch:
    """One launch of a file's kernel; ``folder`` is where its paths begin."""

    folder: Path
    file: str
    grid: list[int]
    block: list[int]
    kernel: str | None = None
    arguments: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    flags: str = ""
    arch: str = ARCH
    dynamic_shared: int = 0
    limits: dict[str, float | str] = field(default_factory=dict)


@dataclass
class Counted:
    """A launch with its counts: ``key`` names it, and ``lines`` are as `listing.lines`, with paths below the folder."""

    launch: Launch
    key: str
    counters: LaunchCounters
    lines: list[dict[str, Any]]


_TYPES: dict[str, type | tuple[type, ...]] = {
    "file": str, "kernel": str, "grid": (int, list), "block": (int, list), "arguments": list, "variables": list,
    "flags": str, "arch": str, "dynamic_shared": int, "limits": dict,
}  # fmt: skip


def launches(folder: Path) -> list[Launch]:
    """The launches that a folder's file lists; `LaunchError` if there is none, or an entry is not understood."""
    table: Any = None
    for name in (FILE, "pyproject.toml"):
        path = folder / name
        if path.is_file():
            try:
                table = tomllib.loads(path.read_text(encoding="utf-8"))
            except (ValueError, OSError) as error:
                raise LaunchError(f"{path}: {error}") from None
            table = table if name == FILE else table.get("tool", {}).get("ptxcount")
        if table is not None:
            entries = table.get("launch")
            if not isinstance(entries, list) or not entries or {*table} != {"launch"}:
                raise LaunchError(f"{path}: tables [[launch]] are needed, and nothing else is allowed")
            return [_launch(path, place, entry) for place, entry in enumerate(entries, 1)]
    raise LaunchError(f"{folder}: no {FILE} and no [tool.ptxcount] in pyproject.toml; ptxcount init FILE.cu writes one")


def _launch(path: Path, place: int, entry: Mapping[str, Any]) -> Launch:
    where = f"{path}, launch {place}"
    for name, value in entry.items():
        if name not in _TYPES or not isinstance(value, _TYPES[name]):
            raise LaunchError(f"{where}: {name!r} is not one of {', '.join(_TYPES)}, or has another type")
    for name in ("file", "grid", "block"):
        if name not in entry:
            raise LaunchError(f"{where}: {name} is needed")
    extents = {name: entry[name] if isinstance(entry[name], list) else [entry[name]] for name in ("grid", "block")}
    return Launch(folder=path.parent, **{**entry, **extents})


def counted(launch: Launch) -> Counted:
    """Count a launch. Raises as `ptxcount.count`."""
    source = launch.folder / launch.file
    made, entry = once(source, launch.kernel, launch.flags, launch.arch)
    counters = count(
        made.ptx,
        entry,
        launch.grid,
        launch.block,
        arguments(launch.arguments, launch.folder),
        dynamic_shared=launch.dynamic_shared,
        variables=variables(launch.variables, launch.folder),
    )
    rows = lines(counters, source_lines(made.files))
    for row in rows:
        path = Path(row["file"] or source).resolve()
        root = launch.folder.resolve()
        row["file"] = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    more = [launch.flags, *launch.variables, str(launch.dynamic_shared or "")]
    words = [*launch.arguments, *filter(None, more)]
    key = f"{launch.file}: {cpp_name(entry)} <<<{tuple(launch.grid)}, {tuple(launch.block)}>>> ({', '.join(words)})"
    return Counted(launch, key, counters, rows)
