"""Regressions that were accepted: `acknowledged.toml` names kernel, number and reason; docs/review-a-change.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from kernelwatch.config.project_root import ROOT
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Reason, Verdict, Why
from kernelwatch.store import git
from kernelwatch.store.results import TIMED

#: Beside asv.conf.json. In TOML, since people write it.
FILE = "acknowledged.toml"

#: Characters of a file: a pull request's comes from anybody.
_LARGEST = 64 * 1024

_Line = Annotated[str, Meta(pattern=r"^\S[^\x00-\x1f\x7f]*\Z", max_length=200)]


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One acknowledged regression: the kernel, "time" or the number as the review calls it, and why it is accepted."""

    kernel: _Line
    number: _Line
    reason: _Line


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    regression: Sequence[Entry] = ()


def beside(results: Path) -> Path:
    """Return the folder that holds the file: the one around a folder of results, or this project's."""
    return results.parent if (results.parent / FILE).exists() else ROOT


def decoded(text: str | bytes, where: object) -> Sequence[Entry]:
    """Return the entries of a file's text. Raises ValueError, one line with `where`, if it is of another form."""
    try:
        if len(text) > _LARGEST:
            raise ValueError(f"it has {len(text)} characters; {_LARGEST} are allowed")
        return msgspec.toml.decode(text, type=_Document).regression
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError(f"{where}: {' '.join(str(error).split())}") from None


def at(root: Path, commit: str) -> Sequence[Entry] | None:
    """Return the entries of a commit's file; None where git does not know it. Raises ValueError as `decoded`."""
    if git.asked(root, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return None
    return decoded(git.asked(root, "show", f"{commit}:{FILE}") or "", f"{commit[:8]}:{FILE}")


class Acknowledged:
    """What is acknowledged between two commits: the entries that head's file has and base's has not.

    So an entry accepts what the commits between them brought, and nothing later. Of the commit that is checked out, the
    file counts as it lies in the folder, `root`. `problems` say why no entry counts.
    """

    def __init__(self, root: Path, base: str, head: str) -> None:
        self._root, self._base, self._head = root, base, head
        self.problems: list[str] = []

    def row(self, row: Row) -> Row:
        """Return the row; of a regression that is acknowledged, its judgement says so and why."""
        if row.judgement.verdict not in (Verdict.SLOWER, Verdict.TRADE) or not (found := self.entries(row)):
            return row
        reasons = tuple(Reason(Why.ACCEPTED, (entry.reason,)) for entry in found)
        return replace(row, judgement=replace(row.judgement, verdict=Verdict.ACKNOWLEDGED, reasons=reasons))

    def entries(self, row: Row) -> list[Entry]:
        """Return the entries that count and name a row's kernel and number."""
        named = row.kernel, "time" if row.kind == TIMED else row.metric
        return [entry for entry in self._counting if (entry.kernel, entry.number) == named]

    @cached_property
    def _counting(self) -> list[Entry]:
        """Asked only where something became worse."""
        path = self._root / FILE
        try:
            before, now = at(self._root, self._base), at(self._root, self._head)
            if git.asked(self._root, "rev-parse", "--verify", "--quiet", "HEAD") == self._head:
                now = decoded(path.read_bytes() if path.exists() else "", path)
        except ValueError as error:
            self.problems.append(f"{error}: none of its entries counts")
            return []
        return [] if before is None or now is None else list((Counter(now) - Counter(before)).elements())
