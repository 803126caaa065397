"""The comparison as Markdown for a comment: never longer than a comment may be, and safe whatever names hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from report.compare import text
from report.compare.comparison import Comparison
from report.compare.rows import Row
from report.compare.verdict import Verdict

#: Characters that a comment may have on GitHub.
LIMIT = 65_536

#: The first line, by which a workflow finds its own comment on a machine again.
MARKER = "<!-- coalescing-watch: compare on {} -->"

#: Share of a comment that the list of failing configurations, and each list of what only one commit has, may take.
_FAILING_SHARE, _ASIDE_SHARE = 1 / 4, 1 / 16

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


def render(comparison: Comparison, limit: int = LIMIT) -> str:
    """Totals, then rows as far as they fit, worst first, then what only one commit has."""
    top = list(_top(comparison))
    top += _list("fail in head and did not in base", _failing(comparison), int(limit * _FAILING_SHARE))
    bottom = ["", text.folded(comparison), ""]
    for title, lines in text.asides(comparison):
        listed = [f"- {count} of {code(benchmark)}: {reason}" for count, benchmark, reason in lines]
        bottom += [f"<details><summary>{title}</summary>", ""]
        bottom += [*_fitting(listed, int(limit * _ASIDE_SHARE), "- and {} more benchmarks".format), "</details>", ""]
    bottom.append(f"<sub>{text.legend(comparison)}</sub>")
    table = list(_table(comparison, limit - _length(top) - _length(bottom)))
    return "\n".join([*top, *table, *bottom]) + "\n"


def _top(comparison: Comparison) -> Iterator[str]:
    """What is never cut."""
    yield MARKER.format(escape(comparison.machine))
    yield f"### {text.headline(comparison)}"
    yield ""
    sides = (f"{code(side.given)} ({side.commit[:8]})" for side in (comparison.base, comparison.head))
    yield f"{' → '.join(sides)} on {code(comparison.machine)}"
    yield ""
    if comparison.rows:
        yield _line(["", *(verdict.value for verdict in Verdict)])
        yield _line([":--", *["--:"] * len(Verdict)])
        yield from map(_line, text.totals(comparison))
        yield ""
    for note in comparison.notes:
        yield f"Note: {code(note)}"
        yield ""


def _failing(comparison: Comparison) -> list[str]:
    return [f"- {code(lone.name)}" for lone in comparison.broken]


def _list(what: str, lines: list[str], room: int) -> Iterator[str]:
    if lines:
        yield f"**{len(lines)} configurations {what}:**"
        yield ""
        yield from _fitting(lines, room, "- and {} more".format)
        yield ""


def _table(comparison: Comparison, room: int) -> Iterator[str]:
    """The rows that changed, worst first, as many as there is room for."""
    rows = [_line(_cells(row, comparison.peak)) for row in comparison.changed]
    if rows:
        head = [_line(text.HEADERS), _line({"left": ":--", "right": "--:"}[side] for side in text.ALIGN)]
        yield from head
        more = "\n**{} more changed configurations are left out**: a comment has no more room.".format
        yield from _fitting(rows, room - _length(head), more)


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
