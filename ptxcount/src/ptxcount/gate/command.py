"""``ptxcount init``, ``pin``, ``check`` and ``compare``."""

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..cli.ending import run_command, scratch_folder
from ..cli.options import attach_flags, escape_unprintable, join_flags
from ..util.errors import LaunchError
from ..util.grammar import count_noun
from . import limits, lock_changes, pins
from .count_cache import nvcc_release
from .counting import LaunchCounts, iter_counts, list_files
from .diagnostics import ADVICE, UNCLEAR, Diagnostic
from .directives import Directives
from .formats import FORMATS
from .launches import FILE, Launch, TableError, read_launches

#: The command in messages; `_report_findings` appends the folder.
_PIN = "ptxcount pin"
#: Codes of findings to which `_name_causes` adds the changed inputs -> the text if no input changed.
_CAUSED = {**dict.fromkeys(("PC003", "PC004"), "no file of the project changed, only the count"), "PC006": ""}


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ptxcount", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    text = f"print a [[launch]] entry of {FILE} for each kernel of these files"
    init_parser = commands.add_parser("init", help=text, description=f"{text}; replace the guessed sizes")
    init_parser.add_argument("files", type=Path, nargs="+", metavar="FILE.cu")
    init_parser.add_argument(
        "-I", "--include", action="append", default=[], metavar="DIR", help="include folder for nvcc"
    )
    init_parser.add_argument("--flags", default="", metavar="FLAGS", help="options for nvcc, as --flags='-std=c++20'")
    parsers = {}
    for name, text, codes in (
        ("pin", f"write the counts into {pins.FILE}, and print changes",
         "Exit codes: 0 written; 1 a count rose (see --accept), or each launch had a kernel error; 2 any other error."),
        ("check", f"compare counts with limits and with {pins.FILE}",
         "Exit codes: 0 passed; 1 a limit, a pinned count or a kernel failed, for example; 2 could not be checked."),
        ("compare", f"print count changes since a revision's {pins.FILE}, as Markdown",
         "Exit codes: 0 printed; 2 could not be compared."),
    ):  # fmt: skip
        parsers[name] = commands.add_parser(name, help=text, description=text, epilog=codes)
        if name == "compare":
            parsers[name].add_argument("revision", metavar="REVISION", help="git revision, such as main")
        parsers[name].add_argument(
            "folder", type=Path, nargs="?", default=Path(), help=f"folder of {FILE} (default: .)"
        )
    parsers["pin"].add_argument("--accept", action="store_true", help="also write counts that rose")
    parsers["check"].add_argument(
        "--advise",
        action="store_true",
        help="print advice on inefficient accesses; ADVICE.md of ptxcount's sources describes it",
    )
    parsers["check"].add_argument(
        "--changed", metavar="REVISION", help=f"advise only on accesses whose counts differ from REVISION's {pins.FILE}"
    )
    parsers["check"].add_argument("--format", choices=FORMATS, default="text")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit code: 0 passed, 1 failed, 2 not checked, or that of `run_command`."""
    command_words = sys.argv[1:] if words is None else words

    def run_in_scratch_folder() -> int:
        with scratch_folder("ptxcount-"):
            return _run_words(command_words)

    return run_command("ptxcount", run_in_scratch_folder, 2)


def _run_words(words: Sequence[str]) -> int:
    options = _make_parser().parse_args(attach_flags(words))
    commands = {"pin": _pin_counts, "check": _check_counts, "compare": _compare_revision}
    try:
        if options.command == "init":
            from .table_entries import print_entries  # noqa: PLC0415 - with all of NumPy, which only init needs

            return print_entries(options.files, join_flags(options.include, options.flags))
        with _enter_folder(options):
            return commands[options.command](options)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - exit code 1 means that counts do not hold, so a traceback may not set it
        is_table = isinstance(error, TableError)  # its message is enough, without the type
        text = str(error) if is_table else f"{type(error).__name__}: {error}"
        if options.command in ("pin", "check"):
            file = getattr(error, "file", FILE)
            return _report_findings([Diagnostic(file, getattr(error, "line", 1), "PC009", text)], [], options)
        place = f"{FILE}:{error.line}: " if isinstance(error, TableError) else ""
        sys.stderr.write(escape_unprintable(f"{place}{text}\n"))
        return 2


@contextmanager
def _enter_folder(options: argparse.Namespace) -> Iterator[None]:
    """Change to ``options.folder`` within the block; set ``options.shown_folder`` for messages.

    Paths, also in nvcc's flags, are relative to the folder. Paths in messages are relative to the caller's folder.
    """
    previous_folder, options.folder = Path.cwd(), options.folder.resolve()
    options.shown_folder = (
        options.folder.relative_to(previous_folder)
        if options.folder.is_relative_to(previous_folder)
        else options.folder
    )
    if not options.folder.is_dir():
        kind = "is a file" if options.folder.exists() else "does not exist"
        raise LaunchError(f"{options.shown_folder} {kind}; pass the folder with {FILE}")
    os.chdir(options.folder)
    try:
        yield
    finally:
        os.chdir(previous_folder)


def _pin_counts(options: argparse.Namespace) -> int:
    launches = read_launches(options.folder)
    outcomes = list(iter_counts(launches))
    failures = [outcome for outcome in outcomes if isinstance(outcome, Diagnostic)]
    launch_counts = [outcome for outcome in outcomes if isinstance(outcome, LaunchCounts)]
    code = _report_findings(_merge_repeated(failures), [], options)
    failed = f"{len(failures)} of {len(launches)} launches failed"
    if failures and not launch_counts:
        print(f"{pins.FILE} was not written: {failed}")
        return code
    try:
        lock = pins.read_lock(options.folder) or pins.NO_LOCK
    except LaunchError as error:
        print(escape_unprintable(str(error)))
        lock = pins.NO_LOCK
    differences = [
        difference
        for counts in launch_counts
        if lock.find_launch(counts) is not None
        for difference in pins.compare_launch(counts, lock)
    ]
    rose = any(difference.code == "PC003" for difference in differences) and not options.accept
    unwaived = _find_unwaived(options.folder, launch_counts)
    if not rose:
        pins.write_lock(options.folder, launch_counts, nvcc_release(), lock if failures else pins.NO_LOCK)
    differences = [difference if rose else difference._replace(level="note") for difference in differences]
    _report_findings(_name_causes(differences, launches, launch_counts, lock), [], options)
    if rose:
        print(f"{pins.FILE} was not changed: {_PIN} --accept{_format_folder(options)} also writes counts that rose")
        return 2 if failures else 1
    new = [f"new: {counts.launch.label}" for counts in launch_counts if lock.find_launch(counts) is None]
    nvcc = [f"nvcc: {lock.nvcc} before, {nvcc_release()} now"] if lock.nvcc not in ("", nvcc_release()) else []
    gone = [] if failures else [f"gone: {label}" for label in lock.list_removed(launch_counts)]
    for text in (*new, *gone, *nvcc):
        print(escape_unprintable(f"{pins.FILE}: {text}"))
    _report_findings(_merge_repeated(unwaived), [], options)
    if excesses := [finding for finding in unwaived if finding.level == "error"]:
        excess = count_noun(len(excesses), "count")
        print(f"{pins.FILE} was written, but ptxcount check will fail: {excess} above the limit")
    if failures:
        print(f"{pins.FILE} has no new counts of some launches: {failed}")
    return 2 if failures else 0


def _find_unwaived(folder: Path, launch_counts: Sequence[LaunchCounts]) -> list[Diagnostic]:
    """Find counts above limits and wrong kernels that no waiver in the source suppresses."""
    directives = Directives(folder, (file for counts in launch_counts for file in counts.files))
    findings = [finding for counts in launch_counts for finding in limits.check_limits(counts, directives)]
    findings += [warning for counts in launch_counts for warning in counts.warnings if warning.code < ADVICE]
    return [finding for finding in directives.apply_waivers(findings, counted_lines=set()) if finding in findings]


def _check_counts(options: argparse.Namespace) -> int:
    lock = pins.read_lock(options.folder)
    changed_lock = pins.read_lock_at(options.changed) if options.changed else None
    launches = read_launches(options.folder)
    outcomes = list(iter_counts(launches))
    findings = [outcome for outcome in outcomes if isinstance(outcome, Diagnostic)]
    launch_counts = [outcome for outcome in outcomes if isinstance(outcome, LaunchCounts)]
    is_complete = not findings
    directives = Directives(options.folder, (file for counts in launch_counts for file in counts.files))
    for counts in launch_counts:
        findings += limits.check_limits(counts, directives)
        findings += [] if lock is None else pins.compare_launch(counts, lock)
        for warning in counts.warnings:
            if warning.code < ADVICE or (options.advise and changed_lock is None):
                findings.append(warning)
            elif changed_lock is not None and (
                changed_warning := _restrict_finding(warning, _find_changed_lines(counts, changed_lock))
            ):
                findings.append(changed_warning)
    if is_complete:
        findings += directives.find_unbound()
        gone = [] if lock is None else lock.list_removed(launch_counts)
        text = f"pinned, but no longer in {FILE}: run {_PIN}"
        findings += [Diagnostic(pins.FILE, 1, "PC008", text, launch=label) for label in gone]
    lines = {(row["file"], row["line"] or 0) for counts in launch_counts for row in counts.lines if is_complete}
    reported = _merge_repeated(directives.apply_waivers(findings, counted_lines=lines))
    reported = _name_causes(reported, launches, launch_counts, lock or pins.NO_LOCK)
    if lock is None:
        reported.append(Diagnostic(FILE, 1, "PC005", f"no counts are pinned: run {_PIN}, and commit {pins.FILE}"))
    elif any(finding.code in ("PC003", "PC004") for finding in reported) and lock.nvcc not in ("", nvcc_release()):
        release = nvcc_release() or "none"
        text = f"counts were pinned with nvcc {lock.nvcc}, this is {release}: the compiler may cause changes"
        reported.append(Diagnostic(pins.FILE, 1, "PC010", text, "note"))
    reported = [_add_remedy(finding) if finding.code == "PC003" else finding for finding in reported]
    code = _report_findings(reported, launch_counts, options)
    if code == 0:
        stream = sys.stdout if options.format == "text" else sys.stderr  # other formats are for programs
        stream.write(f"{count_noun(len(launches), 'launch')} passed\n")
    return code


def _add_remedy(finding: Diagnostic) -> Diagnostic:
    return finding._replace(message=f"{finding.message}. Why: ptxcount check --advise. Intended: {_PIN} --accept")


def _name_causes(
    findings: list[Diagnostic], launches: list[Launch], launch_counts: list[LaunchCounts], lock: pins.Lock
) -> list[Diagnostic]:
    """Add the changed inputs to findings on changed counts and wrong kernels, if the lock file has hashes."""
    launch_of_label = {launch.label: launch for launch in launches}
    keys = {counts.launch.label: counts.key for counts in launch_counts}

    def name_cause(finding: Diagnostic) -> Diagnostic:
        if finding.code not in _CAUSED or not lock.files:
            return finding
        launch = launch_of_label[finding.launch]
        changes = lock.list_changes(launch, keys.get(launch.label, launch.name), list_files(launch), nvcc_release())
        cause = f"{', '.join(changes)} changed" if changes else _CAUSED[finding.code]
        return finding._replace(message="; ".join(filter(None, [finding.message, cause])))

    return [*map(name_cause, findings)]


def _compare_revision(options: argparse.Namespace) -> int:
    lock = pins.read_lock_at(options.revision)
    print(lock_changes.format_markdown(list(iter_counts(read_launches(options.folder))), lock, nvcc_release()))
    return 0


def _find_changed_lines(counts: LaunchCounts, lock: pins.Lock) -> set[tuple[str, int]]:
    """Return the files and lines of a launch whose counts differ from the lock file."""
    changes = pins.iter_changes(counts.lines, lock.find_launch(counts) or {})
    return {place for change in changes for place in (change.places or [(change.file, change.line)])}


def _restrict_finding(finding: Diagnostic, places: set[tuple[str, int]]) -> Diagnostic | None:
    """Return a finding with only those of its locations that are in ``places``; None if there are none."""
    kept_places = [place for place in ((finding.file, finding.line), *finding.also) if place in places]
    return (
        finding._replace(file=kept_places[0][0], line=kept_places[0][1], also=tuple(kept_places[1:]))
        if kept_places
        else None
    )


def _merge_repeated(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merge equal findings, and equal warnings of several launches."""
    repeated: dict[Diagnostic, dict[str, None]] = {}
    for finding in findings:
        key = finding._replace(launch="") if finding.level == "warning" else finding
        repeated.setdefault(key, {})[finding.launch] = None
    return [
        finding._replace(launch=launch, more_launches=tuple(more_launches))
        for finding, (launch, *more_launches) in repeated.items()
    ]


def _format_folder(options: argparse.Namespace) -> str:
    """Format the folder as the last argument of a command, after a space; empty for the current folder."""
    return "" if options.shown_folder == Path() else f" {shlex.quote(str(options.shown_folder))}"


def _report_findings(findings: list[Diagnostic], launch_counts: list[LaunchCounts], options: argparse.Namespace) -> int:
    """Print the findings, with paths relative to the caller's folder; return the exit code."""
    findings = [
        finding._replace(
            file=(options.shown_folder / finding.file).as_posix(),
            message=escape_unprintable(finding.message.replace(_PIN, _PIN + _format_folder(options))),
            also=tuple(((options.shown_folder / file).as_posix(), line) for file, line in finding.also),
        )
        for finding in findings
    ]
    text = FORMATS[getattr(options, "format", "text")](findings, launch_counts)
    if text:
        print(escape_unprintable(text))
    return (
        2
        if any(finding.code in UNCLEAR for finding in findings)
        else int(any(finding.level == "error" for finding in findings))
    )
