"""The command: `python -m runner.fleet COMMIT... [--scheduler tcp://HOST:PORT]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client

from benchmarks import ROOT
from runner.fleet import clone, engine, live, shards, task
from runner.folders import RESULTS


def revisions(words: Sequence[str]) -> list[str]:
    """Return the hashes of commits and ranges, oldest first."""
    walk = [] if any(".." in word for word in words) else ["--no-walk"]
    return clone.git(ROOT, "rev-list", "--reverse", *walk, "--end-of-options", *words, "--").splitlines()


@contextmanager
def _client(address: str | None, work: Path, without_gpu: int) -> Iterator[Client]:
    if address is None:
        with engine.embedded(work, without_gpu) as client:
            yield client
    else:
        with Client(address) as client:
            client.wait_for_workers(1)
            yield client


def main(words: Sequence[str] | None = None) -> int:
    """Measure; return 0, or 1 if something is left."""
    parser = argparse.ArgumentParser("python -m runner.fleet", description="Measure commits on many GPUs.")
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="revisions or ranges of git")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler; without it, this host's GPUs")
    parser.add_argument("--work", type=Path, default=ROOT / ".asv" / "fleet", help="folder for clones of this host")
    parser.add_argument("--without-gpu", type=int, default=os.cpu_count() or 1, metavar="N", help="workers, if no GPU")
    parser.add_argument("--bench", default="", metavar="REGEX", help="only benchmarks in whose names it is found")
    parser.add_argument("--largest", type=int, default=shards.LARGEST, metavar="N", help="series a shard at most")
    parser.add_argument("--silence", type=float, default=task.SILENCE, metavar="S", help="seconds that are a hang")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="another folder of results")
    options = parser.parse_args(words)
    if options.results:
        os.environ[RESULTS] = str(options.results.resolve())
    try:
        commits = revisions(options.commits)
    except RuntimeError as error:
        parser.error(str(error))
    options.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # The repository and what is compiled are in the graph, so that Dask makes them anew if a worker is lost.
    quiet = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    with quiet, _client(options.scheduler, options.work, options.without_gpu) as client, live.shown(client) as say:
        fleet = engine.Fleet(
            client, clone.bundled(ROOT), ROOT / "results", ROOT, say, options.largest, options.bench, options.silence
        )
        is_complete = fleet.backfill(commits)
    print(live.summary(fleet.done, fleet.timing, time.monotonic() - began))
    return 0 if is_complete else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: shards that came back are stored; type the command again to go on")
