"""Has Dask measure a plan, merges what comes back, and plans anew what was lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, wait

from kernelwatch.fleet import clone, cluster, merge, plan, task
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import Stored
from kernelwatch.store import folders
from kernelwatch.store.accept.refusal import RefusedError

#: How many rounds of planning may pass without any result.
ROUNDS = 2

#: Seconds between two looks at the workers.
TICK = 5.0


@dataclass
class Fleet:
    """A backfill under way.

    Parameters
    ----------
    client : Client
        Of Dask's scheduler.
    repository : Path
        Where the commits are; a shard's worker gets all of it.
    stored : Path
        The stored results; what is measured goes to the local ones.
    say : callable
        Told what happens, a line each.
    bench : str
        Regular expression: only benchmarks in whose names it is found.
    largest : int
        Series that a shard has at most.
    silence : float
        Seconds without a word from asv that are too long.
    patience : float
        Seconds for which a GPU may be away before its series go to others.
    """

    client: Client
    repository: Path
    stored: Path
    say: Callable[[str], None] = print
    bench: str = ""
    largest: int = plan.LARGEST
    silence: float = task.SILENCE
    patience: float = 120.0

    def __post_init__(self) -> None:
        self._source = clone.bundled(self.repository)
        self._compiled: dict[str, bytes] = {}

    def machines(self) -> dict[str, list[str]]:
        """The machines' names -> the UUIDs of their GPUs; none of one without."""
        found: dict[str, set[str]] = {}
        for worker in cluster.workers(self.client):
            uuids = {name for name in worker["resources"] if name.startswith("GPU-")}
            for name in worker["resources"].keys() - uuids:
                found.setdefault(name, set()).update(uuids)
        return {name: sorted(uuids) for name, uuids in sorted(found.items())}

    def backfill(self, commits: Sequence[str]) -> bool:
        """Measure what is not stored yet; return whether nothing is left. Raises LostError."""
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
                stored = Stored(known, name)
                # What is compiled comes first: the GPUs need it.
                todo = plan.by_commit(stored, commits, has_gpu=has_gpu, bench=self.bench)
                if not todo and has_gpu:
                    todo = plan.by_series(stored, commits, uuids, self.bench, self.largest)
            if not todo:
                return True
            keys = {shard.key for shard in todo}
            if keys == before and not fruitless:
                self.say(f"{name}: {len(todo)} shards came back without all that was asked for")
                return False
            before = keys
            fruitless = 0 if self.measure(name, todo) else fruitless + 1
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
        given = [self.client.submit(task.given, each, pure=False) for each in (self._source, self._compiled)]
        waiting = {}
        for shard in todo:
            key, resources = f"{shard.key}-{time.monotonic_ns()}", {shard.device or name: 1}
            words = shard, *given, self.silence
            waiting[self.client.submit(task.measure, *words, key=key, resources=resources)] = shard
        merged, seen = 0, dict.fromkeys((shard.device for shard in todo if shard.device), time.monotonic())
        while waiting:
            with suppress(TimeoutError, CancelledError):  # the scheduler was gone
                wait(list(waiting), timeout=TICK, return_when="FIRST_COMPLETED")
            now, present = time.monotonic(), self.machines().get(name, ())
            for future in [future for future in waiting if future.done()]:
                if said := self._take(waiting.pop(future), future):
                    merged += 1
                    self.say(f"{name}: {merged} of {len(todo)} shards, {said}")
                future.release()
            seen |= {uuid: now for uuid in seen if uuid in present}
            gone = {uuid for uuid, last in seen.items() if now - last > self.patience}
            for future in [future for future, shard in waiting.items() if shard.device in gone]:
                self.say(f"{waiting.pop(future).device} is gone: its series go to others")
                future.cancel()
        return merged

    def _take(self, shard: Shard, future: Any) -> str:
        """Take what came back: return whose it is, or say why not and return nothing."""
        try:
            outcome = Outcome.read(future.result())
            merge.merge(shard, outcome, folders.written(self.stored), self.repository)
        except RefusedError as error:
            self.say(f"{shard.key}: {error}")
        except Exception as error:  # noqa: BLE001 -- whatever ended a worker or Dask's task: it is planned anew
            is_pickle = any(isinstance(each, bytes) for each in error.args)
            said = "Dask gave up: its workers ended, or sent an error, which is not read" if is_pickle else error
            self.say(f"{shard.key}: {type(error).__name__}: {said}")
        else:
            self._compiled |= outcome.compiled
            return f"{outcome.device} in {outcome.seconds:.0f} s"
        return ""
