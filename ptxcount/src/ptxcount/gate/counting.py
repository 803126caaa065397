"""The counts of launches: taken from the cache where nothing has changed since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..arguments import arguments, variables
from ..declarations import declarations
from ..errors import KernelFaultError, PtxError
from ..launch import compilation_of, compiled, count
from ..listing import lines, source_lines
from ..names import cpp_name, find_entry, source_name
from ..nvcc import Compilation, stop
from ..typed import checked
from . import advice
from .cache import Cache
from .diagnostics import Diagnostic
from .launches import Launch
from .machine_code import memory_of


@dataclass(frozen=True)
class Counted:
    """The counts of a launch, as plain numbers."""

    #: The launch's file, what findings call it, and what the lock file does: its own name, or the description.
    file: str
    name: str
    key: str
    #: File, C++ name, grid, block and arguments.
    description: str
    #: As `LaunchCounters.totals`, with the bytes of the stack frame and of spills.
    totals: dict[str, int]
    #: As `listing.lines`, with paths below the folder; the kernel's own line has the stack frame and spills.
    lines: list[dict[str, Any]]
    #: The fields of warnings.
    advice: list[dict[str, Any]]
    #: The files of the folder that it was compiled from.
    files: list[str]

    def warnings(self) -> list[Diagnostic]:
        """The advice, and what the kernel did that it should not."""
        return [
            Diagnostic(**{**each, "launch": self.name, "also": tuple((file, line) for file, line in each["also"])})
            for each in self.advice
        ]


_IDLE = "it accesses no memory, so nothing is held: look at its grid, block and arguments"


def counts(launches: Sequence[Launch], cache: Cache) -> Iterator[Counted | Diagnostic]:
    """The counts of each launch, or why there are none: PC006, the kernel is wrong, or PC009."""
    _once.cache_clear()  # files may have changed since the last command of this process
    held = [cache.read(each) for each in launches]
    _compile(_recipe(each) for each, there in zip(launches, held, strict=True) if there is None)
    for launch, there in zip(launches, held, strict=True):
        try:
            fields = there or _counted(launch, cache)
            one = Counted(launch.file, launch.label, launch.name or fields["description"], **fields)
            accesses = any(access["ptx_line"] for row in one.lines for access in row["accesses"])
            yield one if accesses else Diagnostic(one.file, 1, "PC009", _IDLE, launch=one.name)
        except KernelFaultError as error:
            where = _below(Path(error.source.file or launch.file), launch.folder.resolve())
            yield Diagnostic(where, error.source.line or 1, "PC006", error.what, launch=launch.label)
        except (PtxError, OSError, MemoryError) as error:
            yield Diagnostic(launch.file, 1, "PC009", f"{type(error).__name__}: {error}", launch=launch.label)


#: A file, the template's instance or None, nvcc's flags and the architecture.
_Recipe = tuple[Path, "str | None", str, str]


@lru_cache(maxsize=256)
def _once(recipe: _Recipe) -> tuple[Compilation, str | None]:
    """Compile what several launches share once; with the mangled name of a template's instance."""
    file, instance, flags, arch = recipe
    return compiled(*recipe) if instance else (compilation_of(file, flags, arch), None)


def _recipe(launch: Launch) -> _Recipe:
    instance = launch.kernel if launch.kernel and launch.kernel.endswith(">") else None
    return launch.folder / launch.file, instance, launch.flags, launch.arch


def _compile(recipes: Iterable[_Recipe]) -> None:
    """Compile side by side; what fails does so again, and says why, when it is counted."""

    def tried(recipe: _Recipe) -> None:
        with suppress(PtxError, OSError):
            _once(recipe)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        every = [pool.submit(tried, each) for each in dict.fromkeys(recipes)]
        try:
            wait(every)
        except KeyboardInterrupt:
            while wait([each for each in every if not each.cancel()], timeout=0.1).not_done:
                stop()  # again: a template is compiled twice
            raise


def _counted(launch: Launch, cache: Cache) -> dict[str, Any]:
    """The fields of `Counted`, which the cache keeps. Raises as `ptxcount.count`."""
    made, name = _once(_recipe(launch))
    entry = name or find_entry(made.ptx, launch.kernel)
    given = checked(arguments(launch.arguments, launch.folder), launch.arguments, entry, made.files)
    counters = count(
        made.ptx,
        entry,
        launch.grid,
        launch.block,
        given,
        dynamic_shared=launch.dynamic_shared,
        variables=variables(launch.variables, launch.folder),
        cluster=launch.cluster,
    )
    rows = lines(counters, source_lines(made.files))
    root, source = launch.folder.resolve(), launch.folder / launch.file
    for row in rows:
        row["file"] = _below(Path(row["file"] or source), root)
    files = [_below(each, root) for each in made.files if each.resolve().is_relative_to(root)]
    machine = memory_of(made.ptx, entry, launch.flags, launch.arch)
    if machine:
        rows.append({**_place(entry, files, root), "accesses": machine})
    more = [launch.flags, *launch.variables, str(launch.dynamic_shared or "")]
    more += [f"cluster={launch.cluster}"] if launch.cluster else []
    words = ", ".join([*launch.arguments, *filter(None, more)])
    extents = f"{tuple(launch.grid)}, {tuple(launch.block)}"

    def place(file: str | None, line: int | None) -> tuple[str, int]:
        return _below(Path(file or source), root), line or 1

    said = []
    for each in advice.advice(counters, given, launch.arguments):
        also = tuple(place(*other) for other in each.places if other != each.place)
        said.append(Diagnostic(*place(*each.place), each.code, each.text, "warning", also=also))
    said += [
        Diagnostic(*place(one.source.file, one.source.line), "PC006", one.message, "warning")
        for one in counters.findings
        if one.code != "printf"
    ]
    fields = {
        "description": f"{launch.file}: {cpp_name(entry)} <<<{extents}>>> ({words})",
        "totals": counters.totals() | {f"{each['space']}_{each['kind']}_bytes": each["bytes"] for each in machine},
        "lines": rows,
        "advice": [asdict(each) for each in said],
        "files": files,
    }
    cache.write(launch, made.files, fields)
    return fields


def _place(entry: str, files: list[str], root: Path) -> dict[str, Any]:
    """The line that declares a kernel; the first of its file where none is seen."""
    for file in files:
        text = (root / file).read_text(encoding="utf-8", errors="replace")
        for each in declarations(text):
            if each.name == source_name(entry):
                return {"file": file, "line": each.line, "text": text.splitlines()[each.line - 1].strip()}
    return {"file": files[0] if files else "", "line": 1, "text": ""}


def _below(path: Path, root: Path) -> str:
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
