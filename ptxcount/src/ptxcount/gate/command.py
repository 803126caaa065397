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
from . import limits, pins
from .count_cache import nvcc_release
from .counting import LaunchCounts, count_launches, list_files
from .diagnostics import FALL, GONE, NOT_COUNTED, NOT_PINNED, OTHER_COMPILER, RISE, UNCLEAR, WRONG_KERNEL, Diagnostic
from .directives import Directives
from .formats import FORMATS, format_markdown
from .launches import FILE, Launch, TableError, read_launches

#: The command in messages; `_report_findings` appends the folder.
_PIN = "ptxcount pin"
#: Codes of findings that name the changed inputs -> the text if no input changed.
_CAUSED = {**dict.fromkeys((RISE, FALL), "no file of the project changed, only the count"), WRONG_KERNEL: ""}


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ptxcount", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    text = f"print a [[launch]] entry for each kernel of these files that {FILE} lacks"
    init_parser = commands.add_parser("init", help=text, description=f"{text}, with guessed sizes: replace them")
    init_parser.add_argument("files", type=Path, nargs="+", metavar="FILE.cu", help="file with __global__ functions")
    text = "include folder for nvcc"
    init_parser.add_argument("-I", "--include", action="append", default=[], metavar="FOLDER", help=text)
    init_parser.add_argument("--flags", default="", metavar="FLAGS", help="options for nvcc, as --flags='-std=c++20'")
    parsers = {}
    for name, text, codes in (
        ("pin", f"write the counts into {pins.FILE}, and print changes",
         "Exit codes: 0 written; 1 a count rose (see --accept), or each launch had a kernel error; 2 any other error."),
        ("check", f"compare counts with limits and with {pins.FILE}",
         "Exit codes: 0 passed; 1 a check failed, such as a limit or a pinned count; 2 could not be checked."),
        ("compare", f"print count changes since a revision's {pins.FILE}, as Markdown",
         "Exit codes: 0 printed; 2 could not be compared."),
    ):  # fmt: skip
        parsers[name] = commands.add_parser(name, help=text, description=text, epilog=codes)
        if name == "compare":
            parsers[name].add_argument("revision", metavar="REVISION", help="git revision, such as main")
        folder_help = f"folder of {FILE} (default: .)"
        parsers[name].add_argument("folder", type=Path, nargs="?", default=Path(), help=folder_help)
    parsers["pin"].add_argument("--accept", action="store_true", help="also write counts that rose")
    text = "print advice on inefficient accesses; ADVICE.md in ptxcount's sources describes its codes"
    parsers["check"].add_argument("--advise", action="store_true", help=text)
    text = f"print advice only on accesses whose counts differ from {pins.FILE} in the git revision REVISION"
    parsers["check"].add_argument("--changed", metavar="REVISION", help=text)
    text = "format of the findings (default: %(default)s)"
    parsers["check"].add_argument("--format", choices=FORMATS, default="text", help=text)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit code: 0 passed, 1 failed, 2 not checked, or that of `run_command`."""
    command_words = sys.argv[1:] if words is None else words
    return run_command("ptxcount", lambda: _run_words(command_words), 2)


@scratch_folder("ptxcount-")
def _run_words(words: Sequence[str]) -> int:
    """Run a command line and return its exit code. An error of ``pin`` or ``check`` is reported as a finding."""
    options = _make_parser().parse_args(attach_flags(words))
    commands = {"pin": _pin_counts, "check": _check_counts, "compare": _compare_revision}
    try:
        if options.command == "init":
            from .table_entries import print_entries  # noqa: PLC0415 - with all of NumPy, which only init needs

            return print_entries(options.files, join_flags(options.include, options.flags))
        with _enter_folder(options):
            return commands[options.command](options)
    except BrokenPipeError:  # `run_command` returns its exit code
        raise
    except Exception as error:  # noqa: BLE001 - exit code 1 means that counts do not hold, so a traceback may not set it
        is_table = isinstance(error, TableError)
        text = str(error) if is_table else f"{type(error).__name__}: {error}"
        file, line = getattr(error, "file", FILE), getattr(error, "line", 1)
        if options.command in ("pin", "check"):
            return _report_findings([Diagnostic(file, line, NOT_COUNTED, text)], [], options)
        sys.stderr.write(escape_unprintable(f"{file}:{line}: {text}\n" if is_table else f"{text}\n"))
        return 2


@contextmanager
def _enter_folder(options: argparse.Namespace) -> Iterator[None]:
    """Change to ``options.folder`` within the block; set ``options.shown_folder`` for messages.

    Paths in the table, also in nvcc's flags, are relative to this folder. Paths in messages are relative to the
    caller's folder, or absolute if they lead outside.
    """
    previous_folder, options.folder = Path.cwd(), options.folder.resolve()
    is_below = options.folder.is_relative_to(previous_folder)
    options.shown_folder = options.folder.relative_to(previous_folder) if is_below else options.folder
    if not options.folder.is_dir():
        kind = "is a file" if options.folder.exists() else "does not exist"
        raise LaunchError(f"{options.shown_folder} {kind}; pass the folder with {FILE}")
    os.chdir(options.folder)
    try:
        yield
    finally:
        os.chdir(previous_folder)


def _pin_counts(options: argparse.Namespace) -> int:
    """Write the lock file unless all launches failed, or a count rose without ``--accept``; return the exit code."""
    launches = read_launches(options.folder)
    launch_counts, failures = count_launches(launches)
    code = _report_findings(_merge_repeated(failures), [], options)
    failed = f"{len(failures)} of {len(launches)} launches failed"
    if failures and not launch_counts:
        print(f"{pins.FILE} was not written: {failed}")
        return code
    try:
        lock = pins.read_lock(options.folder) or pins.NO_LOCK
    except LaunchError as error:  # the invalid file is replaced
        print(escape_unprintable(str(error)))
        lock = pins.NO_LOCK
    pinned_counts = [counts for counts in launch_counts if lock.find_launch(counts) is not None]
    differences = [difference for counts in pinned_counts for difference in pins.compare_launch(counts, lock)]
    is_refused = any(difference.code == RISE for difference in differences) and not options.accept
    unwaived = _find_unwaived(options.folder, launch_counts)  # before writing: it raises for an invalid directive
    if not is_refused:
        pins.write_lock(options.folder, launch_counts, nvcc_release(), lock if failures else pins.NO_LOCK)
        differences = [difference._replace(level="note") for difference in differences]
    _report_findings(_name_causes(differences, launches, launch_counts, lock), [], options)
    if is_refused:
        print(f"{pins.FILE} was not changed: {_PIN} --accept{_format_folder(options)} also writes counts that rose")
        return 2 if failures else 1
    for change in _list_changes(lock, launch_counts, is_complete=not failures):
        print(escape_unprintable(f"{pins.FILE}: {change}"))
    _report_findings(_merge_repeated(unwaived), [], options)
    if excesses := [finding for finding in unwaived if finding.level == "error"]:
        excess = count_noun(len(excesses), "count")
        print(f"{pins.FILE} was written, but ptxcount check will fail: {excess} above a limit")
    if failures:
        print(f"{pins.FILE} was written without new counts of failed launches: {failed}")
    return 2 if failures else 0


def _list_changes(lock: pins.Lock, launch_counts: Sequence[LaunchCounts], *, is_complete: bool) -> list[str]:
    """List the changes since a lock file, except changed counts: new launches, launches that are gone, another nvcc.

    Launches are gone only if the counts are complete: otherwise a missing launch may be one that failed.
    """
    changes = [f"new: {counts.launch.label}" for counts in launch_counts if lock.find_launch(counts) is None]
    if is_complete:
        changes += [f"gone: {label}" for label in lock.list_removed(launch_counts)]
    if lock.nvcc not in ("", nvcc_release()):
        changes.append(f"nvcc: {lock.nvcc} before, {nvcc_release() or 'none'} now")
    return changes


def _find_unwaived(folder: Path, launch_counts: Sequence[LaunchCounts]) -> list[Diagnostic]:
    """Find exceeded limits, and warnings other than advice, that no waiver in the source suppresses."""
    directives = Directives(folder, launch_counts)
    findings = [finding for counts in launch_counts for finding in limits.check_limits(counts, directives)]
    findings += [warning for counts in launch_counts for warning in counts.warnings if not warning.is_advice]
    unwaived = directives.apply_waivers(findings, counted_lines=set())
    return [finding for finding in unwaived if finding in findings]  # without those on the waivers themselves


def _check_counts(options: argparse.Namespace) -> int:
    lock = pins.read_lock(options.folder)
    changed_lock = pins.read_lock_at(options.changed) if options.changed else None
    launches = read_launches(options.folder)
    launch_counts, failures = count_launches(launches)
    directives = Directives(options.folder, launch_counts)
    findings, counted_lines = [*failures], set[tuple[str, int]]()
    for counts in launch_counts:
        findings += limits.check_limits(counts, directives)
        if lock is not None:
            findings += pins.compare_launch(counts, lock)
        findings += _select_warnings(counts, changed_lock, wants_advice=options.advise)
    if not failures:  # else a pinned launch, a limit or a waiver that seems unused may belong to a launch that failed
        findings += directives.iter_unused_limits()
        findings += _list_gone(lock or pins.NO_LOCK, launch_counts)
        counted_lines = {(row["file"], row["line"] or 0) for counts in launch_counts for row in counts.lines}
    reported = _merge_repeated(directives.apply_waivers(findings, counted_lines=counted_lines))
    reported = _name_causes(reported, launches, launch_counts, lock or pins.NO_LOCK)
    reported += _judge_lock(lock, reported)
    code = _report_findings([*map(_add_remedy, reported)], launch_counts, options)
    if code == 0:
        stream = sys.stdout if options.format == "text" else sys.stderr  # other formats are for programs
        stream.write(f"{count_noun(len(launches), 'launch')} passed\n")
    return code


def _list_gone(lock: pins.Lock, launch_counts: Sequence[LaunchCounts]) -> list[Diagnostic]:
    text = f"pinned, but no longer in {FILE}; run {_PIN}"
    return [Diagnostic(pins.FILE, 1, GONE, text, launch=label) for label in lock.list_removed(launch_counts)]


def _judge_lock(lock: pins.Lock | None, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return a finding if there is no lock file, or a note if counts changed that another nvcc pinned."""
    if lock is None:
        return [Diagnostic(FILE, 1, NOT_PINNED, f"no counts are pinned; run {_PIN}, and commit {pins.FILE}")]
    if lock.nvcc in ("", nvcc_release()) or not any(finding.code in (RISE, FALL) for finding in findings):
        return []
    now = f"nvcc is {nvcc_release() or 'none'} now"
    text = f"counts were pinned with nvcc {lock.nvcc}, but {now}: this may change counts"
    return [Diagnostic(pins.FILE, 1, OTHER_COMPILER, text, "note")]


