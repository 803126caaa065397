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
            known = [place / facts for place in (*folders.places(stored), incoming) if (place / facts).exists()]
            shutil.copy(known[0], stored / machine)
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
            new = united.results(new, old)
        path.write_bytes(samples.written(new))
    require(not missing, machine, f"has no results of {sorted(missing.values())}")


def _before(shard: Shard, stored: Path, name: str) -> dict[str, Any] | None:
    """What is known of a commit: what these results have, and all of what the shard measures.

    What else is kept elsewhere stays there. It may be of an older suite, and would be refused.
    """
    with folders.joined(stored, name) as folder:
        document: dict[str, Any] | None = samples.read(folder / name) if (folder / name).exists() else None
    if document is not None:
        own = json.loads((stored / name).read_bytes())["results"] if (stored / name).exists() else {}
        rows = document["results"].items()
        document["results"] = {each: row for each, row in rows if each in own or each in shard.selected}
    return document
