"""What a folder of results holds already: which configurations of which commits, and which GPU measured each series."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelwatch.store import record, rows
from kernelwatch.store.accept import checks


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
        described = folder / checks.SUITE
        versions = {name: one.version for name, one in checks.suite(described).items()} if described.exists() else {}
        self._runs = record.read(folder, machine)
        #: Commit -> benchmark -> the configurations measured, whatever came of it.
        self._measured: dict[str, dict[str, set[str]]] = {}
        for path in sorted(folder.glob(f"{machine}/????????-*.json")):
            document = json.loads(path.read_bytes())
            found = {name: rows.read(document, name) for name in document["results"]}
            same = {name: row for name, row in found.items() if row["version"] == versions.get(name)}
            self._measured[document["commit_hash"]] = dict(self._of(document["commit_hash"], same))

    def _of(self, commit: str, measured: Mapping[str, rows.Row]) -> Iterator[tuple[str, set[str]]]:
        """Yield what was measured of each benchmark: where runs selected some, what they name, and what has a value."""
        parts = [run["selected"] for run in self._runs if commit in run["commits"] and run.get("selected")]
        for name, row in measured.items():
            texts = rows.texts(row["params"])
            named = [part[name] for part in parts if name in part]
            if named and all(named):
                values = row["result"] or [None] * len(texts)
                yield name, {*itertools.chain(*named), *(t for t, v in zip(texts, values, strict=True) if v == v)}
            else:
                yield name, set(texts)

    def has(self, commit: str, benchmark: str) -> set[str]:
        """The configurations of a benchmark that were measured at a commit."""
        return self._measured.get(commit, {}).get(benchmark, set())

    def last(self) -> dict[tuple[str, str], str]:
        """Benchmark and configuration -> UUID of the GPU that measured it last."""
        found: dict[tuple[str, str], str] = {}
        for run in self._runs:
            uuid = run["before"].get("uuid")
            for commit in run["commits"] if uuid else ():
                for benchmark, measured in self._measured.get(commit, {}).items():
                    if benchmark in run.get("began", {}).get(commit, [benchmark]):
                        texts = run.get("selected", {}).get(benchmark) or measured
                        found |= {(benchmark, text): uuid for text in measured.intersection(texts)}
        return found
