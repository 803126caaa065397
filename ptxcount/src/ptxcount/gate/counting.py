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
from ..errors import KernelFaultError, PtxError
from ..launch import compilation_of, compiled, count
from ..listing import lines, source_lines
from ..names import cpp_name, find_entry
from ..nvcc import Compilation, stop
from . import advice
from .cache import Cache
from .findings import Finding
from .launches import Launch


@dataclass(frozen=True)
class Counted:
    """The counts of a launch, as plain numbers.

    Attributes
    ----------
    file, key : str
        The launch's file, and what names the launch.
    totals : dict
        As `LaunchCounters.totals`.
    lines : list of dict
        As `listing.lines`, with paths below the folder.
    advice : list of dict
        The fields of findings.
    files : list of str
        The files of the folder that it was compiled from.
    """

    file: str
    key: str
    totals: dict[str, int]
    lines: list[dict[str, Any]]
    advice: list[dict[str, Any]]
    files: list[str]


def counts(launches: Sequence[Launch], cache: Cache) -> Iterator[Counted | Finding]:
    """The counts of each launch, or why there are none: PC006, the kernel is wrong, or PC009."""
    _once.cache_clear()  # files may have changed since the last command of this process
    held = [cache.read(each) for each in launches]
    _compile(_recipe(each) for each, there in zip(launches, held, strict=True) if there is None)
    for launch, there in zip(launches, held, strict=True):
        try:
            if there is not None:
                yield Counted(**there)
                continue
            sources, one = _counted(launch)
            cache.write(launch, sources, asdict(one))
            yield one
        except KernelFaultError as error:
            yield Finding(launch.file, error.source.line or 1, "PC006", error.what)
        except (PtxError, OSError, MemoryError) as error:
            yield Finding(launch.file, 1, "PC009", f"{type(error).__name__}: {error}")


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


def _counted(launch: Launch) -> tuple[list[Path], Counted]:
    """The files that the counts depend on, and the counts. Raises as `ptxcount.count`."""
    made, name = _once(_recipe(launch))
    entry = name or find_entry(made.ptx, launch.kernel)
    given = arguments(launch.arguments, launch.folder)
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
    more = [launch.flags, *launch.variables, str(launch.dynamic_shared or "")]
    more += [f"cluster={launch.cluster}"] if launch.cluster else []
    words = [*launch.arguments, *filter(None, more)]
    key = f"{launch.file}: {cpp_name(entry)} <<<{tuple(launch.grid)}, {tuple(launch.block)}>>> ({', '.join(words)})"
    said = [
        Finding(_below(Path(file or source), root), line or 1, code, text, "warning")
        for file, line, code, text in advice.advice(counters, given, launch.arguments)
    ]
    found = Counted(launch.file, key, counters.totals(), rows, [asdict(each) for each in said], files)
    return made.files, found


def _below(path: Path, root: Path) -> str:
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
