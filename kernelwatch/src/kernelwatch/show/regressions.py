"""The report on the stored history, as the text of an issue and as JSON."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelwatch.review.regressions import Regression
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show import as_json
from kernelwatch.show.text import plain, quantity, short_flags, word
from kernelwatch.store import git
from kernelwatch.store.points import TIMED

#: Of the JSON: bumped when a key changes its meaning or goes.
FORMAT = 5

#: Regressions that are told, lines of each, and characters of a line: fewer than an issue may have.
_TOLD, _LINES, _LONGEST = 12, 12, 300


def render_json(regressions: Sequence[Regression]) -> str:
    """Return all regressions as JSON."""
    described = [
        {**msgspec.to_builtins(regression), "rows": list(map(as_json.describe_row, regression.rows))}
        for regression in regressions
    ]
    document = {"format": FORMAT, "regressions": described}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def render_text(regressions: Sequence[Regression], root: Path, fence: str) -> str:
    """Return what stands: the commit that brought it, what changed by how much, and what to do; in a fence, if any."""
    if not regressions:
        return "No regression stands, and nothing drifts: each was mended or acknowledged.\n"
    drifts = sum(regression.is_drift for regression in regressions)
    count = f"{_count(len(regressions) - drifts, 'regression')}, {_count(drifts, 'drift')}"
    sections = (line for each in regressions[:_TOLD] for line in ("", *_section(each, root)))
    lines = [count, *sections]
    if len(regressions) > _TOLD:
        lines += ["", f"{len(regressions) - _TOLD} more: kernelwatch regressions --json"]
    shown = [plain(line, _LONGEST).replace("`", "'") for line in lines]
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
        counts = Counter(word(row.judgement.verdict, row.kind).lower() for row in every)
        listed = ", ".join(f"{count} {name}" for name, count in counts.items())
        yield f"{' '.join(filter(None, [kernel, short_flags(flags)]))}: {listed}; most: {what}: {change}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
