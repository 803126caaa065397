"""Takes what a shard has measured into the results: its configurations' values, by the rules of `kernelwatch accept`.

A file of asv's holds all configurations of a commit. Of those that its run did not select, the values are NaN; in their
place come those that are stored already.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwatch.fleet import shards
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.store import folders, record, united
from kernelwatch.store.accept import __main__ as accepting
from kernelwatch.store.accept import results as checked
from kernelwatch.store.accept import suite, tree
from kernelwatch.store.accept.models import RESULT
from kernelwatch.store.accept.refusal import read, require


def merge(shard: Shard, outcome: Outcome, stored: Path, repository: Path) -> str:
    """Take the outcome of a shard; return the machine's name.

    Parameters
    ----------
    shard : Shard
        What was asked for.
    outcome : Outcome
        What came back.
    stored : Path
        The results to add to. A machine that is not known there is admitted.
    repository : Path
        Knows the commits.

    Raises
    ------
    RefusedError
        Something is not as it should be. Nothing is taken then.
    """
    with tempfile.TemporaryDirectory() as folder:
        incoming = Path(folder)
        for name, content in outcome.files.items():
            path = incoming / name
            require(path.resolve().is_relative_to(incoming.resolve()), repr(name), "is no name for a file of results")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        names = [path.parent.name for path in incoming.glob("*/machine.json")]
        require(len(names) == 1, sorted(outcome.files), "are not the results of one machine")
        (machine,) = names
        commits = accepting.dates(shard.commits, repository, ancestors=False)
        _complete(shard, outcome, incoming, stored, machine, commits)
        (stored / machine).mkdir(parents=True, exist_ok=True)
        facts = f"{machine}/machine.json"
        if not (stored / facts).exists():
            known = folders.find(stored, facts)
            shutil.copy(known if known.exists() else incoming / facts, stored / machine)
        accepting.accept(incoming, stored, machine, commits, new_suite=True, replace=True)
    return machine


def _complete(
    shard: Shard, outcome: Outcome, incoming: Path, stored: Path, machine: str, commits: Mapping[str, int]
) -> None:
    """Add what is stored to what came, so that the one can take the place of the other."""
    described = suite.load(incoming / suite.FILE)
    known = read(incoming / machine / "machine.json")
    found = {path: RESULT.fullmatch(path.name) for path in tree.files(incoming).values()}
    by_beginning = {commit[:8]: commit for commit in commits}
    seen: set[str] = set()
    controls: dict[str, float] = {}
    steps: dict[str, float] = {}
    for path, match in found.items():
        if match is None:
            continue
        commit = by_beginning.get(match["commit"])
        require(commit is not None, path.name, "is of a commit that was not asked for")
        assert commit is not None
        checked.check(path, path.name, known, described, commit, commits[commit])
        seen.add(commit)
        new, before = json.loads(path.read_bytes()), _before(shard, stored, f"{machine}/{path.name}")
        if shard.control:
            copy = values(new, shards.control().benchmark).get(shard.control)
            controls |= {} if copy is None else {commit: copy}
        if commit == shard.overlap and before is not None:
            steps = _steps(new, before, shard)
            path.write_text(json.dumps(before), encoding="utf-8")
        else:
            path.write_text(json.dumps(_united(new, before, shard)), encoding="utf-8")
    missing = set(shard.commits) - seen
    require(not missing, outcome.device, f"has no results of {sorted(missing)}")
    noted = [_noted(line, shard, controls, steps) for line in record.read(incoming, machine)]
    _write(incoming / machine / record.FILE, noted)
    prints = [line for line in record.fingerprints(incoming, machine) if line["commit"] != shard.overlap]
    _write(incoming / machine / record.FINGERPRINTS_FILE, [_without_control(line, shard) for line in prints])


def _before(shard: Shard, stored: Path, name: str) -> dict[str, Any] | None:
    """What is known of a commit: what these results have, and all of what the shard measures.

    What else is kept elsewhere stays there. It may be of an older suite, and would be refused.
    """
    with folders.known(stored, name) as path:
        document: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
    if document is not None:
        own = json.loads((stored / name).read_bytes())["results"] if (stored / name).exists() else {}
        document["results"] = {
            each: row for each, row in document["results"].items() if each in own or each in shard.series
        }
    return document


def _united(new: dict[str, Any], old: dict[str, Any] | None, shard: Shard) -> dict[str, Any]:
    """The results of a commit: a shard's configurations of the new ones, and all others of the old ones."""
    columns = new["result_columns"]
    rows = dict(old["results"]) if old else {}
    for name, row in new["results"].items():
        wanted = shard.series.get(name)
        if wanted is not None:
            rows[name] = _row(columns, row, rows.get(name), wanted) if wanted else row
    durations = {**(old["durations"] if old else {}), **new["durations"]}
    return {**(old or new), "results": rows, "durations": durations}


