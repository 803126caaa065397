"""Regressions that were accepted: `acknowledged.toml` names each one's commit, configurations and reason."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from benchmarks import ROOT
from report.compare.verdict import Judgement, Verdict

#: Beside asv.conf.json. In TOML, since people write it.
FILE = "acknowledged.toml"

#: Digits of a ratio, as the review prints it and a person copies it.
_DIGITS = 3

_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]
#: A name as the review prints it; `*` stands for any text.
_Configuration = Annotated[str, Meta(pattern=r"^[^\s\[\]?]([^\n\[\]?]*[^\s\[\]?])?\Z", max_length=400)]
_Reason = Annotated[str, Meta(pattern=r"^\S[^\x00-\x1f\x7f]*\Z", max_length=200)]


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One acknowledged regression.

    Parameters
    ----------
    commit : str
        The full hash of the commit that brought it.
    configurations : list of str
        Names as the review prints them; `*` stands for any text.
    up_to : float
        The largest ratio of head to base that is accepted. What became worse than that is reported.
    reason : str
        Why it is accepted, in one line.
    """

    commit: _Hash
    configurations: Annotated[list[_Configuration], Meta(min_length=1)]
    up_to: Annotated[float, Meta(gt=1)]
    reason: _Reason

    def covers(self, configuration: str) -> bool:
        """Whether it names a configuration."""
        return any(fnmatchcase(configuration, pattern) for pattern in self.configurations)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    regression: list[Entry] = []


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
    if not path.exists():
        return []
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Document).regression
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None


class Acknowledged:
    """What is acknowledged between two commits.

    Parameters
    ----------
    root : Path
        The folder that holds the file and the repository.
    base, head : str
        The commits' hashes. An entry counts if its commit is one of those that head has and base lacks.

    Raises
    ------
    ValueError
        As `read`.
    """

    def __init__(self, root: Path, base: str, head: str) -> None:
        self._root, self._base, self._head = root, base, head
        self._every = read(root)

    def weigh(self, judgement: Judgement, configuration: str) -> Judgement:
        """The judgement on a configuration; of a regression that is acknowledged, it says so and why.

        Where several commits between the two are acknowledged, what each of them accepts multiplies.
        """
        if judgement.verdict is not Verdict.SLOW or not (found := self._of(configuration)):
            return judgement
        accepted = math.prod(entry.up_to for entry in found)
        if round(judgement.ratio, _DIGITS) > round(accepted, _DIGITS):
            return judgement
        reason = "; ".join(f"{entry.reason} ({entry.commit[:8]})" for entry in found)
        return replace(judgement, verdict=Verdict.ACKNOWLEDGED, reason=reason)

    def _of(self, configuration: str) -> Sequence[Entry]:
        named = [entry for entry in self._every if entry.covers(configuration)]
        return [entry for entry in named if entry.commit in self._between]

    @cached_property
    def _between(self) -> set[str]:
        """The commits that head has and base lacks; head alone where git does not know the two."""
        words = ["git", "rev-list", f"{self._base}..{self._head}"]
        try:
            listed = subprocess.run(words, cwd=self._root, capture_output=True, text=True, check=True).stdout.split()
        except (OSError, subprocess.CalledProcessError):
            return {self._head} - {self._base}
        return set(listed)
