"""Launches of ``ptxcount.toml``."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..util.errors import LaunchError
from ..util.regular_files import require_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "ptxcount.toml"
_Text = Annotated[str, msgspec.Meta(pattern=r"^[^\0]*$")]
_Extent = Annotated[int, msgspec.Meta(ge=1)]
_Extents = _Extent | Annotated[list[_Extent], msgspec.Meta(min_length=1, max_length=3)]


class _LaunchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: Annotated[str, msgspec.Meta(pattern=r"^[^\0]+$")]
    grid: _Extents
    block: _Extents
    name: _Text = ""
    kernel: _Text | None = None
    arguments: list[_Text] = []
    variables: list[_Text] = []
    flags: _Text = ""
    arch: _Text | None = None
    dynamic_shared: Annotated[int, msgspec.Meta(ge=0)] = 0
    cluster: _Extents | None = None
    limits: dict[str, int | float | str] = {}


class Launch(_LaunchTable, frozen=True, kw_only=True):
    """One launch of a kernel, from a ``[[launch]]`` table.

    Paths are relative to ``folder``. ``grid`` and ``block`` have three numbers. ``label`` names the launch in findings.
    ``line`` is the line of the table.
    """

    folder: Path
    grid: list[int]
    block: list[int]
    label: str = ""
    line: int = 1


_KEYS = ", ".join(_LaunchTable.__struct_fields__)
#: Terms of msgspec's errors -> the terms of TOML.
_TERMS = {
    " | null": "", "`object`": "`table`", " matching regex '^[^\\\\0]*$'": " without NUL",
    " matching regex '^[^\\\\0]+$'": ", not empty and without NUL",
    "Object contains unknown field ": "it has the unknown key ", "Object missing required field ": "it lacks the key ",
}  # fmt: skip
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*launch[ \t]*\]\]", re.MULTILINE)
_ERROR_LINE = re.compile(r"\(at line (\d+),")


class TableError(LaunchError):
    """A missing or invalid ``ptxcount.toml``.

    Attributes
    ----------
    line : int
        The line of the problem.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def read_launches(folder: Path) -> list[Launch]:
    """Read the launches of a folder; raise `TableError` if ``ptxcount.toml`` is missing or invalid.

    Raises `LaunchError` if the path is no regular file.
    """
    path = folder / FILE
    if not path.exists():
        raise TableError(f"there is no {FILE}; ptxcount init FILE.cu prints entries")
    require_regular(path)
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    try:
        text.encode()  # raises for bytes that are no UTF-8
        table: Any = tomllib.loads(text)
    except ValueError as error:
        line = 1
        if match := _ERROR_LINE.search(str(error)):
            line = int(match[1])
        elif "at end of document" in str(error):
            line = max(len(text.splitlines()), 1)
        raise TableError(str(error), line) from None
    except RecursionError:
        raise TableError("tables or lists are nested too deeply; tables [[launch]] need one level") from None
    entries = table.get("launch")
    if not isinstance(entries, list) or not entries or {*table} != {"launch"}:
        names = ", ".join(table) or "nothing"
        raise TableError(f"the file has {names}; it must have only tables [[launch]], at least one")
    lines = [text.count("\n", 0, match.end()) + 1 for match in _HEADER.finditer(text)]
    if len(lines) != len(entries):
        lines = [1] * len(entries)
    launches = [_parse_launch(folder, n, *entry) for n, entry in enumerate(zip(entries, lines, strict=True), 1)]
    return _label_launches(launches)


def _parse_launch(folder: Path, number: int, table: Any, line: int) -> Launch:
    location = f"launch {number}"
    try:
        entry = msgspec.convert(table, _LaunchTable)
    except (msgspec.ValidationError, RecursionError) as error:
        raise TableError(f"{location}: {_explain_invalid(error)}", line) from None
    if not entry.name.isprintable():
        raise TableError(f"{location}: the name {entry.name!r} has unprintable characters; use printable ones", line)
    extents = {name: _expand_extent(getattr(entry, name)) for name in ("grid", "block")}
    return Launch(folder=folder, line=line, **{**msgspec.structs.asdict(entry), **extents})


def _explain_invalid(error: Exception) -> str:
    """Return msgspec's text about a launch, after the key of the value; about wrong keys, with the allowed ones."""
    text, _, place = str(error).partition(" - at ")
    for term, plain in _TERMS.items():
        text = text.replace(term, plain)
    if not place or " key " in text:
        return f"{text}; the keys of a launch are {_KEYS}"
    return f"{place.strip('`').removeprefix('$.')}: {text}"


def _expand_extent(extent: int | list[int]) -> list[int]:
    """Return the lengths along x, y and z: 4 -> [4, 1, 1]."""
    numbers = extent if isinstance(extent, list) else [extent]
    return numbers + [1] * (3 - len(numbers))


def _label_launches(unlabelled: list[Launch]) -> list[Launch]:
    """Label launches by name, else by kernel, else by file; number equal labels by the order of the tables."""
    for name, times in Counter(launch.name for launch in unlabelled).items():
        if name and times > 1:
            raise TableError(f"{times} launches have the name {name!r}; use different names")
    labels = [launch.name or launch.kernel or Path(launch.file).stem for launch in unlabelled]
    return [
        msgspec.structs.replace(launch, label=label if labels.count(label) == 1 else f"{label} (launch {number})")
        for number, (launch, label) in enumerate(zip(unlabelled, labels, strict=True), 1)
    ]
