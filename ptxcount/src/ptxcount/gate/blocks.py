"""What a report is made of, here and in kernelwatch. Words of this project are plain `str`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Said(str):
    """Text from results or from git: nothing in it is markup."""


class Name(Said):
    """The same, in a fixed-width font where there is one."""


class Link(Said):
    """The same, and where that is shown."""

    url: str

    def __new__(cls, text: str, url: str) -> Link:
        """A text, and the address behind it."""
        made = super().__new__(cls, text)
        made.url = url
        return made


class Strong(str):
    """A word that stands out where there is a way."""


#: A longer name is cut: names come from files of others, and none may fill a report.
_LONGEST_NAME = 240


def plain(name: object, longest: int = _LONGEST_NAME) -> str:
    """A name in one line that no terminal takes for a command."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in str(name))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


#: One after the other without a space.
Text = Sequence[str]


@dataclass(frozen=True)
class Heading:
    """The verdict; what was compared, how far it lies apart, and where, unless the reader knows."""

    verdict: str
    route: Sequence[str] = ()
    distance: str = ""
    place: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A sentence or two, perhaps with a word before them; `small` where they are no message."""

    parts: Text
    label: str = ""
    small: bool = False


@dataclass(frozen=True)
class Items:
    """A list under a title; with a summary it is folded, and who wants it short reads that alone."""

    title: str
    items: Sequence[Text]
    summary: str = ""
    more: str = "and {} more"


@dataclass(frozen=True)
class Table:
    """Rows under headers, aligned left or right; with a title it is folded."""

    headers: Sequence[str]
    align: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: str
    title: str = ""


Block = Heading | Paragraph | Items | Table
