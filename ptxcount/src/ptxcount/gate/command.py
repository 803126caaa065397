"""``ptxcount init``, ``pin``, ``check`` and ``compare``."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from .. import whole
from ..errors import LaunchError, PtxError
from ..options import dimensions, flags_of, joined_flags, printable
from ..overview import kernels
from . import limits, pins, report
from .cache import FOLDER, Cache, release
from .counting import Counted, counts
from .diagnostics import ADVICE, UNCLEAR, Diagnostic
from .directives import Directives, Limit
from .formats import FORMATS
from .launches import FILE, launches

#: A command in a message, which works as it is with the folder behind it.
_COMMAND = re.compile(r"ptxcount (?:pin|check)(?: --\w+)?")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ptxcount", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    text = f"print launches of the kernels of files, for {FILE}"
    begin = commands.add_parser("init", help=text, description=f"{text}: put in your sizes")
    begin.add_argument("files", type=Path, nargs="+", metavar="FILE.cu")
    begin.add_argument(
        "-I", "--include", action="append", default=[], metavar="DIR", help="look for includes there, too"
    )
    begin.add_argument("--flags", default="", metavar="FLAGS", help="options of nvcc, as --flags='-std=c++20'")
    for name, text, codes in (
        ("pin", f"write the counts into {pins.FILE}, and say what changes",
         "Exit codes: 0, they are written; 1, a count rose, see --accept, or a kernel is wrong; 2"),
        ("check", "hold limits and pinned counts", "Exit codes: 0, all holds; 1, it does not; 3, see --exact; 2"),
    ):  # fmt: skip
        command = commands.add_parser(name, help=text, description=text, epilog=f"{codes}, it cannot be told.")
        command.add_argument("folder", type=Path, nargs="?", default=Path(), help=f"where {FILE} is (.)")
        command.add_argument("--no-cache", action="store_true", help=f"count what {FOLDER} holds, too")
        if name == "pin":
            command.add_argument("--accept", action="store_true", help="write counts that rose, too")
    command.add_argument("--advise", action="store_true", help="say what is wrong with accesses: ptxcount/ADVICE.md")
    command.add_argument(
        "--changed", metavar="REVISION", help=f"the same of accesses that count otherwise in its {pins.FILE}"
    )
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
    options = _parser().parse_args(joined_flags(words))
    try:
        if options.command == "init":
            print(printable("\n".join(_entries(file, options.include, options.flags) for file in options.files)))
        elif options.command == "compare":
            print(report.markdown(options.base, options.head, options.link), end="")
        else:
            with _within(options):
                return _pin(options) if options.command == "pin" else _check(options)
    except BrokenPipeError:
        raise
    except (PtxError, OSError, MemoryError) as error:
        text = f"{type(error).__name__}: {error}"
        if options.command not in ("init", "compare"):
            return _say([Diagnostic(FILE, 1, "PC009", text)], [], options)
        sys.stderr.write(printable(f"{text}\n"))
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
    wrong = [each for each in found if isinstance(each, Diagnostic)]
    if wrong:
        return _say(wrong, [], options)
    counted = [each for each in found if isinstance(each, Counted)]
    lock = _readable(options.folder)
    what = [each for one in counted if lock.of(one) is not None for each in pins.compare(one, lock)]
    rose = any(each.code == "PC003" for each in what) and not options.accept
    if not rose:
        pins.write(options.folder, counted, release())
    _say([each if rose else replace(each, level="note") for each in what], [], options)
    if rose:
        folder = "" if options.said == Path() else f" {shlex.quote(str(options.said))}"
        print(f"{pins.FILE} is as it was: ptxcount pin --accept{folder} writes counts that rose, too")
        return 1
    new = [f"new: {one.name}" for one in counted if lock.of(one) is None]
    old = [f"gone: {each.launch}" for each in pins.gone(counted, lock)]
    nvcc = [f"nvcc: {lock.nvcc} before, {release()} now"] if lock.nvcc not in ("", release()) else []
    for text in (*new, *old, *nvcc):
        print(printable(f"{pins.FILE}: {text}"))
    return 0


def _readable(folder: Path) -> pins.Lock:
    """The lock file; an empty one if there is none, or none that is understood: it is written anew."""
    try:
        return pins.read(folder) or pins.Lock()
    except LaunchError as error:
        print(printable(str(error)))
        return pins.Lock()


def _check(options: argparse.Namespace) -> int:
    given = launches(options.folder)
    found: list[Diagnostic] = []
    lock = pins.read(options.folder)
    before = pins.since(options.changed) if options.changed else None
    pairs = []
    for launch, one in zip(given, counts(given, Cache(options.folder, used=not options.no_cache)), strict=True):
        if isinstance(one, Diagnostic):
            found.append(one)
        else:
            pairs.append((launch, one))
    counted = [one for _, one in pairs]
    directives = Directives(options.folder, (file for one in counted for file in one.files))
    bound: set[Limit] = set()
    for launch, one in pairs:
        found += [*limits.of_launch(launch, one), *limits.of_lines(one, directives, bound)]
        found += [] if lock is None else pins.compare(one, lock)
        for each in one.warnings():
            if each.code < ADVICE or (options.advise and before is None):
                found.append(each)
            elif before is not None and (there := _within_places(each, _changed(one, before))):
                found.append(there)
    lines = {(row["file"], row["line"] or 0) for one in counted for row in one.lines}
    whole = len(pairs) == len(given)
    if whole:
        found += directives.unbound(bound)
        found += [] if lock is None else pins.gone(counted, lock)
    kept = once(directives.waive(found, counted=lines if whole else set()))
    if lock is None:
        kept.append(Diagnostic(FILE, 1, "PC005", f"no counts are pinned: run ptxcount pin, and commit {pins.FILE}"))
    elif lock.nvcc not in ("", release()) and any(each.code in ("PC003", "PC004") for each in kept):
        text = f"counts were made with nvcc {lock.nvcc}, and this is {release() or 'none'}: what differs may be its own"
        kept.append(Diagnostic(pins.FILE, 1, "PC010", text, "note"))
    code = _say(kept, counted, options)
    if code == 0 and lock is not None and options.update:
        pins.write(options.folder, counted, release())
    return 3 if code == 0 and options.exact and any(each.code == "PC004" for each in kept) else code


def _changed(one: Counted, before: pins.Lock) -> set[tuple[str, int]]:
    """The lines of a launch that count otherwise than they did."""
    found = pins.changes(one.lines, before.of(one) or {}, before.spaces)
    return {place for each in found for place in (each.places or [(each.file, each.line)])}


def _within_places(finding: Diagnostic, places: set[tuple[str, int]]) -> Diagnostic | None:
    """A finding as far as it is of these places."""
    there = [each for each in ((finding.file, finding.line), *finding.also) if each in places]
    return replace(finding, file=there[0][0], line=there[0][1], also=tuple(there[1:])) if there else None


def once(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings, what is no failure once: several launches of a kernel may show the same."""
    found: dict[object, Diagnostic] = {}
    for each in findings:
        found.setdefault(replace(each, launch="") if each.level == "warning" else each, each)
    return [*found.values()]


