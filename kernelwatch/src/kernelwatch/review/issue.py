"""The regressions that stand, as the text of an issue: never longer than one may be, and safe whatever names hold."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwatch.review.regressions import Regression
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import percent
from kernelwatch.show.text import plain, quantity, short_flags, word
from kernelwatch.store import git
from ptxcount.gate.blocks import Block, Name, Paragraph, Said, Table
from ptxcount.gate.markdown import code, fitted

#: Regressions that are told, and characters of the tables of each: with all else fewer than an issue may have.
_TOLD, _ROOM = 6, 6_000

_HEADERS = ["kernel", "flags", "configurations", "changed most", "before", "after", "change"]
_ALIGN = ["left", "left", "right", "left", "right", "right", "right"]


def render(regressions: Sequence[Regression], root: Path) -> str:
    """What stands, newest first: the commit that brought it, what changed by how much, and what to do."""
    found: list[str] = []
    for each in regressions[:_TOLD]:
        found += _section(each, root)
    if len(regressions) > _TOLD:
        found += [f"**{len(regressions) - _TOLD} more** are on the page Regressions of the site.", ""]
    end = "To accept a regression, name it in `acknowledged.toml`: docs/acknowledge.md."
    return "\n".join([*found, end if regressions else "No regression stands: each was mended or acknowledged."]) + "\n"


def _section(regression: Regression, root: Path) -> Iterator[str]:
    base, head, machine = regression.base, regression.head, regression.machine
    commits = git.between(root, base, head) or []
    subject, _, author = (git.asked(root, "show", "--no-patch", "--format=%s%n%an", head) or "").partition("\n")
    named = ["“", Said(subject), "”, by ", Said(author)] if subject else ["unknown to git here"]
    alone = len(commits) == 1
    of = "" if alone else f"One of {len(commits) or 'several'} commits; the last is "
    where = code(head[:8]) if alone else f"Between {code(base[:8])} and {code(head[:8])}"
    yield from (f"### {where} on {code(machine)}", "")
    failing = [Paragraph([Said(plain(each, _ROOM // 10))], each.verdict.value) for each in regression.broken[:_TOLD]]
    rows = list(_rows(regression.rows))
    blocks: list[Block] = [
        Paragraph([of, *named]),
        *failing,
        *([Table(_HEADERS, _ALIGN, rows, "**{} more rows** are left out.")] if rows else []),
        Paragraph([Name(f"kernelwatch compare {base[:8]} {head[:8]} --machine {machine}")]),
    ]
    if not alone and regression.rows:
        metric = shlex.quote(regression.rows[0].name)
        blocks.append(Paragraph([Name(f"kernelwatch bisect {metric} {base[:8]} {head[:8]} --machine {machine}")]))
    yield from fitted(blocks, _ROOM)


def _rows(rows: Sequence[Row]) -> Iterator[list[str]]:
    """A row a kernel and flags, the largest change first."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.kernel, row.flags].append(row)
    for (kernel, flags), every in groups.items():
        most = every[0]
        ratio = most.judgement.ratio
        yield [
            Name(kernel), Name(short_flags(flags)), f"{len(every)} {word(most.judgement.verdict, most.kind).lower()}",
            Name(" ".join(filter(None, [most.metric, most.place]))), Said(quantity(most.base, most.unit)),
            Said(quantity(most.head, most.unit)), Said(percent(ratio) if ratio < 1e6 else "from 0"),
        ]  # fmt: skip
