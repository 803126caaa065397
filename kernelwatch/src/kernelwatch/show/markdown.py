"""The comparison as Markdown for a comment: never longer than a comment may be, and safe whatever names hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from kernelwatch.review.comparison import Comparison
from kernelwatch.review.groups import Group, groups
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.show import text

#: Characters that a comment may have on GitHub.
LIMIT = 65_536

#: The first line, by which a workflow finds its own comment on a machine again.
MARKER = "<!-- coalescing-watch: compare on {} -->"

#: Share of a comment that the list of failing configurations, and each list of what only one commit has, may take.
_FAILING_SHARE, _ASIDE_SHARE = 1 / 4, 1 / 16

#: Share that the changes by kernel and flags may take.
_GROUPS_SHARE = 1 / 4

#: How Markdown aligns a column.
_ALIGN = {"left": ":--", "right": "--:"}

#: These are nothing but themselves, underscores and full stops only within a word.
_HARMLESS = re.compile(r"[A-Za-z0-9 ,()=+%;µ…∞-]|(?<=[A-Za-z0-9])[_.](?=[A-Za-z0-9])")


def escape(name: object) -> str:
    """A text that shows as it is, in a table too: all that could be markup becomes a numeric entity.

    An at sign is followed by a word joiner, which nobody sees: else it could still mention someone or make an address.
    """
    return "".join(_escaped(text.plain(name)))


def _escaped(shown: str) -> Iterator[str]:
    for place, character in enumerate(shown):
        if _HARMLESS.match(shown, place) and not shown[:place].lower().endswith("www"):
            yield character
        else:
            yield f"&#{ord(character)};" + ("&#8288;" if character == "@" else "")


def code(name: object) -> str:
    """A name in a fixed-width font, where no mention is made; backticks would show the entities instead."""
    return f"<code>{escape(name)}</code>"


def render(comparison: Comparison, limit: int = LIMIT, at_least: float = 0.0) -> str:
    """The verdict, the largest changes, and what changed by kernel and flags; folded: each configuration, worst first.

    Parameters
    ----------
    comparison : Comparison
        The two commits.
    limit : int
        The most characters.
    at_least : float
        The relative change from which on one is listed, unless it is folded.
    """
    top = list(_top(comparison, at_least))
    broken = f"{len(comparison.broken)} configurations fail in head and did not in base"
    top += _list(broken, _failing(comparison), int(limit * _FAILING_SHARE))
    for title, told in text.TOLD.items():
        top += _list(title, [f"- {escape(each)}" for each in told(comparison)], int(limit * _ASIDE_SHARE))
    top += _groups(groups(comparison, at_least), int(limit * _GROUPS_SHARE))
    bottom = [text.folded(comparison, at_least), ""]
    for note in text.notes(comparison):
        bottom += [f"Note: {code(note)}", ""]
    for title, kernels, lines in text.asides(comparison):
        listed = [f"- {count} of {code(benchmark)}: {reason}" for count, benchmark, reason in lines]
        bottom += [f"<details><summary>{title}: {escape(kernels)}</summary>", ""]
        bottom += [*_fitting(listed, int(limit * _ASIDE_SHARE), "- and {} more benchmarks".format), "</details>", ""]
    bottom.append(f"<sub>{text.legend(comparison)}</sub>")
    table = list(_table(comparison, limit - _length(top) - _length(bottom)))
    return "\n".join([*top, *table, *bottom]) + "\n"


def _top(comparison: Comparison, at_least: float) -> Iterator[str]:
    """What is never cut."""
    yield MARKER.format(escape(comparison.machine))
    yield f"### {comparison.conclusion.value}"
    yield ""
    distance = f" ({comparison.distance})" if comparison.distance else ""
    yield f"{' → '.join(map(code, text.sides(comparison)))}{distance} on {code(comparison.machine)}"
    yield ""
    yield text.counts(comparison)
    yield ""
    if comparison.choice:
        yield escape(comparison.choice)
        yield ""
    for each in text.largest(comparison, at_least):
        yield f"Largest: {code(each)}"
        yield ""


def _failing(comparison: Comparison) -> list[str]:
    return [f"- {code(lone.name)}" for lone in comparison.broken]


def _groups(found: list[Group], room: int) -> Iterator[str]:
    """What changed by kernel and flags, as much as there is room for."""
    lines = []
    for group in found:
        kernel, flags, *others = text.group_cells(group)
        lines.append(_line([code(kernel), code(flags), *map(escape, others)]))
    if lines:
        yield _line(text.GROUP_HEADERS)
        yield _line(_ALIGN[side] for side in text.GROUP_ALIGN)
        yield from _fitting(lines, room, "\n**{} more rows are left out**".format)
        yield ""


def _list(title: str, lines: list[str], room: int) -> Iterator[str]:
    if lines:
        yield f"**{title}:**"
        yield ""
        yield from _fitting(lines, room, "- and {} more".format)
        yield ""


def _table(comparison: Comparison, room: int) -> Iterator[str]:
    """Each configuration that changed, folded, worst first, as many as there is room for."""
    rows = [_line(_cells(row, comparison.peak)) for row in comparison.changed]
    if rows:
        head = [f"<details><summary>Every configuration that changed: {len(rows)}</summary>", ""]
        head += [_line(text.HEADERS), _line(_ALIGN[side] for side in text.ALIGN)]
        tail = ["", "</details>", ""]
        more = "\n**{} more changed configurations are left out**: a comment has no more room.".format
        yield from [*head, *_fitting(rows, room - _length(head) - _length(tail), more), *tail]


def _cells(row: Row, peak: float | None) -> Iterator[str]:
    verdict, name, *others = text.cells(row, peak)
    yield f"**{verdict}**" if row.judgement.verdict is Verdict.SLOW else verdict
    yield code(name)
    yield from map(escape, others)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fitting(lines: list[str], room: int, more: Callable[[int], str]) -> list[str]:
    """The first lines, as many as fit, and if some do not, a line that says how many."""
    if _length(lines) <= room:
        return lines
    room -= _length([more(len(lines))])
    fitting: list[str] = []
    for line in lines:
        room -= _length([line])
        if room < 0:
            break
        fitting.append(line)
    return [*fitting, more(len(lines) - len(fitting))]


def _length(lines: list[str]) -> int:
    """Characters of lines, each with its end."""
    return sum(len(line) + 1 for line in lines)
