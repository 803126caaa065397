"""`kernelwatch regressions`: the report on the stored history, as the text of an issue and as JSON."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelwatch.cli.failures import report_failure
from kernelwatch.config.project_root import ROOT
from kernelwatch.error_text import one_line
from kernelwatch.review.commits import CannotCompareError, few, histories
from kernelwatch.review.regressions import Regression, standing
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show.text import plain, quantity, short_flags, word
from kernelwatch.store import git
from kernelwatch.store.graph import UNKNOWN
from kernelwatch.store.results import TIMED

#: Of the JSON: bumped when a key changes its meaning or goes.
FORMAT = 5

#: Regressions that are told, lines of each, and characters of a line: fewer than an issue may have.
_TOLD, _LINES, _LONGEST = 12, 12, 300


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the report; return the exit code that the epilog describes."""
    parser = argparse.ArgumentParser(
        description="Say which regressions of the stored history stand; in a file, as an issue's text.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
A regression came with one commit, or it is a drift: steps too small for the review, whose ends it calls SLOWER.

exit codes:
  0  nothing stands: each was mended or acknowledged
  1  something does
  2  the results cannot be read, or something unforeseen befell the command

docs/review-a-change.md of kernelwatch says what a drift is, and how one is confirmed.
""",
    )
    parser.add_argument("--machine", help="whose results (default: all machines)")
    parser.add_argument("--drift", action="store_true", help="tell drifts alone")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    options = parser.parse_args(words)
    try:
        known = histories(options.machine, root)
        every = [each for one in known for each in standing(one) if each.is_drift or not options.drift]
    except (CannotCompareError, OSError, ValueError) as error:
        return report_failure("tell regressions", one_line(error))
    if unknown := {commit for one in known for commit, branch in one.graph.branches.items() if branch == UNKNOWN}:
        told = few(sorted(unknown))
        print(f"left out: {told}, which git does not know here; run: git fetch --unshallow --all", file=sys.stderr)
    if options.json:
        document = {"format": FORMAT, "regressions": msgspec.to_builtins(every)}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")
    else:
        sys.stdout.write(text(every, root, "" if sys.stdout.isatty() else "```"))
    return int(bool(every))


def text(regressions: Sequence[Regression], root: Path, fence: str) -> str:
    """Return what stands: the commit that brought it, what changed by how much, and what to do; in a fence, if any."""
    if not regressions:
        return "No regression stands: each was mended or acknowledged.\n"
    lines = [line for each in regressions[:_TOLD] for line in ("", *_section(each, root))]
    if len(regressions) > _TOLD:
        lines += ["", f"{len(regressions) - _TOLD} more: kernelwatch regressions --json"]
    shown = [plain(line, _LONGEST).replace("`", "'") for line in lines[1:]]
    end = "To accept a regression, name it in `acknowledged.toml`: docs/review-a-change.md."
    return "\n".join([*[fence] * bool(fence), *shown, fence, end, ""])


def _section(regression: Regression, root: Path) -> Iterator[str]:
    base, head, machine = regression.base[:8], regression.head[:8], regression.machine
    count = int(git.asked(root, "rev-list", "--count", f"{regression.base}..{regression.head}") or 0)
    brought = "DRIFT" if regression.is_drift else "REGRESSION"
    yield f"{brought}  {f'{base} -> ' * (count != 1)}{head}, {machine}"
    if count == 1:
        yield git.text(root, "show", "--no-patch", "--format=“%s”, by %an", regression.head)
    elif count:
        yield f"{count} commits"
    every = [*(f"BROKEN: {each}" for each in regression.broken), *_changes(regression.rows)]
    yield from every[:_LINES]
    if len(every) > _LINES:
        yield f"not listed: {len(every) - _LINES} more"
    if regression.is_drift:
        benches = " ".join(f"--bench {name}" for name in sorted({row.benchmark for row in regression.rows}))
        yield f"  kernelwatch measure {base} {head} --attribute rounds=4 {benches}"
    yield f"  kernelwatch compare {base} {head} --machine {machine}"
    if count != 1 and regression.rows and not regression.is_drift:
        yield f"  kernelwatch bisect {shlex.quote(regression.rows[0].name)} {base} {head} --machine {machine}"


def _changes(rows: Sequence[Row]) -> Iterator[str]:
    """A line a kernel and flags, the largest change first."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.kernel, row.flags].append(row)
    for (kernel, flags), every in groups.items():
        most, unit = every[0], every[0].unit
        ratio = most.judgement.ratio
        what = " ".join(filter(None, ["" if most.kind == TIMED else most.metric, most.place]))
        change = f"{quantity(most.base, unit)} -> {quantity(most.head, unit)}"
        change += f", {percent(ratio)}" if ratio < 1e6 else ""  # from 0
        told = f"{len(every)} {word(most.judgement.verdict, most.kind).lower()}"
        yield f"{' '.join(filter(None, [kernel, short_flags(flags)]))}: {told}; most: {what}: {change}"
