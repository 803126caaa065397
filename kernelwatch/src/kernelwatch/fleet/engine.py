"""Distribute commits to Dask's workers, and store the results. Dask repeats the tasks of a lost worker."""

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
from kernelwatch.fleet.task import MeasuredFiles
from kernelwatch.fleet.workers import FleetError
from kernelwatch.store import folders
from ptxcount.util import atomic_write
from ptxcount.util.grammar import choose_form, count_noun

#: Maximum number of attempts to measure a commit. Attempts that end with the loss of a worker do not count.
MAX_TRIES = 3

#: Seconds to wait for a first worker. A backfill also gives up if it loses all workers, and no commit ends for so long.
WORKER_LIMIT = 120.0


def backfill(
    client: Client, repository: Path, commits: Sequence[str], bench: str = "", report: Callable[[str], None] = print
) -> bool:
    """Measure the commits without stored results; return whether all were measured.

    Each worker gets neighbouring commits. Idle workers take commits from others.

    Parameters
    ----------
    client : Client
        Client of Dask's scheduler.
    repository : Path
        Folder of the commits and the results.
    commits : sequence of str
        Hashes of the commits, oldest first.
    bench : str, optional
        Regular expression that selects benchmarks by name, also for commits that are stored.
    report : callable, optional
        Prints a line about an event.

    Raises
    ------
    FleetError
        No worker is connected, or the workers have different kinds of GPUs.
    """
    machine, workers = _find_machine(client)
    results = folders.results_folder(repository)
    missing = [commit for commit in commits if bench or not any(results.glob(f"{machine}/{commit[:8]}-*"))]
    if not missing:
        count = count_noun(len(commits), "commit")
        report(f"{machine}: nothing to measure: {count} {choose_form(len(commits), 'has', 'have')} results")
        return True
    futures = _submit_commits(client, repository, missing, workers, bench)
    began, failed = time.monotonic(), 0
    while futures:
        try:
            done = wait(list(futures), timeout=WORKER_LIMIT, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            if _machines_by_worker(client):
                continue
            report(f"{count_noun(len(futures), 'commit')} left, but no worker is connected; start one, and retry")
            return False
        for future in done:
            message = f"{machine}: {futures.pop(future)[:8]}"
            try:
                outcome = msgspec.msgpack.decode(future.result(), type=MeasuredFiles)
                store_files(outcome, results)
            except (Exception, CancelledError) as error:  # noqa: BLE001 -- a worker or a run may fail for any reason
                failed += 1
                report(f"{message} failed: {type(error).__name__}: {one_line(error)}")
            else:
                seconds_left = (time.monotonic() - began) / (len(missing) - len(futures)) * len(futures)
                measured = f"by {outcome.worker} in {outcome.seconds:.0f} s"
                report(f"{message} {measured}; {len(futures)} left, about {seconds_left:.0f} s")
    return not failed


def _submit_commits(
    client: Client, repository: Path, commits: Sequence[str], workers: Sequence[str], bench: str
) -> dict[Any, str]:
    """Submit a task for each commit, neighbours to one worker in their order; return future -> commit."""
    # A task's result instead of scattered data, because Dask recomputes it if its worker is lost.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        bundle = client.submit(bytes, task.bundle_repository(repository), pure=False)
    share = -(-len(commits) // len(workers))
    options: dict[str, Any] = {"pure": False, "retries": MAX_TRIES - 1, "allow_other_workers": True}
    futures = {}
    for index, commit in enumerate(commits):
        worker, place = divmod(index, share)
        arguments = (task.measure_commit, commit, bundle, bench)
        futures[client.submit(*arguments, workers=[workers[worker]], priority=-place, **options)] = commit
    return futures


def _machines_by_worker(client: Client) -> dict[str, str]:
    """Return address of a worker -> name of the worker's machine in results."""
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return {address: next(iter(worker["resources"])) for address, worker in workers.items() if worker["resources"]}


def _find_machine(client: Client) -> tuple[str, list[str]]:
    """Wait for a worker; return the machine's name in results, which names a kind of GPU, and the workers' addresses.

    Raises FleetError if no worker connects within WORKER_LIMIT, or the workers have different kinds of GPUs.
    """
    end = time.monotonic() + WORKER_LIMIT
    while not (by_worker := _machines_by_worker(client)):
        if time.monotonic() > end:
            advice = "to start workers, see docs/fleet.md of kernelwatch"
            raise FleetError(f"no worker connected within {WORKER_LIMIT:.0f} s; {advice}")
        time.sleep(0.1)
    machines = sorted({*by_worker.values()})
    if machines[1:]:
        raise FleetError(f"the workers have different kinds of GPUs, {', '.join(machines)}; use one scheduler per kind")
    return machines[0], [*by_worker]


def store_files(outcome: MeasuredFiles, results: Path) -> None:
    """Write an outcome's files that do not exist yet. Raises ValueError for a file outside the folder of results."""
    for name, content in outcome.files.items():
        path = results / name
        if not path.resolve().is_relative_to(results.resolve()):
            raise ValueError(f"the worker sent {name!r}, which is outside of the folder of results")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write(path, content)
