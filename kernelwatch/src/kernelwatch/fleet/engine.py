"""Has Dask measure a plan, merges what comes back, and plans anew what was lost.

A file of asv's holds all configurations of a commit. Of those that a shard did not select, the values are NaN; what is
stored of them stays.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, wait

from kernelwatch.fleet import cluster, plan, task
from kernelwatch.fleet.plan import Shard, Stored
from kernelwatch.fleet.task import Outcome
from kernelwatch.store import folders
from kernelwatch.store.reading import UnreadableError

#: How often the same is measured, if some of it never comes back.
TRIES = 2

#: Seconds between two looks at the workers.
TICK = 5.0


@dataclass
class Fleet:
    """A backfill under way.

    Parameters
    ----------
    client : Client
        Of Dask's scheduler.
    repository, stored : Path
        Where the commits are, and the results.
    say : callable
        Told what happens, a line each.
    bench : str
        Regular expression: only benchmarks in whose names it is found.
    patience : float
        Seconds for which a GPU may be away before its series go to others.
    """

    client: Client
    repository: Path
    stored: Path
    say: Callable[[str], None] = print
    bench: str = ""
    patience: float = 120.0

    def machines(self) -> dict[str, list[str]]:
        """The machines' names -> the UUIDs of their GPUs; none of one without."""
        found: dict[str, set[str]] = {}
        for worker in cluster.workers(self.client):
            uuids = {name for name in worker["resources"] if name.startswith("GPU-")}
            for name in worker["resources"].keys() - uuids:
                found.setdefault(name, set()).update(uuids)
        return {name: sorted(uuids) for name, uuids in sorted(found.items())}

    def backfill(self, commits: Sequence[str]) -> bool:
        """Measure what is not stored yet; return whether nothing is left."""
        return all([self._backfill(name, commits) for name in self.machines()])  # noqa: C419 -- not the first alone

    def _backfill(self, name: str, commits: Sequence[str]) -> bool:
        before, tries = list[Shard](), 0
        while True:
            uuids = self._present(name)
            if uuids is None:
                self.say(f"{name}: all workers are gone")
                return False
            todo = plan.todo(Stored(folders.results(self.stored), name), commits, uuids, self.bench)
            if not todo:
                return True
            before, tries = todo, tries + 1 if todo == before else 1
            if tries > TRIES:
                self.say(f"{name}: {len(todo)} shards came back without all that was asked for")
                return False
            self.measure(name, todo)

    def _present(self, name: str) -> list[str] | None:
        """The GPUs of a machine's workers; None if it has had no worker for a while, as after a restart of Dask's."""
        until = time.monotonic() + self.patience
        while (found := self.machines().get(name)) is None and time.monotonic() < until:
            time.sleep(TICK)
        return found

    def measure(self, name: str, todo: Sequence[Shard]) -> None:
        """Measure shards on a machine, and take what comes back."""
        # Not scattered: what a task has returned, Dask makes anew if it is lost with a worker.
        bundle = self.client.submit(bytes, task.bundled(self.repository), pure=False)
        waiting = {}
        for shard in todo:
            resources = {shard.device or name: 1}
            waiting[self.client.submit(task.measure, shard, bundle, pure=False, resources=resources)] = shard
        seen = dict.fromkeys((shard.device for shard in todo if shard.device), time.monotonic())
        while waiting:
            with suppress(TimeoutError, CancelledError):  # the scheduler was gone
                wait(list(waiting), timeout=TICK, return_when="FIRST_COMPLETED")
            now, present = time.monotonic(), self.machines().get(name, ())
            for future in [future for future in waiting if future.done()]:
                said = self._taken(name, waiting.pop(future), future)
                self.say(f"{name}: {len(todo) - len(waiting)} of {len(todo)} shards: {said}")
                future.release()
            seen |= {uuid: now for uuid in seen if uuid in present}
            gone = {uuid for uuid, last in seen.items() if now - last > self.patience}
            for future in [future for future, shard in waiting.items() if shard.device in gone]:
                self.say(f"{waiting.pop(future).device} is gone: its series go to others")
                future.cancel()

    def _taken(self, name: str, shard: Shard, future: Any) -> str:
        """Take what came back, and return whose it is, or why it was not taken: it is planned anew."""
        try:
            outcome = Outcome.read(future.result())
            merge(outcome, name, folders.results(self.stored))
        except UnreadableError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 -- whatever ended a worker or Dask's task
            is_pickle = any(isinstance(each, bytes) for each in error.args)
            said = "Dask gave up: its workers ended, or sent an error, which is not read" if is_pickle else error
            return f"{type(error).__name__}: {said}"
        return f"{outcome.device} in {outcome.seconds:.0f} s"


def merge(outcome: Outcome, machine: str, stored: Path) -> None:
    """Take a shard's outcome into the results of a machine, which may be new there.

    Raises as `folders.take`, and takes nothing, if something is not as it should be.
    """
    with tempfile.TemporaryDirectory() as folder:
        incoming = Path(folder).resolve()
        for name, content in outcome.files.items():
            path = incoming / name
            if not path.resolve().is_relative_to(incoming):
                raise UnreadableError(f"{name!r}: is no name for a file of results")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        folders.take(incoming, stored, machine)
