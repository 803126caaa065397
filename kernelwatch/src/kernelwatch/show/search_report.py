"""The outcome of `kernelwatch bisect`, as text and as JSON."""

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from kernelwatch.config import settings
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import format_percent
from kernelwatch.show import as_json, report, terminal
from kernelwatch.show.text import format_quantity, name_verdict
from kernelwatch.store import git
from kernelwatch.workflow.bisect.search import SearchOutcome
from ptxcount.cli.options import plain
from ptxcount.util.grammar import choose_form, count_noun

#: Version of the format. Raise it if the meaning of a key changes or a key is removed.
FORMAT = 6


def render_json(outcome: SearchOutcome) -> str:
    """Return the outcome as JSON; an infinite ratio is null. The review has the format of `compare --format json`."""
    review = outcome.review and json.loads(as_json.render_json(outcome.review))
    fields = msgspec.to_builtins(replace(outcome, review=None))
    change = outcome.change and as_json.describe_row(outcome.change)
    document = {"format": FORMAT, "exit_code": outcome.exit_code, **fields, "change": change, "review": review}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def render_text(outcome: SearchOutcome, root: Path) -> str:
    """Return the outcome as text: culprit or reason, change, judged commits, review, changed source lines."""
    lines = (
        line for paragraph in _iter_lines(outcome, root) for line in terminal.wrap_line(paragraph, indent=6) or [""]
    )
    return "".join(f"{line}\n" for line in lines)


def _iter_lines(outcome: SearchOutcome, root: Path) -> Iterator[str]:
    def format_commit(commit: str, *judged: str) -> str:
        subject = plain(git.text(root, "show", "--no-patch", "--format=%s", commit))
        return " ".join([commit[:8], *judged, subject])

    if outcome.culprit:
        yield f"FOUND  {outcome.culprit}"
        form = "--format=author   %an <%ae>%ndate     %aI%nsubject  %s"
        words = ("--stat=90,60,12", "--diff-merges=first-parent", form, outcome.culprit)
        summary = git.text(root, "-c", "core.quotePath=false", "show", *words)
        yield from (f"  {plain(line)}".rstrip() for line in summary.splitlines())
    elif outcome.exit_code == 125:
        yield f"UNDECIDABLE  {outcome.reason}"
        yield from (f"  {format_commit(suspect)}" for suspect in outcome.suspects)
    else:
        heading = "NO DIFFERENCE" if outcome.change is None else "NO CULPRIT"
        yield f"{heading}  {outcome.good[:8]} and {outcome.bad[:8]}: {outcome.reason}"
    yield ""
    if outcome.change is not None:
        yield plain(outcome.change.name)
        yield f"  {_format_change(outcome.change)} from {outcome.good[:8]} to {outcome.bad[:8]}"
        if outcome.matched > 1:
            yield f"{outcome.matched} configurations match {plain(outcome.metric)!r}; this one has the worst verdict."
    count = len(outcome.commits)
    touch = choose_form(count, "touches", "touch")
    yield f"{count_noun(count, 'commit')} {touch} {settings.package_name() or 'the project'}; {len(outcome.log)} judged"
    yield from (textwrap.shorten(format_commit(*judged_commit), terminal.COLUMNS - 2) for judged_commit in outcome.log)
    if outcome.review is not None:
        yield from ("", *report.render_review(outcome.review).splitlines())
    if outcome.counted:
        none = "" if outcome.lines else ": none"
        yield from ("", f"Source lines with changed memory accesses, of {plain(outcome.counted)}{none}")
        yield from map(plain, outcome.lines)
    yield from (f"Note: {plain(note)}" for note in outcome.notes)


def _format_change(row: Row) -> str:
    """Return a text such as "SLOWER: 783 µs -> 1073 µs (+37 %)"."""
    unit = "" if row.unit == "seconds" else f" {row.unit}"
    values = f"{format_quantity(row.base, row.unit)} -> {format_quantity(row.head, row.unit)}{unit}"
    share = f" ({format_percent(row.judgement.ratio)})" if math.isfinite(row.judgement.ratio) and row.base > 0 else ""
    return f"{name_verdict(row.judgement.verdict, row.kind)}: {values}{share}"
