"""The counts of launches: taken from the cache where nothing has changed since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..cli.arguments import arguments, variables
from ..engine.launch import compilation_of, compile_entry, count_compiled
from ..report.listing import lines, source_lines, text_of
from ..source.cpp_types import checked
from ..source.declarations import declarations
from ..source.names import cpp_name, find_entry, source_name
from ..source.nvcc import Compilation, stop
from ..util.errors import KernelFaultError
from . import cache
from .advice import advice
from .diagnostics import Diagnostic
from .launches import Launch
from .machine_code import memory_of


@dataclass(frozen=True)
class Counted:
    """The counts of a launch, as plain numbers."""

    launch: Launch
    #: File, C++ name, grid, block and arguments.
    description: str
    #: As `LaunchCounters.totals`, with the bytes of the stack frame and of spills.
    totals: dict[str, int]
    #: As `listing.lines`, with paths below the folder; the kernel's own line has the stack frame and spills.
    lines: list[dict[str, Any]]
    #: The advice, and what the kernel did that it should not.
    warnings: list[Diagnostic]
    #: The files of the folder that it was compiled from.
    files: list[str]
    #: The file and line that declare the kernel.
    declared_at: tuple[str, int]

    @property
    def key(self) -> str:
        """What the lock file calls it: its own name, or the description."""
        return self.launch.name or self.description


_IDLE = "it accesses no memory, so nothing is held: look at its grid, block and arguments"


def counts(launches: Sequence[Launch]) -> Iterator[Counted | Diagnostic]:
    """The counts of each launch, or why there are none: PC006, the kernel is wrong, or PC009."""
    _once.cache_clear()  # files may have changed since the last command of this process
    _compile(map(_recipe, launches))
    for launch in launches:
        try:
            one = _counted(launch)
            accesses = any(access["ptx_line"] for row in one.lines for access in row["accesses"])
            yield one if accesses else Diagnostic(launch.file, 1, "PC009", _IDLE, launch=launch.label)
        except KernelFaultError as error:
            where = _below(error.source.file or launch.file, launch.folder)
            yield Diagnostic(where, error.source.line or 1, "PC006", error.what, launch=launch.label)
        except Exception as error:  # noqa: BLE001 - one launch that cannot be counted hides no other
            yield Diagnostic(launch.file, 1, "PC009", f"{type(error).__name__}: {error}", launch=launch.label)


#: A file, the template's instance or None, nvcc's flags and the architecture.
_Recipe = tuple[Path, "str | None", str, str]


@lru_cache(maxsize=256)
def _once(recipe: _Recipe) -> tuple[Compilation, str | None]:
    """Compile what several launches share once; with the mangled name of a template's instance."""
    file, instance, flags, arch = recipe
    return compile_entry(*recipe) if instance else (compilation_of(file, flags, arch), None)


def _recipe(launch: Launch) -> _Recipe:
    instance = launch.kernel if launch.kernel and launch.kernel.endswith(">") else None
    return launch.folder / launch.file, instance, launch.flags, launch.arch


def _compile(recipes: Iterable[_Recipe]) -> None:
    """Compile side by side; what fails does so again, and says why, when it is counted."""

    def tried(recipe: _Recipe) -> None:
        with suppress(Exception):
            _once(recipe)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        every = [pool.submit(tried, each) for each in dict.fromkeys(recipes)]
        try:
            wait(every)
        except BaseException:  # Ctrl-C, or SIGTERM as SystemExit
            while wait([each for each in every if not each.cancel()], timeout=0.1).not_done:
                stop()  # again: a template is compiled twice
            raise


def _counted(launch: Launch) -> Counted:
    """The counts of a launch at the lines of today's source. Raises as `ptxcount.count`."""
    made, name = _once(_recipe(launch))
    entry = name or find_entry(made.ptx, launch.kernel)
    held = cache.kept(launch, made.ptx, lambda: _counts(launch, made, entry))
    lines_of = source_lines(made.files)
    rows = [row | {"text": text_of(row["file"], row["line"], lines_of)} for row in held["lines"]]
    files = [_below(each, launch.folder) for each in made.files if each.resolve().is_relative_to(launch.folder)]
    declaration = _declaration(entry, files, launch.folder)
    if held["machine"]:
        rows.append(declaration | {"accesses": held["machine"]})

    def place(file: str | None, line: int | None) -> tuple[str, int]:
        return _below(file or launch.file, launch.folder), line or 1

    warnings = []
    for code, text, places in held["warnings"]:
        first, *others = (place(*each) for each in places)
        warnings.append(Diagnostic(*first, code, text, "warning", launch.label, tuple(others)))
    more = [launch.flags, *launch.variables, str(launch.dynamic_shared or "")]
    more += [f"cluster={launch.cluster}"] if launch.cluster else []
    words = ", ".join([*launch.arguments, *filter(None, more)])
    extents = f"{tuple(launch.grid)}, {tuple(launch.block)}"
    return Counted(
        launch,
        f"{launch.file}: {cpp_name(entry)} <<<{extents}>>> ({words})",
        held["totals"] | {f"{each['space']}_{each['kind']}_bytes": each["bytes"] for each in held["machine"]},
        [row | {"file": place(row["file"], None)[0]} for row in rows],
        warnings,
        files,
        (declaration["file"] or launch.file, declaration["line"]),
    )


def _counts(launch: Launch, made: Compilation, entry: str) -> dict[str, Any]:
    """What the cache keeps: all that follows from the PTX, and names files as that does."""
    given = checked(arguments(launch.arguments, launch.folder), launch.arguments, entry, made.files)
    counters = count_compiled(
        made.ptx,
        entry,
        launch.grid,
        launch.block,
        given,
        flags=launch.flags,
        arch=launch.arch,
        dynamic_shared=launch.dynamic_shared,
        variables=variables(launch.variables, launch.folder),
        cluster=launch.cluster,
    )
    wrong = [each for each in counters.findings if each.code != "printf"]
    return {
        "totals": counters.totals(),
        "lines": lines(counters),
        "machine": memory_of(made.ptx, entry, launch.flags, launch.arch),
        "warnings": [
            *advice(counters, given, launch.arguments),
            *(("PC006", each.message, [(each.source.file, each.source.line)]) for each in wrong),
        ],
    }


def _declaration(entry: str, files: list[str], root: Path) -> dict[str, Any]:
    """The line that declares a kernel; the first of its file where none is seen."""
    for file in files:
        text = (root / file).read_text(encoding="utf-8", errors="replace")
        for each in declarations(text):
            if each.name == source_name(entry):
                return {"file": file, "line": each.line, "text": text.splitlines()[each.line - 1].strip()}
    return {"file": files[0] if files else "", "line": 1, "text": ""}


def _below(file: Path | str, root: Path) -> str:
    path = (root / file).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
