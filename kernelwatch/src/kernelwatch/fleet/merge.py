"""Takes what a shard has measured into the results, by the rules of `kernelwatch.store.accept`.

A file of asv's holds all configurations of a commit. Of those that its run did not select, the values are NaN; in their
place come those that are stored already.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import configurations
from kernelwatch.store import folders, samples, united
from kernelwatch.store.accept import command as accepting
from kernelwatch.store.accept import results as checked
from kernelwatch.store.accept import suite, tree
from kernelwatch.store.accept.models import RESULT
from kernelwatch.store.accept.refusal import read, require


def merge(shard: Shard, outcome: Outcome, stored: Path, repository: Path) -> None:
    """Take the outcome of a shard.

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
        _complete(shard, incoming, stored, machine, commits)
        (stored / machine).mkdir(parents=True, exist_ok=True)
        facts = f"{machine}/machine.json"
        if not (stored / facts).exists():
            known = folders.find(stored, facts)
            shutil.copy(known if known.exists() else incoming / facts, stored / machine)
        accepting.accept(incoming, stored, machine, commits, new_suite=True, replace=True)


def _complete(shard: Shard, incoming: Path, stored: Path, machine: str, commits: Mapping[str, int]) -> None:
    """Add what is stored to what came, so that the one can take the place of the other."""
    described, facts = suite.load(incoming / suite.FILE), read(incoming / machine / "machine.json")
    missing = {commit[:8]: commit for commit in commits}
    for path in tree.files(incoming).values():
        if not (match := RESULT.fullmatch(path.name)):
            continue
        commit = missing.pop(match["commit"], "")
        require(bool(commit), path.name, "is of a commit that was not asked for, or comes twice")
        checked.check(path, path.name, facts, described, commit, commits[commit])
        new, old = samples.read(path), _before(shard, stored, f"{machine}/{path.name}")
        new["results"] = {name: row for name, row in new["results"].items() if name in shard.selected}
        if old is not None:
            old["results"] |= {name: _like(new, row, old, name) for name, row in new["results"].items()}
            new = united.results(new, old)
        path.write_bytes(samples.written(new))
    require(not missing, machine, f"has no results of {sorted(missing.values())}")


def _before(shard: Shard, stored: Path, name: str) -> dict[str, Any] | None:
    """What is known of a commit: what these results have, and all of what the shard measures.

    What else is kept elsewhere stays there. It may be of an older suite, and would be refused.
    """
    with folders.known(stored, name) as path:
        document: dict[str, Any] | None = samples.read(path) if path.exists() else None
    if document is not None:
        own = json.loads((stored / name).read_bytes())["results"] if (stored / name).exists() else {}
        rows = document["results"].items()
        document["results"] = {each: row for each, row in rows if each in own or each in shard.selected}
    return document


def _like(new: Mapping[str, Any], row: list[Any], old: Mapping[str, Any], name: str) -> list[Any]:
    """A stored row with the columns and the axes of the new one; the new one itself if there is none like it."""
    fresh = dict(zip(new["result_columns"], row, strict=False))
    kept = dict(zip(old["result_columns"], old["results"].get(name, ()), strict=False))
    if kept.get("version") != fresh["version"]:
        return row
    places = {text: place for place, text in enumerate(configurations(kept["params"]))}
    found = []
    for column in new["result_columns"]:
        values = kept.get(column)
        blank = float("nan") if column == "result" else None
        if column in united.WHOLE:
            values = fresh.get(column)
        elif values is not None or column == "result":
            at = (places.get(text) for text in configurations(fresh["params"]))
            values = [blank if place is None else values and values[place] for place in at]
        found.append(values)
    return found
