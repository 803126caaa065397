"""What a report is made of: `terminal` and `markdown` write these blocks. Words of this project are plain `str`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Said(str):
    """Text from results or from git: nothing in it is markup."""


class Name(Said):
    """The same, in a fixed-width font where there is one."""


class Strong(str):
    """A word that stands out where there is a way."""


#: One after the other without a space.
Text = Sequence[str]


@dataclass(frozen=True)
class Heading:
    """The verdict, what was compared, how far it lies apart, and where."""

    verdict: str
    route: Sequence[str]
    distance: str
    place: str


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
