"""The regressions that stand, as the text of an issue: never longer than one may be, and safe whatever names hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwatch.review.regressions.culprits import Culprits, between, culprit, described
from kernelwatch.review.regressions.standing import Regression
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show.markdown import LIMIT, code, escape
from kernelwatch.show.text import quantity, short_flags, word

#: The first line, by which a workflow finds its own issue again, and the second, by which it knows whether one is due.
MARKER = "<!-- coalescing-watch: regressions of main -->"
STANDING = "<!-- standing: {} -->"

#: Characters that a regression's table may have, and all that is no regression's; regressions that are told.
_ROOM, _REST, _TOLD = 6_000, 1_000, 8


def render(regressions: Sequence[Regression], known: Culprits, root: Path) -> str:
    """What stands, newest first: the commit that brought it, what changed by how much, and what to do."""
    lines = [MARKER, STANDING.format(len(regressions)), ""]
    if not regressions:
        lines.append("No regression stands: each was mended or acknowledged.")
    room, told = LIMIT - _REST, 0
    for each in regressions[:_TOLD]:
        section = list(_section(each, known, root))
        room -= sum(len(line) + 1 for line in section)
        if room < 0:
            break
        lines += section
        told += 1
    if told < len(regressions):
        lines += [f"**{len(regressions) - told} more** are on the page Regressions of the site.", ""]
    if regressions:
        lines += [
            "<sub>Kept up to date by the nightly history, and closed when nothing stands. To accept a regression, name "
            "it in <code>acknowledged.toml</code>: docs/acknowledge.md.</sub>"
        ]
    return "\n".join(lines) + "\n"


def _section(regression: Regression, known: Culprits, root: Path) -> Iterator[str]:
    base, head = regression.base, regression.head
    found = culprit(regression, known, root)
    if found is None:
        count = len(between(base, head, root))
        yield f"### Between {code(base[:8])} and {code(head[:8])} on {code(regression.machine)}"
        yield ""
        one = described(head, root)
        yield f"One of {count or 'several'} commits; the last is {_named(one.subject, one.author)}"
    else:
        yield f"### {code(found.commit[:8])} on {code(regression.machine)}"
        yield ""
        yield _named(found.subject, found.author)
    yield ""
    yield "| kernel | flags | configurations | changed most | before | after | change |"
    yield "| :-- | :-- | --: | :-- | --: | --: | --: |"
    yield from _rows(regression.rows)
    yield ""
    yield f"<code>make compare BASE={base[:8]} HEAD={head[:8]} MACHINE={escape(regression.machine)}</code>"
    yield ""


def _named(subject: str, author: str) -> str:
    return f"“{escape(subject)}”, by {escape(author)}" if subject else "unknown to git here"


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    """A row a kernel and flags, the largest change first, as many as there is room for."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.kernel, row.flags].append(row)
    room = _ROOM
    for place, ((kernel, flags), every) in enumerate(groups.items()):
        most = every[0]
        ratio = most.judgement.ratio
        cells = [
            code(kernel), code(short_flags(flags)), f"{len(every)} {word(most.judgement.verdict, most.kind).lower()}",
            code(" ".join(filter(None, [most.metric, most.place]))), escape(quantity(most.base, most.unit)),
            escape(quantity(most.head, most.unit)), escape(percent(ratio) if ratio < 1e6 else "from 0"),
        ]  # fmt: skip
        line = f"| {' | '.join(cells)} |"
        room -= len(line)
        if room < 0:
            yield f"\n**{len(groups) - place} more rows** are left out."
            return
        yield line
