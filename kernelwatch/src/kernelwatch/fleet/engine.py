"""Has Dask measure a plan, merges what comes back, and plans anew what was lost."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Client, wait

from kernelwatch.fleet import clone, cluster, merge, shards, task
from kernelwatch.fleet.plan import plan
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import Stored
from kernelwatch.store import folders
from kernelwatch.store.accept.refusal import RefusedError

#: How many rounds of planning may pass without any result.
ROUNDS = 2

#: Seconds between two looks at the workers, and for which a GPU may be away before its series go to others.
TICK, PATIENCE = 5.0, 120.0


@dataclass
class Fleet:
    """A backfill under way.

    Parameters
    ----------
    client : Client
        Of Dask's scheduler.
    source : Source
        The repository.
    stored : Path
        The stored results; what is measured goes to the local ones.
    repository : Path
        Where the commits are known.
    say : callable
        Told what happens, a line each.
    largest : int
        Series that a shard has at most.
    bench : str
        Regular expression: only benchmarks in whose names it is found.
    silence : float
        Seconds without a word from asv that are too long.
    patience : float
        Seconds for which a GPU may be away.
    """

    client: Client
    source: clone.Source
    stored: Path
    repository: Path
    say: Callable[[str], None] = print
    largest: int = shards.LARGEST
    bench: str = ""
    silence: float = task.SILENCE
    patience: float = PATIENCE
    #: Worker -> times it has taken, and seconds that it took for them.
    done: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    #: Seconds spent on times, from the first shard's beginning to the last one's end.
    timing: float = 0.0
    compiled: dict[str, bytes] = field(default_factory=dict)

    def machines(self) -> dict[str, list[str]]:
        """The machines' names -> the UUIDs of their GPUs; none of one without."""
        found: dict[str, list[str]] = {}
        for worker in cluster.workers(self.client):
            uuids = [name for name in worker["resources"] if name.startswith("GPU-")]
            names = [name for name in worker["resources"] if not name.startswith("GPU-")]
            for name in names:
                found.setdefault(name, []).extend(uuids)
        return {name: sorted(set(uuids)) for name, uuids in sorted(found.items())}

    def backfill(self, commits: Sequence[str]) -> bool:
        """Measure what is not stored yet; return whether nothing is left.

        Raises
        ------
        LostError
            The scheduler is gone.
        """
        with cluster.losing(self.client):
            complete = [self._backfill(name, commits, has_gpu=bool(uuids)) for name, uuids in self.machines().items()]
        return all(complete)

    def _backfill(self, name: str, commits: Sequence[str], *, has_gpu: bool) -> bool:
        fruitless, before = 0, set[str]()
        while fruitless < ROUNDS:
            uuids = self._present(name)
            if uuids is None or bool(uuids) != has_gpu:
                self.say(f"{name}: all workers are gone")
                return False
            with folders.joined(self.stored) as known:
                left = plan(Stored(known, name), commits, uuids, self.largest, self.bench)
            todo = left.by_commit or left.by_series
            if not todo:
                return True
            keys = {shard.key for shard in todo}
            if keys == before and not fruitless:
                self.say(f"{name}: {len(todo)} shards came back without all that was asked for")
                return False
            before, began = keys, time.monotonic()
            fruitless = 0 if self.measure(name, todo) else fruitless + 1
            self.timing += 0.0 if left.by_commit else time.monotonic() - began
        return False

    def _present(self, name: str) -> list[str] | None:
        """The GPUs of a machine's workers; None if it has had no worker for a while, as after a restart of Dask's."""
        until = time.monotonic() + self.patience
        while (found := self.machines().get(name)) is None and time.monotonic() < until:
            time.sleep(TICK)
        return found

    def measure(self, name: str, todo: Sequence[Shard]) -> int:
        """Measure shards; return how many came back."""
        # Not scattered: what a task has returned, Dask makes anew if it is lost with a worker.
        source, compiled = (self.client.submit(task.given, each, pure=False) for each in (self.source, self.compiled))
        waiting = {self._submit(name, shard, source, compiled): shard for shard in todo}
        merged, seen = 0, dict.fromkeys((shard.device for shard in todo if shard.device), time.monotonic())
        while waiting:
            with suppress(TimeoutError, CancelledError):  # the scheduler was gone
                wait(list(waiting), timeout=TICK, return_when="FIRST_COMPLETED")
            now, present = time.monotonic(), self.machines().get(name, ())
            for future in [future for future in waiting if future.done()]:
                merged += self._take(name, waiting.pop(future), future)
                future.release()
                self.say(f"{name}: {merged} of {len(todo)} shards")
            seen |= {uuid: now for uuid in seen if uuid in present}
            gone = {uuid for uuid, last in seen.items() if now - last > self.patience}
            for future in [future for future, shard in waiting.items() if shard.device in gone]:
                self.say(f"{waiting.pop(future).device} is gone: its series go to others")
                future.cancel()
        return merged

    def _submit(self, name: str, shard: Shard, source: Any, compiled: Any) -> Any:
        return self.client.submit(
            task.measure,
            shard,
            source,
            compiled,
            self.silence,
            key=f"{shard.key}-{time.monotonic_ns()}",
            resources={shard.device or name: 1},
        )

    def _take(self, name: str, shard: Shard, future: Any) -> bool:
        try:
            outcome = Outcome.read(future.result())
            merge.merge(shard, outcome, folders.written(self.stored), self.repository)
        except RefusedError as error:
            self.say(f"{shard.key}: {error}")
            return False
        except Exception as error:  # noqa: BLE001 -- whatever ended a worker or Dask's task: it is planned anew
            is_pickle = any(isinstance(each, bytes) for each in error.args)
            said = "Dask gave up: its workers ended, or sent an error, which is not read" if is_pickle else error
            self.say(f"{shard.key}: {type(error).__name__}: {said}")
            return False
        self.compiled |= outcome.compiled
        self.done[outcome.device].append((shard.size, outcome.seconds))
        return True
