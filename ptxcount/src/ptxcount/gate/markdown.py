"""Markdown for a comment: never longer than a comment may be, and safe whatever names hold."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

#: Characters that a comment may have on GitHub.
LIMIT = 65_536
#: The first line, by which a workflow finds its own comment again.
MARKER = "<!-- coalescing-watch: {} -->"
#: These are nothing but themselves, underscores and full stops only within a word.
_HARMLESS = re.compile(r"[A-Za-z0-9 ,()=+%;µ…∞-]|(?<=[A-Za-z0-9])[_.](?=[A-Za-z0-9])")
#: A longer name is cut: names come from files of others, and none may fill a report.
_LONGEST_NAME = 240


class Part(NamedTuple):
    """Lines of a comment: of the entries as many are shown as fit, and ``more`` says how many are not."""

    before: Sequence[str]
    entries: Sequence[str] = ()
    more: str = ""

    def lines(self, most: int) -> list[str]:
        """With at most so many entries, and an empty line behind them."""
        left = len(self.entries) - most
        return [*self.before, *self.entries[:most], *[self.more.format(left)] * (left > 0), ""]


def plain(name: object, longest: int = _LONGEST_NAME) -> str:
    """A name in one line that no terminal takes for a command."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(name))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


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


def comment(about: str, parts: Iterable[Part], limit: int = LIMIT) -> str:
    """Parts behind the marker of what they are about; of each as many entries as fit, of all the same number."""
    marker, given = MARKER.format(escape(about)), [*parts]

    def lines(most: int) -> list[str]:
        return [marker, *(line for each in given for line in each.lines(most))]

    longest = max(len(each.entries) for each in given)
    most = bisect_right(range(longest), limit, key=lambda fewer: sum(len(line) + 1 for line in lines(fewer + 1)))
    return "\n".join(lines(most))
