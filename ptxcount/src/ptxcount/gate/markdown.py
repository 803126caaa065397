"""Blocks as Markdown for a comment: never longer than a comment may be, and safe whatever names hold."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from .blocks import Block, Heading, Items, Link, Name, Paragraph, Said, Strong, Text, plain

#: Characters that a comment may have on GitHub.
LIMIT = 65_536

#: The first line, by which a workflow finds its own comment again.
MARKER = "<!-- coalescing-watch: {} -->"

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


def comment(about: str, blocks: Iterable[Block], limit: int = LIMIT) -> str:
    """Blocks behind the marker of what they are about, with at most so many characters."""
    marker = MARKER.format(escape(about))
    return "\n".join([marker, *fitted(blocks, limit - len(marker) - 1)])


def fitted(blocks: Iterable[Block], limit: int) -> list[str]:
    """Blocks as lines, an empty one behind each; of lists and tables as many entries as fit, of each the same number.

    Parameters
    ----------
    blocks : iterable of Block
        What is shown.
    limit : int
        The most characters, with the ends of the lines.
    """
    written = [_written(block) for block in blocks]

    def lines(most: int) -> list[str]:
        return [line for each in written for line in each.lines(most)]

    longest = max(len(each.entries) for each in written)
    most = bisect_right(range(longest), limit, key=lambda fewer: sum(len(line) + 1 for line in lines(fewer + 1)))
    return lines(most)


@dataclass(frozen=True)
class _Written:
    """A block as lines: its entries, what stands around them, and what stands for those that are left out."""

    before: Sequence[str]
    entries: Sequence[str] = ()
    more: str = ""
    after: Sequence[str] = ()

    def lines(self, most: int) -> list[str]:
        left = len(self.entries) - most
        more = [self.more.format(left)] if left > 0 else []
        return [*self.before, *self.entries[:most], *more, *self.after, ""]


def _written(block: Block) -> _Written:
    if isinstance(block, Heading):
        distance = f" ({block.distance})" if block.distance else ""
        route = " → ".join(map(_part, block.route))
        compared = ["", f"{route}{distance} on {_part(block.place)}"] if route else []
        return _Written([f"### {block.verdict}", *compared])
    if isinstance(block, Paragraph):
        text = ": ".join(filter(None, [block.label, _joined(block.parts)]))
        return _Written([f"<sub>{text}</sub>" if block.small else text])
    if isinstance(block, Items):
        items, more = [f"- {_joined(item)}" for item in block.items], f"- {block.more}"
        if not block.summary:
            return _Written([f"**{block.title}:**", ""], items, more)
        return _Written([*_folded(f"{block.title}: {_part(block.summary)}")], items, more, ["</details>"])
    head = [_row(block.headers), _row(_ALIGN[side] for side in block.align)]
    rows, more = [_row(map(_part, row)) for row in block.rows], f"\n{block.more}"
    if not block.title:
        return _Written(head, rows, more)
    return _Written([*_folded(block.title), *head], rows, more, ["", "</details>"])


def _folded(summary: str) -> tuple[str, str]:
    return f"<details><summary>{summary}</summary>", ""


def _part(text: str) -> str:
    if isinstance(text, Strong):
        return f"**{text}**"
    if isinstance(text, Link):
        return f"[{escape(text)}]({quote(text.url, safe='/:#')})"
    return code(text) if isinstance(text, Name) else escape(text) if isinstance(text, Said) else text


def _joined(parts: Text) -> str:
    return "".join(map(_part, parts))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
