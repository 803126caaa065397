"""Launches as ``ptxcount.toml`` has them, or ``[tool.ptxcount]`` in ``pyproject.toml``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import LaunchError
from ..nvcc import ARCH

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "ptxcount.toml"


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
    cluster: int | list[int] | None = None
    limits: dict[str, float | str] = field(default_factory=dict)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "file": str, "kernel": str, "grid": (int, list), "block": (int, list), "arguments": list, "variables": list,
    "flags": str, "arch": str, "dynamic_shared": int, "cluster": (int, list), "limits": dict,
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
    raise LaunchError(f"no {FILE} and no [tool.ptxcount] in pyproject.toml; ptxcount init FILE.cu prints entries")


def _launch(path: Path, place: int, entry: Mapping[str, Any]) -> Launch:
    where = f"{path}, launch {place}"
    for name, value in entry.items():
        if name not in _TYPES or not isinstance(value, _TYPES[name]):
            raise LaunchError(f"{where}: {name!r} is not one of {', '.join(_TYPES)}, or has another type")
    for name in ("file", "grid", "block"):
        if name not in entry:
            raise LaunchError(f"{where}: {name} is needed")
    given = {name: entry[name] if isinstance(entry[name], list) else [entry[name]] for name in ("grid", "block")}
    extents = {name: extent + [1] * (3 - len(extent)) for name, extent in given.items()}
    return Launch(folder=path.parent, **{**entry, **extents})
