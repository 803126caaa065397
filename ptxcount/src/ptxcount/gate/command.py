"""``ptxcount init``, ``pin``, ``check`` and ``compare``."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ..cli.options import dimensions, flags_of, joined_flags, printable
from ..report.overview import kernels
from ..util.errors import LaunchError
from . import limits, pins, report
from .cache import release
from .counting import Counted, counts
from .diagnostics import ADVICE, UNCLEAR, Diagnostic
from .directives import Directives
from .formats import FORMATS
from .launches import FILE, launches

#: A command in messages, which works as it is with the folder behind it.
_PIN = "ptxcount pin"


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
    made = {}
    for name, text, codes in (
        ("pin", f"write the counts into {pins.FILE}, and say what changes",
         "Exit codes: 0, they are written; 1, a count rose, see --accept, or a kernel is wrong; 2"),
        ("check", "hold limits and pinned counts", "Exit codes: 0, all holds; 1, it does not; 2"),
        ("compare", f"what counts otherwise than in a revision's {pins.FILE}, as Markdown", "Exit codes: 0; 2"),
    ):  # fmt: skip
        made[name] = commands.add_parser(name, help=text, description=text, epilog=f"{codes}, it cannot be told.")
        if name == "compare":
            made[name].add_argument("revision", metavar="REVISION", help="of git, such as main")
        made[name].add_argument("folder", type=Path, nargs="?", default=Path(), help=f"where {FILE} is (.)")
    made["pin"].add_argument("--accept", action="store_true", help="write counts that rose, too")
    made["check"].add_argument(
        "--advise", action="store_true", help="say what is wrong with accesses: ptxcount/ADVICE.md"
    )
    made["check"].add_argument(
        "--changed", metavar="REVISION", help=f"the same of accesses that count otherwise in its {pins.FILE}"
    )
    made["check"].add_argument("--format", choices=FORMATS, default="text")
    return parser


def main(words: Sequence[str]) -> int:
    """Run one of the commands; the exit code is 0 (held), 1 (not) or 2 (cannot tell)."""
    options = _parser().parse_args(joined_flags(words))
    commands = {"pin": _pin, "check": _check, "compare": _compare}
    try:
        if options.command == "init":
            print(printable("\n".join(_entries(file, options.include, options.flags) for file in options.files)))
            return 0
        with _within(options):
            return commands[options.command](options)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - exit code 1 means that counts do not hold, so a traceback may not set it
        text = f"{type(error).__name__}: {error}"
        if options.command in ("pin", "check"):
            file = pins.FILE if isinstance(error, pins.LockError) else FILE
            return _say([Diagnostic(file, getattr(error, "line", 1), "PC009", text)], [], options)
        sys.stderr.write(printable(f"{text}\n"))
        return 2


@contextmanager
def _within(options: argparse.Namespace) -> Iterator[None]:
    """Be in the folder, where paths begin, those in nvcc's flags as well; what is said begins where the command was."""
    before, options.folder = Path.cwd(), options.folder.resolve()
    options.said = options.folder.relative_to(before) if options.folder.is_relative_to(before) else options.folder
    os.chdir(options.folder)
    try:
        yield
    finally:
        os.chdir(before)


def _pin(options: argparse.Namespace) -> int:
    found = list(counts(launches(options.folder)))
    wrong = [each for each in found if isinstance(each, Diagnostic)]
    if wrong:
        return _say(wrong, [], options)
    counted = [each for each in found if isinstance(each, Counted)]
    try:
        lock = pins.read(options.folder) or pins.Lock()
    except LaunchError as error:
        print(printable(str(error)))
        lock = pins.Lock()
    what = [each for one in counted if lock.of(one) is not None for each in pins.compare(one, lock)]
    rose = any(each.code == "PC003" for each in what) and not options.accept
    if not rose:
        pins.write(options.folder, counted, release())
    _say([each if rose else replace(each, level="note") for each in what], [], options)
    if rose:
        print(f"{pins.FILE} is as it was: {_PIN} --accept{_behind(options)} writes counts that rose, too")
        return 1
    new = [f"new: {one.launch.label}" for one in counted if lock.of(one) is None]
    nvcc = [f"nvcc: {lock.nvcc} before, {release()} now"] if lock.nvcc not in ("", release()) else []
    for text in (*new, *(f"gone: {each}" for each in lock.gone(counted)), *nvcc):
        print(printable(f"{pins.FILE}: {text}"))
    return 0


