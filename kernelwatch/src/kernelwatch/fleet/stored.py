"""What a folder of results holds already: which configurations of which commits, and which GPU measured each series."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.store import record
from kernelwatch.store.accept import suite

#: Columns of asv's rows -> their places.
_RESULT, _PARAMS, _VERSION = 0, 1, 2


class Last(NamedTuple):
    """The last measurement of a series: by which GPU, and at which commit."""

    uuid: str
    commit: str


class Stored:
    """The results of a machine.

    Parameters
    ----------
    folder : Path
        Of all results.
    machine : str
        Its name.
    """

    def __init__(self, folder: Path, machine: str) -> None:
        described = folder / suite.FILE
        versions = {name: one.version for name, one in suite.load(described).items()} if described.exists() else {}
        self._runs = record.read(folder, machine)
        self._dates: dict[str, int] = {}
        #: Commit -> benchmark -> the configurations measured, whatever came of it.
        self._measured: dict[str, dict[str, set[str]]] = {}
        for path in sorted(folder.glob(f"{machine}/????????-*.json")):
            document = json.loads(path.read_bytes())
            self._dates[document["commit_hash"]] = document["date"]
            rows = {name: row for name, row in document["results"].items() if row[_VERSION] == versions.get(name)}
            self._measured[document["commit_hash"]] = dict(self._of(document["commit_hash"], rows))

    def _of(self, commit: str, rows: dict[str, list[Any]]) -> Iterator[tuple[str, set[str]]]:
        """Yield what was measured of each benchmark: where runs selected some, what they name, and what has a value."""
        parts = [run["selected"] for run in self._runs if commit in run["commits"] and run.get("selected")]
        for name, row in rows.items():
            texts = list(map(", ".join, itertools.product(*row[_PARAMS])))
            named = [part[name] for part in parts if name in part]
            if named and all(named):
                values = row[_RESULT] or [None] * len(texts)
                yield name, {*itertools.chain(*named), *(t for t, v in zip(texts, values, strict=True) if v == v)}
            else:
                yield name, set(texts)

    def has(self, commit: str, benchmark: str) -> set[str]:
        """The configurations of a benchmark that were measured at a commit."""
        return self._measured.get(commit, {}).get(benchmark, set())

    def last(self) -> dict[tuple[str, str], Last]:
        """Benchmark and configuration -> who measured it last, of the newest commit that it did."""
        found: dict[tuple[str, str], Last] = {}
        for run in self._runs:
            uuid = run["before"].get("uuid")
            commits = sorted((each for each in run["commits"] if each in self._measured), key=self._dates.__getitem__)
            if not uuid or not commits:
                continue
            selected = run.get("selected")
            for benchmark, measured in self._measured[commits[-1]].items():
                if selected and benchmark not in selected:
                    continue
                texts = (selected or {}).get(benchmark) or measured
                found |= {(benchmark, text): Last(uuid, commits[-1]) for text in texts if text in measured}
        return found
