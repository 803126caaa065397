"""Launches as ``ptxcount.toml`` has them, or ``[tool.ptxcount]`` in ``pyproject.toml``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
            return _labelled(path, [_launch(path, place, entry) for place, entry in enumerate(entries, 1)])
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


#: What tells launches apart, the shortest first: the kernel, its grid and block, its place in the file.
_LABELS: tuple[Callable[[int, Launch], str], ...] = (
    lambda place, one: one.name or one.kernel or Path(one.file).stem,
    lambda place, one: f"{_LABELS[0](place, one)} <<<{_extent(one.grid)}, {_extent(one.block)}>>>",
    lambda place, one: f"{_LABELS[1](place, one)} (launch {place})",
)


def _labelled(path: Path, given: list[Launch]) -> list[Launch]:
    """The launches with labels, each the shortest that no other launch has; `LaunchError` for a name given twice."""
    twice = [name for name, times in Counter(each.name for each in given).items() if name and times > 1]
    if twice:
        raise LaunchError(f"{path}: two launches have the name {twice[0]!r}; give each its own")
    strange = next((each.name for each in given if not each.name.isprintable()), "")
    if strange:
        raise LaunchError(f"{path}: the name {strange!r} holds what cannot be printed")
    options = [[label(place, one) for label in _LABELS] for place, one in enumerate(given, 1)]
    times = Counter(text for texts in options for text in dict.fromkeys(texts))
    return [
        replace(one, label=next((text for text in texts if times[text] == 1), texts[-1]))
        for one, texts in zip(given, options, strict=True)
    ]


def _extent(numbers: list[int]) -> str:
    """``(32, 8)`` as 32x8."""
    used = max((place for place, number in enumerate(numbers, 1) if number != 1), default=1)
    return "x".join(map(str, numbers[:used]))
