"""The comparison as Markdown for a comment: never longer than a comment may be, and safe whatever names hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kernelwatch.review.comparison import Comparison
from kernelwatch.show.blocks import Block, Heading, Items, Name, Paragraph, Said, Strong, Table, Text
from kernelwatch.show.report import report
from kernelwatch.show.text import plain

#: Characters that a comment may have on GitHub.
LIMIT = 65_536

#: The first line, by which a workflow finds its own comment on a machine again.
MARKER = "<!-- coalescing-watch: compare on {} -->"

#: Of a report's blocks.
_ORDER = (
    *("verdict", "counts", "choice", "largest", "failing", "trades", "acknowledged", "groups", "every", "folded"),
    *("notes", "asides", "legend"),
)

#: How Markdown aligns a column.
_ALIGN = {"left": ":--", "right": "--:"}

#: These are nothing but themselves, underscores and full stops only within a word.
_HARMLESS = re.compile(r"[A-Za-z0-9 ,()=+%;µ…∞-]|(?<=[A-Za-z0-9])[_.](?=[A-Za-z0-9])")


def escape(name: object) -> str:
    """A text that shows as it is, in a table too: all that could be markup becomes a numeric entity.

    An at sign is followed by a word joiner, which nobody sees: else it could still mention someone or make an address.
    """
    return "".join(_escaped(plain(name)))


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
    said = report(comparison, at_least)
    marker = MARKER.format(escape(comparison.machine))
    lines: dict[str, list[str]] = {}
    left = limit - _length([marker])
    for name in sorted(_ORDER, key="every".__eq__):  # what is folded gets what the others leave
        lines[name] = [line for block in said[name] for line in written(block, left if name == "every" else limit)]
        left -= _length(lines[name])
    return "\n".join([marker, *(line for name in _ORDER for line in lines[name])])


def written(block: Block, room: int) -> Iterator[str]:
    """What a block takes, an empty line behind it; lists and tables as much as there is room for."""
    if isinstance(block, Heading):
        distance = f" ({block.distance})" if block.distance else ""
        route = " → ".join(map(_part, block.route))
        yield from (f"### {block.verdict}", "", f"{route}{distance} on {_part(block.place)}")
    elif isinstance(block, Paragraph):
        text = ": ".join(filter(None, [block.label, _joined(block.parts)]))
        yield f"<sub>{text}</sub>" if block.small else text
    elif isinstance(block, Items):
        items = _fitting([f"- {_joined(item)}" for item in block.items], int(room * block.share), f"- {block.more}")
        if block.summary:
            yield from (f"<details><summary>{block.title}: {_part(block.summary)}</summary>", "", *items, "</details>")
        else:
            yield from (f"**{block.title}:**", "", *items)
    else:
        yield from _table(block, room)
    yield ""


def _table(table: Table, room: int) -> Iterator[str]:
    rows = [_row(map(_part, row)) for row in table.rows]
    head = [_row(table.headers), _row(_ALIGN[side] for side in table.align)]
    tail: list[str] = []
    if table.title:
        head, tail = [f"<details><summary>{table.title}</summary>", "", *head], ["", "</details>"]
        room -= _length([*head, *tail, ""])
    yield from (*head, *_fitting(rows, int(room * table.share), f"\n{table.more}"), *tail)


def _part(text: str) -> str:
    if isinstance(text, Strong):
        return f"**{text}**"
    return code(text) if isinstance(text, Name) else escape(text) if isinstance(text, Said) else text


def _joined(parts: Text) -> str:
    return "".join(map(_part, parts))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fitting(lines: list[str], room: int, more: str) -> list[str]:
    """The first lines, as many as fit, and if some do not, a line that says how many."""
    if _length(lines) <= room:
        return lines
    room -= _length([more.format(len(lines))])
    fitting: list[str] = []
    for line in lines:
        room -= _length([line])
        if room < 0:
            break
        fitting.append(line)
    return [*fitting, more.format(len(lines) - len(fitting))]


def _length(lines: list[str]) -> int:
    """Characters of lines, each with its end."""
    return sum(len(line) + 1 for line in lines)
