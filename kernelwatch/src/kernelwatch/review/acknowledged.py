"""Regressions that were accepted: `acknowledged.toml` names kernel, number and reason; docs/acknowledge.md."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kernelwatch.project import ROOT
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, Verdict, Why
from kernelwatch.store import git
from kernelwatch.store.results import TIMED

#: Beside asv.conf.json. In TOML, since people write it.
FILE = "acknowledged.toml"

#: Bytes, entries, and patterns of an entry: a pull request's file comes from anybody.
_LARGEST, _MOST, _PATTERNS = 64 * 1024, 200, 20

#: What an entry calls a time; numbers are called as the review prints them, for example "spill bytes".
TIME = "time"

#: Digits of a ratio, as the review prints it and a person copies it.
_DIGITS = 3

#: What may be ACKNOWLEDGED.
_ACCEPTABLE = (Verdict.SLOWER, Verdict.TRADE)

_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]
#: A name as the review prints it; `*` stands for any text.
_Pattern = Annotated[str, Meta(pattern=r"^[^\s\[\]?]([^\n\[\]?]*[^\s\[\]?])?\Z", max_length=400)]
_Reason = Annotated[str, Meta(pattern=r"^\S[^\x00-\x1f\x7f]*\Z", max_length=200)]

_ANY = "*"


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One acknowledged regression.

    The `reason` says why it is accepted, in one line. `kernel` and `number` say what became worse, the number as the
    review calls it, or TIME, perhaps of these `configurations` alone, as the review prints them. What became worse than
    the ratio of head to base `up_to` is reported. The full hash of the `commit` that brought it stands in an entry that
    came later than the commit.

    Raises
    ------
    ValueError
        It names neither a kernel and a number, nor a commit and configurations.
    """

    reason: _Reason
    kernel: _Pattern = _ANY
    number: _Pattern = _ANY
    configurations: Annotated[tuple[_Pattern, ...], Meta(min_length=1, max_length=_PATTERNS)] = (_ANY,)
    up_to: Annotated[float, Meta(gt=1)] = math.inf
    commit: _Hash | None = None

    def __post_init__(self) -> None:
        by_name = _ANY not in (self.kernel, self.number)
        if not by_name and (self.commit is None or _ANY in self.configurations):
            raise ValueError("name `kernel` and `number`, or else `commit` and `configurations`")

    def covers(self, configuration: str, kernel: str, number: str) -> bool:
        """Whether it names a number of a kernel, in a configuration."""
        named = _matcher(self.kernel)(kernel) and _matcher(self.number)(number)
        return bool(named and any(_matcher(each)(configuration) for each in self.configurations))


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    regression: Annotated[list[Entry], Meta(max_length=_MOST)] = []


def beside(results: Path) -> Path:
    """Return the folder that holds the file: the one around a folder of results, or this project's."""
    return results.parent if (results.parent / FILE).exists() else ROOT


def read(root: Path) -> list[Entry]:
    """Return the entries of a project's file; none where there is no file.

    Raises
    ------
    ValueError
        The file is not as above; the message, one line, says where and why.
    """
    path = root / FILE
    return _decoded(path.read_bytes(), str(path)) if path.exists() else []


def at(root: Path, commit: str) -> list[Entry] | None:
    """Return the entries of a commit's file, as git has it; None where git does not know the commit.

    Raises
    ------
    ValueError
        As `read`.
    """
    listed = git.asked(root, "ls-tree", "-l", commit, "--", FILE)
    if not listed:
        return None if listed is None else []
    _, _, blob, size, *_ = listed.split()
    where = f"{commit[:8]}:{FILE}"
    if int(size) > _LARGEST:
        raise ValueError(f"{where} has {size} bytes; {_LARGEST} are allowed")
    return _decoded(git.run(root, "cat-file", "blob", blob), where)


class Acknowledged:
    """What is acknowledged between two commits.

    An entry counts if head's file has it and base's has not: it accepts what the commits between them brought, and
    nothing later. One that names a commit counts if that commit is among those that head has and base lacks.

    `root` is the folder that holds the file and the repository. Of the commit that is checked out, the file counts as
    it lies in the folder. `problems` say why entries of base or head do not count: a file that cannot be read.

    Raises
    ------
    ValueError
        As `read`.
    """

    def __init__(self, root: Path, base: str, head: str) -> None:
        self._root, self._base, self._head = root, base, head
        self._here = read(root)
        self.problems: list[str] = []

    def row(self, row: Row) -> Row:
        """The row of a review; of a regression that is acknowledged, its judgement says so and why.

        Where several entries accept it, what each of them accepts multiplies.
        """
        if row.judgement.verdict not in _ACCEPTABLE:
            return row
        number = TIME if row.kind == TIMED else row.metric
        found = [entry for entry in self._counting if entry.covers(row.name, row.kernel, number)]
        accepted = math.prod(entry.up_to for entry in found)
        if not found or round(row.judgement.ratio, _DIGITS) > round(accepted, _DIGITS):
            return row
        told = (f"{each.reason} ({each.commit[:8]})" if each.commit else each.reason for each in found)
        reasons = tuple(Reason(Why.ACCEPTED, (each,)) for each in told)
        return row.judged(replace(row.judgement, verdict=Verdict.ACKNOWLEDGED, reasons=reasons))

    @cached_property
    def _counting(self) -> Sequence[Entry]:
        """The entries that count between the two commits; asked only where something became worse."""
        try:
            before = at(self._root, self._base)
            checked_out = git.asked(self._root, "rev-parse", "--verify", "--quiet", "HEAD")
            now = self._here if checked_out == self._head else at(self._root, self._head)
        except ValueError as error:
            self.problems.append(f"{error}: none of its entries counts")
            before = now = None
        new = [] if before is None or now is None else (Counter(now) - Counter(before)).elements()
        later = [entry for entry in self._here if entry.commit]
        return [*(each for each in new if not each.commit), *(each for each in later if each.commit in self._between)]

    @cached_property
    def _between(self) -> set[str]:
        """The commits that head has and base lacks; head alone where git does not know the two."""
        found = git.between(self._root, self._base, self._head)
        return {self._head} - {self._base} if found is None else set(found)


@cache
def _matcher(pattern: str) -> Callable[[str], object]:
    return re.compile(translate(pattern)).match


def _decoded(content: bytes, where: str) -> list[Entry]:
    try:
        return msgspec.toml.decode(content, type=_Document).regression
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{where}: {' '.join(str(error).split())}") from None
