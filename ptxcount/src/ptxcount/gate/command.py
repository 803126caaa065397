"""``ptxcount init``, ``pin``, ``check`` and ``compare``."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from .. import whole
from ..command_line import dimensions
from ..errors import LaunchError, PtxError
from ..overview import kernels
from . import changed, limits, pins, report
from .cache import FOLDER, Cache
from .counting import Counted, counts
from .directives import Directives
from .findings import Finding
from .formats import FORMATS
from .launches import FILE, launches

#: Codes that say that nothing is known.
_UNCLEAR = "PC009"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ptxcount", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    text = f"print launches of a file's kernels, for {FILE}"
    begin = commands.add_parser("init", help=text, description=f"{text}: put in your sizes")
    begin.add_argument("file", type=Path, metavar="FILE.cu")
    begin.add_argument("--flags", default="", metavar="FLAGS", help="options of nvcc, as --flags='-I include'")
    for name, text, codes in (
        ("pin", f"write the counts into {pins.FILE}", "Exit codes: 0, they are written; 1, a kernel is wrong; 2"),
        ("check", "hold limits and pinned counts", "Exit codes: 0, all holds; 1, it does not; 3, see --exact; 2"),
    ):
        command = commands.add_parser(name, help=text, description=text, epilog=f"{codes}, it cannot be told.")
        command.add_argument("folder", type=Path, nargs="?", default=Path(), help=f"where {FILE} is (.)")
        command.add_argument("--no-cache", action="store_true", help=f"count what {FOLDER} holds, too")
    command.add_argument("--advise", action="store_true", help="say what is wrong with accesses: docs/advice.md")
    command.add_argument("--changed", metavar="REVISION", help="the same of lines that changed since then in git alone")
    command.add_argument("--update", action="store_true", help="pin what fell, if nothing fails")
    command.add_argument("--exact", action="store_true", help="exit code 3 if a count fell")
    command.add_argument("--format", choices=FORMATS, default="text")
    command.add_argument("--output", type=Path, metavar="FILE", help="write there, and text to standard output")
    side = commands.add_parser("compare", help="two results of check --format json, as Markdown")
    side.add_argument("base", type=Path, metavar="BASE.json")
    side.add_argument("head", type=Path, metavar="HEAD.json")
    side.add_argument("--link", default="", metavar="URL", help="where head's files are shown")
    return parser


def main(words: Sequence[str]) -> int:
    """Run one of the commands; the exit code is 0 (held), 1 (not), 2 (cannot tell) or 3 (``--exact``: a count fell)."""
    options = _parser().parse_args(words)
    try:
        if options.command == "init":
            print(_entries(options.file, options.flags))
        elif options.command == "compare":
            print(report.markdown(options.base, options.head, options.link), end="")
        else:
            with _within(options):
                return _pin(options) if options.command == "pin" else _check(options)
    except BrokenPipeError:
        raise
    except (PtxError, OSError, MemoryError) as error:
        where = getattr(options, {"init": "file", "compare": "head"}.get(options.command, ""), FILE)
        _say([Finding(str(where), 1, _UNCLEAR, f"{type(error).__name__}: {error}")], [], options)
        return 2
    return 0


@contextmanager
def _within(options: argparse.Namespace) -> Iterator[None]:
    """Be in the folder, where paths begin, those in nvcc's flags as well; what is said begins where the command was."""
    before, options.folder = Path.cwd(), options.folder.resolve()
    options.said = options.folder.relative_to(before) if options.folder.is_relative_to(before) else options.folder
    if getattr(options, "output", None):
        options.output = options.output.absolute()
    os.chdir(options.folder)
    try:
        yield
    finally:
        os.chdir(before)


def _pin(options: argparse.Namespace) -> int:
    given = launches(options.folder)
    found = list(counts(given, Cache(options.folder, used=not options.no_cache)))
    wrong = [each for each in found if isinstance(each, Finding)]
    if not wrong:
        pins.write(options.folder, (each for each in found if isinstance(each, Counted)))
    return _said(wrong, [], options)


def _check(options: argparse.Namespace) -> int:
    given = launches(options.folder)
    found: list[Finding] = []
    held = pins.read(options.folder)
    pairs = []
    for launch, one in zip(given, counts(given, Cache(options.folder, used=not options.no_cache)), strict=True):
        if isinstance(one, Finding):
            found.append(one)
        else:
            pairs.append((launch, one))
    directives = Directives(options.folder, (file for _, one in pairs for file in one.files))
    for launch, one in pairs:
        found += [*limits.of_launch(launch, one), *limits.of_lines(one, directives)]
        found += [] if held is None else pins.compare(one, held)
        found += [Finding(**each) for each in one.advice]
    counted = {(row["file"], row["line"] or 0) for _, one in pairs for row in one.lines}
    whole = len(pairs) == len(given)
    if held is not None and whole:
        found += pins.gone((one for _, one in pairs), held)
    kept = list(dict.fromkeys(directives.waive(found, counted=counted if whole else set())))
    new = changed.since(options.changed) if options.changed else set()
    advised = options.advise and not options.changed
    kept = [each for each in kept if each.level != "warning" or advised or (each.file, each.line) in new]
    code = _said(kept, [one for _, one in pairs], options)
    if code == 0 and held is not None and options.update:
        pins.write(options.folder, (one for _, one in pairs))
    return 3 if code == 0 and options.exact and any(each.level == "note" for each in kept) else code


def _said(found: list[Finding], counted: list[Counted], options: argparse.Namespace) -> int:
    _say(found, counted, options)
    if any(each.code == _UNCLEAR for each in found):
        return 2
    return int(any(each.level == "error" for each in found))


def _say(found: list[Finding], counted: list[Counted], options: argparse.Namespace) -> None:
    form = getattr(options, "format", "text")
    found = [replace(each, file=(getattr(options, "said", Path()) / each.file).as_posix()) for each in found]
    text = FORMATS[form](found, counted)
    if getattr(options, "output", None):
        whole.write(options.output, text + "\n")
        text = FORMATS["text"](found, counted)
    if text:
        print(text)


def _entries(file: Path, flags: str) -> str:
    made = []
    more = f"flags = {json.dumps(flags)}\n" if flags else ""
    for each in kernels(file, flags):
        words = "".join(f"    {json.dumps(word)},\n" for word in each.arguments)
        grid, block = (list(dimensions(text)) for text in (each.grid, each.block))
        head = f"[[launch]]  # {each.shown}\nfile = {json.dumps(file.as_posix())}\nkernel = {json.dumps(each.entry)}\n"
        made.append(f"{head}grid = {grid}\nblock = {block}\narguments = [\n{words}]\n{more}")
    if not made:
        raise LaunchError(f"{file}: no kernels")
    return "\n".join(made)
