"""Launches as ``ptxcount.toml`` has them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..source.nvcc import ARCH
from ..util.errors import LaunchError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "ptxcount.toml"


@dataclass(frozen=True)
class Launch:
    """One launch of a file's kernel.

    ``folder`` is where its paths begin, ``name`` what its author calls it, ``label`` what findings call it.
    """

    folder: Path
    file: str
    grid: list[int]
    block: list[int]
    name: str = ""
    label: str = ""
    kernel: str | None = None
    arguments: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    flags: str = ""
    arch: str = ARCH
    dynamic_shared: int = 0
    cluster: int | list[int] | None = None
    limits: dict[str, float | str] = field(default_factory=dict)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "file": str, "name": str, "kernel": str, "grid": (int, list), "block": (int, list), "arguments": list,
    "variables": list, "flags": str, "arch": str, "dynamic_shared": int, "cluster": (int, list), "limits": dict,
}  # fmt: skip


def launches(folder: Path) -> list[Launch]:
    """The launches that a folder's file lists; `LaunchError` if there is none, or an entry is not understood."""
    path = folder / FILE
    try:
        table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LaunchError(f"no {FILE}; ptxcount init FILE.cu prints entries") from None
    except ValueError as error:
        raise LaunchError(f"{path}: {error}") from None
    entries = table.get("launch")
    if not isinstance(entries, list) or not entries or {*table} != {"launch"}:
        raise LaunchError(f"{path}: tables [[launch]] are needed, and nothing else is allowed")
    return _labelled(path, [_launch(path, place, entry) for place, entry in enumerate(entries, 1)])


def _launch(path: Path, place: int, entry: Mapping[str, Any]) -> Launch:
    where = f"{path}, launch {place}"
    for name, value in entry.items():
        if name not in _TYPES or not isinstance(value, _TYPES[name]):
            raise LaunchError(f"{where}: {name!r} is not one of {', '.join(_TYPES)}, or has another type")
    for name in ("file", "grid", "block"):
        if name not in entry:
            raise LaunchError(f"{where}: {name} is needed")
    if not entry.get("name", "").isprintable():
        raise LaunchError(f"{where}: the name {entry['name']!r} holds what cannot be printed")
    given = {name: entry[name] if isinstance(entry[name], list) else [entry[name]] for name in ("grid", "block")}
    extents = {name: extent + [1] * (3 - len(extent)) for name, extent in given.items()}
    return Launch(folder=path.parent, **{**entry, **extents})


def _labelled(path: Path, given: list[Launch]) -> list[Launch]:
    """The launches with labels: name or kernel, and the place in the file where several have that one.

    Raises `LaunchError` for a name given twice.
    """
    twice = next((name for name, times in Counter(one.name for one in given).items() if name and times > 1), None)
    if twice:
        raise LaunchError(f"{path}: two launches have the name {twice!r}; give each its own")
    labels = [one.name or one.kernel or Path(one.file).stem for one in given]
    return [
        replace(one, label=label if labels.count(label) == 1 else f"{label} (launch {place})")
        for place, (one, label) in enumerate(zip(given, labels, strict=True), 1)
    ]
