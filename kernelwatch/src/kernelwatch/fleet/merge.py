"""Takes what a shard has measured into the results, by the rules of `kernelwatch.store.accept`.

A file of asv's holds all configurations of a commit. Of those that its run did not select, the values are NaN; what is
stored of them stays.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.store import folders, samples
from kernelwatch.store.accept import checks
from kernelwatch.store.accept import command as accepting
from kernelwatch.store.accept.refusal import read, require
from kernelwatch.store.models import RESULT


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
        _select(shard, incoming, machine, commits)
        (stored / machine).mkdir(parents=True, exist_ok=True)
        facts = f"{machine}/machine.json"
        if not (stored / facts).exists():
            known = [place / facts for place in (*folders.places(stored), incoming) if (place / facts).exists()]
            shutil.copy(known[0], stored / machine)
        accepting.accept(incoming, stored, machine, commits, new_suite=True, replace=True)


def _select(shard: Shard, incoming: Path, machine: str, commits: Mapping[str, int]) -> None:
    """Check what came, and leave of it what was asked for."""
    described, facts = checks.suite(incoming / checks.SUITE), read(incoming / machine / "machine.json")
    missing = {commit[:8]: commit for commit in commits}
    for path in checks.files(incoming).values():
        if not (match := RESULT.fullmatch(path.name)):
            continue
        commit = missing.pop(match["commit"], "")
        require(bool(commit), path.name, "is of a commit that was not asked for, or comes twice")
        checks.results(path, path.name, facts, described, commit, commits[commit])
        came = samples.read(path)
        came["results"] = {name: row for name, row in came["results"].items() if name in shard.selected}
        path.write_bytes(samples.written(came))
    require(not missing, machine, f"has no results of {sorted(missing.values())}")
