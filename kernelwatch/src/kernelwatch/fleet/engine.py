"""Has workers measure commits, and stores what comes back. What is lost with a worker, Dask has another one measure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import dask
import msgspec
from distributed import Client, wait

from kernelwatch.error_text import one_line
from kernelwatch.fleet import task
from kernelwatch.fleet.task import Outcome
from kernelwatch.fleet.workers import FleetError
from kernelwatch.store import folders
from ptxcount.util import atomic_write

#: How often a commit is measured that fails.
TRIES = 3

#: Seconds until nobody is waited for whom there is none of.
PATIENCE = 120.0


def backfill(
    client: Client, repository: Path, commits: Sequence[str], bench: str = "", say: Callable[[str], None] = print
) -> bool:
    """Measure the commits that are not stored yet; return whether all were measured.

    Each worker that is there has neighbouring commits; who comes later, or is done, takes over from others.

    Parameters
    ----------
    client : Client
        Of Dask's scheduler.
    repository : Path
        Where the commits and the results are.
    commits : sequence of str
        Their hashes, neighbours side by side.
    bench : str, optional
        Regular expression: only benchmarks in whose names it is found, also of commits that are stored.
    say : callable, optional
        Told what happens, a line each.

    Raises
    ------
    FleetError
        No worker is there, or they are of several kinds.
    """
    machine, workers = _kind(client)
    results = folders.results_folder(repository / "results")
    left = [each for each in commits if bench or not any(results.glob(f"{machine}/{each[:8]}-*"))]
    share = -(-len(left) // len(workers))
    # Not scattered: what a task has returned, Dask makes anew if it is lost with a worker.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        bundle = client.submit(bytes, task.bundled(repository), pure=False)
    how = {"pure": False, "retries": TRIES - 1, "allow_other_workers": True}
    futures = {
        client.submit(
            task.measure, commit, bundle, bench, workers=[workers[place // share]], priority=-(place % share), **how
        ): commit
        for place, commit in enumerate(left)
    }
    began, failed = time.monotonic(), 0
    while futures:
        try:
            done = wait(list(futures), timeout=PATIENCE, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            if _machines(client):
                continue
            say(f"{len(futures)} commits are left, and no worker is there")
            return False
        for future in done:
            commit = futures.pop(future)
            said = f"{machine}: {commit[:8]}"
            try:
                outcome = msgspec.msgpack.decode(future.result(), type=Outcome)
                keep(outcome, results)
            except (Exception, CancelledError) as error:  # noqa: BLE001 -- whatever ended a worker or a run
                failed += 1
                say(f"{said} is given up: {type(error).__name__}: {one_line(error)}")
                continue
            rest = (time.monotonic() - began) / (len(left) - len(futures)) * len(futures)
            took = f"by {outcome.worker} in {outcome.seconds:.0f} s"
            say(f"{said} {took}; {len(futures)} left, about {rest:.0f} s")
    return not failed


def _machines(client: Client) -> dict[str, str]:
    """The address of each worker -> the machine that it measures for."""
    found: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return {address: next(iter(each["resources"])) for address, each in found.items() if each["resources"]}


def _kind(client: Client) -> tuple[str, list[str]]:
    """Return the machine that all workers measure for, and their addresses, as soon as one is there."""
    end = time.monotonic() + PATIENCE
    while not (found := _machines(client)):
        if time.monotonic() > end:
            raise FleetError(f"no worker came within {PATIENCE:.0f} s (docs/fleet.md has the commands)")
        time.sleep(0.1)
    kinds = sorted({*found.values()})
    if kinds[1:]:
        raise FleetError(f"the workers are of several kinds, {', '.join(kinds)}: give each kind a scheduler of its own")
    return kinds[0], [*found]


def keep(outcome: Outcome, results: Path) -> None:
    """Write the files of an outcome that are not there yet. Raises ValueError if one is to lie elsewhere."""
    for name, content in outcome.files.items():
        path = results / name
        if not path.resolve().is_relative_to(results.resolve()):
            raise ValueError(f"{name!r} is no name for a file of results")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write(path, content)