def _select_warnings(counts: LaunchCounts, changed_lock: pins.Lock | None, *, wants_advice: bool) -> list[Diagnostic]:
    """Return the advice to print, then all other warnings. A ``changed_lock`` restricts advice to changed lines."""
    advice = [warning for warning in counts.warnings if warning.is_advice]
    if changed_lock is not None:
        changes = pins.iter_changes(counts.lines, changed_lock.find_launch(counts) or {})
        changed = {place for change in changes for place in (change.places or [(change.file, change.line)])}
        advice = [*_restrict_findings(advice, changed)]
    elif not wants_advice:
        advice = []
    return advice + [warning for warning in counts.warnings if not warning.is_advice]


def _add_remedy(finding: Diagnostic) -> Diagnostic:
    remedy = f". Why: ptxcount check --advise. Intended: {_PIN} --accept" if finding.code == RISE else ""
    return finding._replace(message=finding.message + remedy)


def _name_causes(
    findings: list[Diagnostic], launches: list[Launch], launch_counts: list[LaunchCounts], lock: pins.Lock
) -> list[Diagnostic]:
    """Append the changed inputs to findings on changed counts and wrong kernels, as in "; k.cu, nvcc changed".

    If no input changed, append the text of `_CAUSED`. Findings stay unchanged if the lock file has no hashes of files.
    """
    launch_of_label = {launch.label: launch for launch in launches}
    keys = {counts.launch.label: counts.key for counts in launch_counts}  # a launch that failed has no key

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
    launch_counts, failures = count_launches(read_launches(options.folder))
    print(format_markdown(launch_counts, failures, lock, nvcc_release()))
    return 0


