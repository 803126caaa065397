"""``ptxcount init``: entries of ``ptxcount.toml`` with guessed sizes."""

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..cli.options import escape_unprintable, parse_dimensions
from ..report.suggested_launches import KernelOverview, list_kernels
from ..util.errors import LaunchError
from ..util.grammar import count_noun
from .launches import FILE, Launch, TableError, read_launches


def print_entries(files: Sequence[Path], flags: str) -> int:
    """Print an entry for each kernel of these files that the current folder's table lacks; return the exit code.

    Raises `LaunchError` for a file without a compiled kernel.
    """
    launches: list[Launch] = []
    with suppress(TableError):  # the shell may have just created the file; check reports an invalid one
        launches = read_launches(Path())
    entries, known_count = [], 0
    for file in files:
        overviews = list_kernels(file, flags)
        if not overviews:
            raise LaunchError(f"{file} compiles to no kernel; give a file with a __global__ function")
        for overview in overviews:
            if any(_is_launched(file, overview, launch) for launch in launches):
                known_count += 1
            else:
                entries.append(_format_entry(file, overview, flags))
    if entries:
        print(escape_unprintable("\n".join(entries)))
    if known_count:
        sys.stderr.write(f"left out {count_noun(known_count, 'kernel')} that {FILE} already has\n")
    return 0


def _is_launched(file: Path, overview: KernelOverview, launch: Launch) -> bool:
    """Tell if a launch has this kernel's file, and the kernel's name or no name."""
    if Path(launch.file).resolve() != file.resolve():
        return False
    ending = f"::{launch.kernel}".replace(" ", "")
    return launch.kernel is None or f"::{overview.entry}".replace(" ", "").endswith(ending)


def _format_entry(file: Path, overview: KernelOverview, flags: str) -> str:
    guesses = [f"{name} = {[*parse_dimensions(getattr(overview, name))]}" for name in ("grid", "block")]
    if overview.dynamic_shared:
        guesses.append(f"dynamic_shared = {overview.dynamic_shared}")
    if overview.variables:
        guesses.append(f"variables = {json.dumps([*overview.variables])}")
    lines = [
        f"[[launch]]  # {overview.declaration}",
        f"file = {json.dumps(file.as_posix())}",
        f"kernel = {json.dumps(overview.entry)}",
        *(f"{guess}  # a guess" for guess in guesses),
        "arguments = [  # guesses: replace sizes and numbers; if the launch fails, look here first",
        *(f"    {json.dumps(word)}," for word in overview.arguments),
        "]",
    ]
    if flags:
        lines.append(f"flags = {json.dumps(flags)}")
    return "\n".join([*lines, ""])
