"""The command: `kernelwatch fleet COMMIT... [--scheduler tls://HOST:PORT --tls FOLDER]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.fleet import INSTALL, clone, live, shards, task, tls
from kernelwatch.project import ROOT
from kernelwatch.store.folders import RESULTS


def revisions(words: Sequence[str]) -> list[str]:
    """Return the hashes of commits and ranges, oldest first."""
    walk = [] if any(".." in word for word in words) else ["--no-walk"]
    return clone.git(ROOT, "rev-list", "--reverse", *walk, "--end-of-options", *words, "--").splitlines()


def main(words: Sequence[str] | None = None) -> int:
    """Measure; return 0, or 1 if something is left."""
    parser = argparse.ArgumentParser(description="Measure commits on many GPUs.")
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="revisions or ranges of git")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler; without it, this host's GPUs")
    parser.add_argument("--work", type=Path, default=ROOT / ".asv" / "fleet", help="folder for clones of this host")
    parser.add_argument("--without-gpu", type=int, default=os.cpu_count() or 1, metavar="N", help="workers, if no GPU")
    parser.add_argument("--bench", default="", metavar="REGEX", help="only benchmarks in whose names it is found")
    parser.add_argument("--largest", type=int, default=shards.LARGEST, metavar="N", help="series a shard at most")
    parser.add_argument("--silence", type=float, default=task.SILENCE, metavar="S", help="seconds that are a hang")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="another folder of results")
    tls.add_options(parser)
    options = parser.parse_args(words)
    try:
        from kernelwatch.fleet import cluster, engine  # noqa: PLC0415 -- help needs no Dask
    except ModuleNotFoundError as error:
        parser.error(f"{error}: {INSTALL}")
    if options.results:
        os.environ[RESULTS] = str(options.results.resolve())
    try:
        commits = revisions(options.commits)
        address = options.scheduler
        security = tls.security(address, options.tls, insecure=options.insecure_tcp) if address else None
    except (RuntimeError, tls.UnsafeError) as error:
        parser.error(str(error))
    options.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    reached = cluster.client(address, security) if address else cluster.embedded(options.work, options.without_gpu)
    try:
        with reached as client, live.shown(client) as say:
            cluster.wait_for(client, 1)
            what = options.largest, options.bench, options.silence
            fleet = engine.Fleet(client, clone.bundled(ROOT), ROOT / "results", ROOT, say, *what)
            is_complete = fleet.backfill(commits)
    except tls.UnsafeError as error:
        sys.exit(str(error))
    except cluster.LostError as error:
        sys.exit(f"{error}. Shards that came back are stored: type the command again to go on")
    print(live.summary(fleet.done, fleet.timing, time.monotonic() - began))
    return 0 if is_complete else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: shards that came back are stored; type the command again to go on")