def _say(found: list[Diagnostic], counted: list[Counted], options: argparse.Namespace) -> int:
    """Say what was found, from where the command was called; the exit code."""
    form = getattr(options, "format", "text")
    at = getattr(options, "said", Path())
    where = "" if at == Path() else f" {shlex.quote(str(at))}"
    found = [
        replace(
            each,
            file=(at / each.file).as_posix(),
            message=printable(_COMMAND.sub(rf"\g<0>{where}", each.message)),
            also=tuple(((at / file).as_posix(), line) for file, line in each.also),
        )
        for each in found
    ]
    text = FORMATS[form](found, counted)
    if getattr(options, "output", None):
        whole.write(options.output, text + "\n")
        text = FORMATS["text"](found, counted)
    if text:
        print(printable(text))
    return 2 if any(each.code in UNCLEAR for each in found) else int(any(each.level == "error" for each in found))


def _entries(file: Path, include: Sequence[str], flags: str) -> str:
    made = []
    flags = flags_of(include, flags)
    more = f"flags = {json.dumps(flags)}\n" if flags else ""
    for each in kernels(file, flags):
        words = "".join(f"    {json.dumps(word)},\n" for word in each.arguments)
        grid, block = (list(dimensions(text)) for text in (each.grid, each.block))
        head = f"[[launch]]  # {each.shown}\nfile = {json.dumps(file.as_posix())}\nkernel = {json.dumps(each.entry)}\n"
        made.append(f"{head}grid = {grid}\nblock = {block}\narguments = [\n{words}]\n{more}")
    if not made:
        raise LaunchError(f"{file}: no kernels")
    return "\n".join(made)