def _row(columns: list[str], new: list[Any], old: list[Any] | None, wanted: Sequence[str]) -> list[Any]:
    """One benchmark: the new row, in which configurations that were not measured have the values of the old one."""
    fresh = dict(zip(columns, new, strict=False))
    kept = dict(zip(columns, old or (), strict=False))
    if kept.get("version") != fresh["version"]:
        kept = {}
    places = {text: place for place, text in enumerate(_texts(kept["params"]))} if kept else {}
    texts = _texts(fresh["params"])
    row = []
    for column in columns:
        if column in united.WHOLE:
            row.append(fresh.get(column))
            continue
        ours, theirs = fresh.get(column), kept.get(column)
        blank = float("nan") if column == "result" else None
        values = [
            (ours[place] if ours else None)
            if text in wanted
            else (theirs[places[text]] if theirs else None)
            if text in places
            else blank
            for place, text in enumerate(texts)
        ]
        row.append(None if all(value is None for value in values) else values)
    while row[-1] is None:  # as asv leaves them out
        row.pop()
    return row


def _write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def _texts(params: Iterable[Sequence[str]]) -> list[str]:
    """The configurations of a benchmark, in the order of their values."""
    return list(map(", ".join, itertools.product(*params)))


def values(document: Mapping[str, Any], benchmark: str) -> dict[str, float]:
    """Configuration -> value, of those that have one."""
    row = dict(zip(document["result_columns"], document["results"].get(benchmark, ()), strict=False))
    values = zip(_texts(row["params"]), row["result"] or (), strict=False) if row else ()
    return {text: value for text, value in values if value is not None and math.isfinite(value)}


def _steps(new: Mapping[str, Any], old: Mapping[str, Any], shard: Shard) -> dict[str, float]:
    """Configuration -> its time on the GPU that takes it over, in times on the one before."""
    found: dict[str, float] = {}
    for name, wanted in shard.series.items():
        ours, theirs = values(new, name), values(old, name)
        found |= {f"{name}({text})": ours[text] / theirs[text] for text in wanted if text in ours and text in theirs}
    return found


def _noted(
    line: dict[str, Any], shard: Shard, controls: Mapping[str, float], steps: Mapping[str, float]
) -> dict[str, Any]:
    """A run's record, as that of a shard: what it stands for, its control, and the step from the GPU before."""
    line["commits"] = [commit for commit in line["commits"] if commit != shard.overlap]
    line.get("began", {}).pop(shard.overlap, None)
    if any(shard.series.values()):
        line["selected"] = {name: list(texts) for name, texts in shard.series.items()}
    if controls:
        line["control"] = dict(controls)
    if shard.overlap:
        line["handover"] = {"commit": shard.overlap, "ratios": {name: round(ratio, 5) for name, ratio in steps.items()}}
    return line


def _without_control(line: dict[str, Any], shard: Shard) -> dict[str, Any]:
    """Fingerprints, but for the control's: the number that is stored of it is another GPU's, and not to be reused."""
    name = shards.control().benchmark.rpartition(".")[0]
    params = shard.control.replace("'", "") if shard.control else None
    line["fingerprints"].get(name, {}).pop(params, None)
    for commit, ones in line["reused"].get(name, {}).items():
        line["reused"][name][commit] = [each for each in ones if each != params]
    return line
