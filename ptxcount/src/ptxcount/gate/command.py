"""``ptxcount init``, ``pin`` and ``check``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ..command_line import dimensions
from ..errors import KernelFaultError, LaunchError, PtxError
from ..overview import kernels
from . import limits, pins
from .launches import FILE, Counted, counted, launches, once
from .pins import Finding


def main(words: Sequence[str]) -> int:
    """Run one of the commands; the exit code is 0 (held), 1 (not), 2 (cannot tell) or 3 (``--exact``: a count fell)."""
    parser = argparse.ArgumentParser("ptxcount", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    begin = commands.add_parser("init", help=f"print launches of a file's kernels, for {FILE}")
    begin.add_argument("file", type=Path, metavar="FILE.cu")
    for name, text in (("pin", f"write the counts into {pins.FILE}"), ("check", "hold limits and pinned counts")):
        command = commands.add_parser(name, help=text)
        command.add_argument("folder", type=Path, nargs="?", default=Path(), help=f"where {FILE} is (.)")
    command.add_argument("--update", action="store_true", help="pin what fell, if nothing fails")
    command.add_argument("--exact", action="store_true", help="exit code 3 if a count fell")
    command.add_argument("--format", choices=("text", "json", "github"), default="text")
    options = parser.parse_args(words)
    try:
        if options.command == "init":
            print(_entries(options.file))
            return 0
        counts, found, unclear = _counts(options.folder)
        if options.command == "pin":
            if not found and not unclear:
                pins.write(options.folder, counts)
            return _said(found, unclear, "text")
        held = pins.read(options.folder)
        for one in counts:
            found += [*limits.of_launch(one), *limits.of_lines(one)]
            found += [] if held is None else pins.compare(one, held)
    except (PtxError, OSError, MemoryError) as error:
        file = options.file if options.command == "init" else options.folder / FILE
        unclear = [Finding(str(file), 1, "PC009", f"{type(error).__name__}: {error}")]
        return _said([], unclear, getattr(options, "format", "text"))
    code = _said(found, unclear, options.format)
    fell = any(each.level == "note" for each in found)
    if code == 0 and held is not None and options.update:
        pins.write(options.folder, counts)
    return 3 if code == 0 and fell and options.exact else code


def _counts(folder: Path) -> tuple[list[Counted], list[Finding], list[Finding]]:
    """What was counted; what is wrong with kernels; and what could not be counted."""
    counts: list[Counted] = []
    found: list[Finding] = []
    unclear: list[Finding] = []
    once.cache_clear()  # files may have changed since the last command of this process
    for launch in launches(folder):
        try:
            counts.append(counted(launch))
        except KernelFaultError as error:
            found.append(Finding(launch.file, error.source.line or 1, "PC006", error.what))
        except (PtxError, OSError, MemoryError) as error:
            unclear.append(Finding(launch.file, 1, "PC009", f"{type(error).__name__}: {error}"))
    return counts, found, unclear


def _said(found: list[Finding], unclear: list[Finding], form: str) -> int:
    every = [*found, *unclear]
    if form == "json":
        print(json.dumps({"findings": [vars(each) for each in every]}, indent=2))
    for each in every if form != "json" else []:
        kind = "notice" if each.level == "note" else "error"
        text = f"{each.code} {each.message}".replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        print(f"::{kind} file={each.file},line={each.line}::{text}" if form == "github" else each)
    return 2 if unclear else int(any(each.level == "error" for each in found))


def _entries(file: Path) -> str:
    made = []
    for each in kernels(file):
        words = "".join(f"    {json.dumps(word)},\n" for word in each.arguments)
        grid, block = (list(dimensions(text)) for text in (each.grid, each.block))
        head = f"[[launch]]  # {each.shown}\nfile = {json.dumps(file.as_posix())}\nkernel = {json.dumps(each.entry)}\n"
        made.append(f"{head}grid = {grid}\nblock = {block}\narguments = [\n{words}]\n")
    if not made:
        raise LaunchError(f"{file}: no kernels")
    return "\n".join(made)
