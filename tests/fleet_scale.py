"""How far a fleet's plan and engine go, with stubs for GPUs: `python -m tests.fleet_scale --workers 1000`.

The workers are Dask's own, all in this process, and a stub of a shard takes a random moment. Some of the workers are
cut off meanwhile, with what they were at.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Sequence

import dask
from distributed import Client, Scheduler, Worker

from kernelwatch.fleet import plan, shards
from kernelwatch.fleet.stored import Last, Stored
from kernelwatch.instrument import machine

#: What workers and scheduler look after many times a second: a thousand in one process would do nothing else.
UNWATCHED = {
    "distributed.admin.tick.interval": "60s",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.worker.memory.monitor-interval": "60s",
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing-interval": "2s",
}


class Nothing(Stored):
    """A machine that has measured nothing yet."""

    def __init__(self) -> None:
        pass

    def has(self, commit: str, benchmark: str) -> set[str]:
        """Nothing."""
        return set()

    def last(self) -> dict[tuple[str, str], Last]:
        """Nobody."""
        return {}


def planned(devices: int, tasks: int) -> tuple[int, int, float]:
    """Plan at least so many tasks, a series at a commit each; return how many, their shards, and the seconds."""
    commits = [f"{number:040x}" for number in range(-(-tasks // len(list(shards.series()))))]
    began = time.perf_counter()
    found = plan.plan(Nothing(), commits, [f"GPU-{number}" for number in range(devices)])
    seconds = time.perf_counter() - began
    count = sum(
        len(shard.commits) * sum(len(texts) for name, texts in shard.series.items() if not name.startswith("track"))
        for shard in found.by_series
    )
    return count, len(found.by_series) + len(found.by_commit), seconds


def stub(number: int, seconds: float) -> int:
    """Stand for a shard."""
    time.sleep(seconds)
    return number


def say(what: str, value: float) -> None:
    """Print a figure."""
    print(f"{value:10.1f} {what}", flush=True)


async def measure(workers: int, tasks: int, kills: int) -> None:
    """Let workers do stubs, and cut some off; print the figures and end the process: a thousand take long to close."""
    draw = random.Random(0)
    name = machine.default_name(None)
    async with Scheduler(dashboard_address="", port=0) as scheduler:
        began = time.perf_counter()
        running = [Worker(scheduler.address, nthreads=1, resources={name: 1}, dashboard=False) for _ in range(workers)]
        for first in range(0, workers, 50):
            await asyncio.gather(*running[first : first + 50])
        say("seconds to start the workers", time.perf_counter() - began)
        async with Client(scheduler.address, asynchronous=True) as client:
            began = time.perf_counter()
            moments = [draw.uniform(0.0, 0.2) for _ in range(tasks)]
            wanted = range(tasks)
            futures = client.map(stub, wanted, moments, resources={name: 1}, retries=2, pure=False)
            say("seconds to submit", time.perf_counter() - began)
            for victim in draw.sample(running, kills):
                await asyncio.sleep(draw.uniform(0.0, 0.1))
                connection = victim.batched_stream.comm
                assert connection is not None
                connection.abort()  # as if the host were gone
            results: Sequence[int] = await client.gather(futures)
            say("seconds until all were back", time.perf_counter() - began)
            say("lost", len(set(wanted) - set(results)))
            say("twice", len(results) - len(set(results)))
            say("workers left", len(scheduler.workers))
            os._exit(0)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser("python -m tests.fleet_scale", description=__doc__)
    parser.add_argument("--devices", type=int, default=1000, help="GPUs to plan for")
    parser.add_argument("--planned", type=int, default=1_000_000, help="tasks to plan")
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--shards", type=int, default=2000, help="stubs that they do")
    parser.add_argument("--kills", type=int, default=100, help="workers that are cut off meanwhile")
    options = parser.parse_args()
    count, parts, seconds = planned(options.devices, options.planned)
    print(f"{count} tasks in {parts} shards planned for {options.devices} GPUs in {seconds:.1f} s", flush=True)
    print(f"{options.workers} workers, {options.shards} stubs, {options.kills} workers cut off")
    with dask.config.set(UNWATCHED):
        asyncio.run(measure(options.workers, options.shards, options.kills))


if __name__ == "__main__":
    main()