def _check(options: argparse.Namespace) -> int:
    lock = pins.read(options.folder)
    before = pins.since(options.changed) if options.changed else None
    every = list(counts(launches(options.folder)))
    found = [each for each in every if isinstance(each, Diagnostic)]
    counted = [each for each in every if isinstance(each, Counted)]
    whole = not found
    directives = Directives(options.folder, (file for one in counted for file in one.files))
    for one in counted:
        found += [*limits.of_launch(one), *limits.of_lines(one, directives)]
        found += [] if lock is None else pins.compare(one, lock)
        for each in one.warnings:
            if each.code < ADVICE or (options.advise and before is None):
                found.append(each)
            elif before is not None and (there := _within_places(each, _changed(one, before))):
                found.append(there)
    if whole:
        found += directives.unbound()
        gone = [] if lock is None else lock.gone(counted)
        text = f"pinned, and in {FILE} no more: run {_PIN}"
        found += [Diagnostic(pins.FILE, 1, "PC008", text, launch=each) for each in gone]
    lines = {(row["file"], row["line"] or 0) for one in counted for row in one.lines if whole}
    kept = _once(directives.waive(found, counted=lines))
    if lock is None:
        kept.append(Diagnostic(FILE, 1, "PC005", f"no counts are pinned: run {_PIN}, and commit {pins.FILE}"))
    elif lock.nvcc not in ("", release()) and any(each.code in ("PC003", "PC004") for each in kept):
        text = f"counts were made with nvcc {lock.nvcc}, and this is {release() or 'none'}: what differs may be its own"
        kept.append(Diagnostic(pins.FILE, 1, "PC010", text, "note"))
    return _say(kept, counted, options)


def _compare(options: argparse.Namespace) -> int:
    lock = pins.since(options.revision)
    print(report.markdown(list(counts(launches(options.folder))), lock, release()))
    return 0


def _changed(one: Counted, before: pins.Lock) -> set[tuple[str, int]]:
    """The lines of a launch that count otherwise than they did."""
    found = pins.changes(one.lines, before.of(one) or {})
    return {place for each in found for place in (each.places or [(each.file, each.line)])}


def _within_places(finding: Diagnostic, places: set[tuple[str, int]]) -> Diagnostic | None:
    """A finding as far as it is of these places."""
    there = [each for each in ((finding.file, finding.line), *finding.also) if each in places]
    return replace(finding, file=there[0][0], line=there[0][1], also=tuple(there[1:])) if there else None


def _once(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings, what is no failure once: several launches of a kernel may show the same."""
    found: dict[object, Diagnostic] = {}
    for each in findings:
        found.setdefault(replace(each, launch="") if each.level == "warning" else each, each)
    return [*found.values()]


def _behind(options: argparse.Namespace) -> str:
    """The folder, as it stands behind a command."""
    return "" if options.said == Path() else f" {shlex.quote(str(options.said))}"


def _say(found: list[Diagnostic], counted: list[Counted], options: argparse.Namespace) -> int:
    """Say what was found, from where the command was called; the exit code."""
    found = [
        replace(
            each,
            file=(options.said / each.file).as_posix(),
            message=printable(each.message.replace(_PIN, _PIN + _behind(options))),
            also=tuple(((options.said / file).as_posix(), line) for file, line in each.also),
        )
        for each in found
    ]
    text = FORMATS[getattr(options, "format", "text")](found, counted)
    if text:
        print(printable(text))
    return 2 if any(each.code in UNCLEAR for each in found) else int(any(each.level == "error" for each in found))


def _entries(file: Path, include: Sequence[str], flags: str) -> str:
    found, flags = kernels(file, flags_of(include, flags)), flags_of(include, flags)
    if not found:
        raise LaunchError(f"{file}: no kernels")
    lines = []
    for each in found:
        lines += [f"[[launch]]  # {each.declaration}", f"file = {json.dumps(file.as_posix())}"]
        lines += [f"kernel = {json.dumps(each.entry)}"]
        lines += [f"{name} = {[*dimensions(getattr(each, name))]}  # a guess" for name in ("grid", "block")]
        lines += [f"dynamic_shared = {each.dynamic_shared}  # a guess"] * bool(each.dynamic_shared)
        lines += [
            "arguments = [  # guesses: put in your sizes and numbers",
            *(f"    {json.dumps(word)}," for word in each.arguments),
            "]",
        ]
        lines += [f"flags = {json.dumps(flags)}"] * bool(flags) + [""]
    return "\n".join(lines)
