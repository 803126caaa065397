"""Has workers measure commits, and stores what comes back. What is lost with a worker is measured by another."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import msgspec
from distributed import Client, wait

from kernelwatch.command import one_line
from kernelwatch.fleet import task
from kernelwatch.fleet.task import Outcome
from kernelwatch.store import folders
from ptxcount import whole

#: How often a commit is measured that does not come back.
TRIES = 3

#: Seconds between two looks at the workers, and until nobody is waited for whom there is none of.
TICK, PATIENCE = 2.0, 120.0

#: A machine's name and the place of a commit.
Place = tuple[str, int]


def todo(results: Path, machine: str, commits: Sequence[str], bench: str) -> list[int]:
    """Return the places of the commits of which a machine has no results; of all if only some benchmarks are meant."""
    return [place for place, each in enumerate(commits) if bench or not any(results.glob(f"{machine}/{each[:8]}-*"))]


def choose(left: Collection[int], active: Collection[int], last: int | None) -> int:
    """Return the place of the commit that a worker measures next: behind its last one, or where nobody works nearby.

    `left` are the places that nobody has begun, one at least, and `active` those that are measured now.
    """
    if last is not None and last + 1 in left:
        return last + 1
    numbered = enumerate(sorted(left))
    runs = [[place for _, place in run] for _, run in itertools.groupby(numbered, lambda each: each[1] - each[0])]
    longest = max(runs, key=len)
    return longest[len(longest) // 2] if longest[0] - 1 in active else longest[0]


@dataclass
class Fleet:
    """A backfill under way."""

    #: Of Dask's scheduler.
    client: Client
    #: Where the commits and the results are.
    repository: Path
    #: Told what happens, a line each.
    say: Callable[[str], None] = print
    #: Regular expression: only benchmarks in whose names it is found.
    bench: str = ""

    def workers(self) -> dict[str, str]:
        """The address of each worker -> the machine that it measures for."""
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: next(iter(each["resources"])) for address, each in found.items() if each["resources"]}

    def backfill(self, commits: Sequence[str]) -> bool:
        """Measure the commits that are not stored yet, on each kind of machine; return whether all were measured."""
        self._commits, self._results = commits, folders.results(self.repository / "results")
        self._left: dict[str, set[int]] = {}
        self._active: dict[Any, tuple[str, Place]] = {}
        self._last: dict[str, int] = {}
        self._tries: Counter[Place] = Counter()
        self._seconds: list[float] = []
        # Not scattered: what a task has returned, Dask makes anew if it is lost with a worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
            self._bundle = self.client.submit(bytes, task.bundled(self.repository), pure=False)
        seen = time.monotonic()
        while True:
            present = self.workers()
            for machine in {*present.values()} - self._left.keys():
                self._left[machine] = set(todo(self._results, machine, commits, self.bench))
            for future in [one for one, (address, _) in self._active.items() if address not in present]:
                self._put_back(future, "its worker is gone")
            self._begin(present)
            left = sum(map(len, self._left.values())) if self._left else len(commits)
            if self._active:
                seen = time.monotonic()
                with suppress(TimeoutError, CancelledError):
                    wait(list(self._active), timeout=TICK, return_when="FIRST_COMPLETED")
                for future in [one for one in self._active if one.done()]:
                    self._take(future, len(present))
            elif not left:
                return TRIES not in self._tries.values()
            elif time.monotonic() - seen > PATIENCE:
                self.say(f"{left} commits are left, and no worker is there")
                return False
            else:
                time.sleep(TICK)

    def _begin(self, present: dict[str, str]) -> None:
        """Give idle workers a commit each."""
        busy = {address for address, _ in self._active.values()}
        for address, machine in present.items():
            if address not in busy and (left := self._left[machine]):
                active = [place for _, (kind, place) in self._active.values() if kind == machine]
                self._last[address] = place = choose(left, active, self._last.get(address))
                left.remove(place)
                given = self._commits[place], self._bundle, self.bench
                future = self.client.submit(task.measure, *given, pure=False, workers=[address])
                self._active[future] = address, (machine, place)

    def _put_back(self, future: Any, why: str) -> None:
        """Have a commit measured again, or give it up."""
        _, (machine, place) = self._active.pop(future)
        future.cancel()
        self._tries[machine, place] += 1
        is_given_up = self._tries[machine, place] == TRIES
        self.say(f"{machine}: a commit {'is given up' if is_given_up else 'is measured again'}: {why}")
        if not is_given_up:
            self._left[machine].add(place)

    def _take(self, future: Any, workers: int) -> None:
        """Store what came back."""
        _, (machine, place) = self._active[future]
        commit = self._commits[place][:8]
        try:
            outcome = msgspec.msgpack.decode(future.result(), type=Outcome)
            keep(outcome, self._results)
        except (Exception, CancelledError) as error:  # noqa: BLE001 -- whatever ended a worker or a run
            self._put_back(future, f"{commit}: {type(error).__name__}: {one_line(error)}")
            return
        del self._active[future]
        future.release()
        self._seconds.append(outcome.seconds)
        left = sum(map(len, self._left.values())) + len(self._active)
        rest = sum(self._seconds) / len(self._seconds) * left / max(workers, 1)
        took = f"{commit} by {outcome.worker} in {outcome.seconds:.0f} s"
        self.say(f"{machine}: {took}; {left} left, about {rest:.0f} s")


def keep(outcome: Outcome, results: Path) -> None:
    """Write the files of an outcome that are not there yet. Raises ValueError if one is to lie elsewhere."""
    for name, content in outcome.files.items():
        path = results / name
        if not path.resolve().is_relative_to(results.resolve()):
            raise ValueError(f"{name!r} is no name for a file of results")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            whole.write(path, content)