def _restrict_findings(findings: Iterable[Diagnostic], places: set[pins.Place]) -> Iterator[Diagnostic]:
    """Yield the findings with locations in ``places``, without their other locations."""
    for finding in findings:
        kept_places = [place for place in ((finding.file, finding.line), *finding.also) if place in places]
        if kept_places:
            (file, line), *also = kept_places
            yield finding._replace(file=file, line=line, also=tuple(also))


def _merge_repeated(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merge equal findings of one launch, and equal warnings of several launches."""
    launches_by_finding: dict[Diagnostic, dict[str, None]] = {}
    for finding in findings:
        key = finding._replace(launch="") if finding.level == "warning" else finding
        launches_by_finding.setdefault(key, {})[finding.launch] = None
    return [
        finding._replace(launch=launch, more_launches=tuple(more_launches))
        for finding, (launch, *more_launches) in launches_by_finding.items()
    ]


def _format_folder(options: argparse.Namespace) -> str:
    """Format the folder as the last argument of a command, such as " kernels"; the current folder as ""."""
    return "" if options.shown_folder == Path() else f" {shlex.quote(str(options.shown_folder))}"


def _report_findings(findings: list[Diagnostic], launch_counts: list[LaunchCounts], options: argparse.Namespace) -> int:
    """Print the findings; return 2 if a launch could not be checked, else 1 if a finding is an error, else 0."""
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
    if any(finding.code in UNCLEAR for finding in findings):
        return 2
    return int(any(finding.level == "error" for finding in findings))
