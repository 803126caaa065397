"""The report of `kernelwatch regressions`, as the text of an issue and as JSON."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelwatch.review.rows import Row
from kernelwatch.review.standing_regressions import Regression
from kernelwatch.review.verdict import format_percent
from kernelwatch.show import as_json
from kernelwatch.show.text import PASSING_OPTION, SHORTENED_FLAGS, format_quantity, name_verdict, shorten_flags
from kernelwatch.store import git
from kernelwatch.suite.benchmark_names import TIMED
from ptxcount.cli.options import plain
from ptxcount.util.grammar import count_noun

#: Version of the format. Raise it if the meaning of a key changes or a key is removed.
FORMAT = 5

#: Maximum number of regressions, of lines per regression, and of characters per line. The text must fit in an issue.
_MAX_REGRESSIONS, _MAX_LINES, _MAX_LINE_LENGTH = 12, 12, 300


def render_json(regressions: Sequence[Regression]) -> str:
    """Return all regressions as JSON."""
    described = [
        {**msgspec.to_builtins(regression), "rows": list(map(as_json.describe_row, regression.rows))}
        for regression in regressions
    ]
    document = {"format": FORMAT, "regressions": described}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def render_text(regressions: Sequence[Regression], root: Path, fence: str) -> str:
    """Return the first _MAX_REGRESSIONS regressions with their commits, changes and commands for the next steps.

    `fence` is the line before and after a code block in Markdown; empty for a terminal.
    """
    if not regressions:
        return "No regression and no drift is open.\n"
    drifts = sum(regression.is_drift for regression in regressions)
    count = f"{count_noun(len(regressions) - drifts, 'regression')}, {count_noun(drifts, 'drift')}"
    sections = (
        line for regression in regressions[:_MAX_REGRESSIONS] for line in ("", *_iter_section(regression, root))
    )
    lines = [count, *sections]
    if len(regressions) > _MAX_REGRESSIONS:
        lines += ["", f"{len(regressions) - _MAX_REGRESSIONS} more: kernelwatch regressions --json"]
    shown = [plain(line, _MAX_LINE_LENGTH).replace("`", "'") for line in lines]
    end = "To accept a regression, add it to `acknowledged.toml`: docs/review-a-change.md of kernelwatch."
    if any(PASSING_OPTION in row.flags for regression in regressions for row in regression.rows):
        end += f" {SHORTENED_FLAGS}"
    return "\n".join([*([fence] if fence else []), *shown, fence, end, ""])


def _iter_section(regression: Regression, root: Path) -> Iterator[str]:
    base, head, machine = regression.base[:8], regression.head[:8], shlex.quote(regression.machine)
    commit_count = int(git.try_text(root, "rev-list", "--count", f"{regression.base}..{regression.head}") or 0)
    heading = "DRIFT" if regression.is_drift else "REGRESSION"
    commits = head if commit_count == 1 else f"{base} -> {head}"
    yield f"{heading}  {commits}, {regression.machine}"
    if commit_count == 1:
        yield git.text(root, "show", "--no-patch", "--format=“%s”, by %an", regression.head)
    elif commit_count:
        yield f"{commit_count} commits"
    lines = [*(f"BROKEN: {failure}" for failure in regression.broken), *_iter_changes(regression.rows)]
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"not listed: {len(lines) - _MAX_LINES} more"
    if regression.is_drift:
        benches = " ".join(f"--bench {name}" for name in sorted({row.benchmark for row in regression.rows}))
        yield f"  kernelwatch measure {base} {head} --attribute rounds=4 {benches}"
    yield f"  kernelwatch compare {base} {head} --machine {machine}"
    if commit_count != 1 and regression.rows and not regression.is_drift:
        yield f"  kernelwatch bisect {shlex.quote(regression.rows[0].name)} {base} {head} --machine {machine}"


def _iter_changes(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each kernel and set of flags. `rows` must be sorted: times first, then by size of change."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.kernel, row.flags].append(row)
    for (kernel, flags), members in groups.items():
        largest, unit = members[0], members[0].unit
        ratio = largest.judgement.ratio
        subject = " ".join(filter(None, ["" if largest.kind == TIMED else largest.metric, largest.parameters_text]))
        change = f"{format_quantity(largest.base, unit)} -> {format_quantity(largest.head, unit)}"
        change += f", {format_percent(ratio)}" if ratio < 1e6 else ""  # a change from 0 has no percentage
        counts = Counter(name_verdict(row.judgement.verdict, row.kind).lower() for row in members)
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        place = " ".join(filter(None, [kernel, shorten_flags(flags)]))
        yield f"{place}: {listed}; largest: {subject}: {change}"
