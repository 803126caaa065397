"""The command: `kernelwatch fleet COMMIT... [--scheduler tls://HOST:PORT --tls FOLDER]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.fleet import INSTALL, plan, task, tls
from kernelwatch.project import ROOT
from kernelwatch.store import git
from kernelwatch.store.folders import RESULTS


class Screen:
    """Lines of what happens; on a terminal, the last word of any worker stands below them.

    What would command a terminal is left out: workers may say what they like.
    """

    _word = ""

    def hear(self, event: tuple[Any, dict[str, str]]) -> None:
        """Take what a worker says."""
        if sys.stdout.isatty():
            self._word = _plain(f"{event[1]['worker']}: {event[1]['said']}")[:100]
            print(f"\r\x1b[K{self._word}", end="", flush=True)

    def say(self, text: str) -> None:
        """Print lines that stay."""
        start = "\r\x1b[K" if self._word else ""
        print(start + "\n".join(map(_plain, text.splitlines())), flush=True)


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def revisions(words: Sequence[str]) -> list[str]:
    """Return the hashes of commits and ranges, oldest first."""
    walk = [] if any(".." in word for word in words) else ["--no-walk"]
    return git.text(ROOT, "rev-list", "--reverse", *walk, "--end-of-options", *words, "--").splitlines()


def main(words: Sequence[str] | None = None) -> int:
    """Measure; return 0, or 1 if something is left."""
    parser = argparse.ArgumentParser(description="Measure commits on many GPUs.")
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="revisions or ranges of git")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler; without it, this host's GPUs")
    parser.add_argument("--work", type=Path, default=ROOT / ".asv" / "fleet", help="folder for clones of this host")
    parser.add_argument("--without-gpu", type=int, default=os.cpu_count() or 1, metavar="N", help="workers, if no GPU")
    parser.add_argument("--bench", default="", metavar="REGEX", help="only benchmarks in whose names it is found")
    parser.add_argument("--largest", type=int, default=plan.LARGEST, metavar="N", help="series a shard at most")
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
    address, screen, began = options.scheduler, Screen(), time.monotonic()
    try:
        commits = revisions(options.commits)
        security = tls.security(address, options.tls, insecure=options.insecure_tcp) if address else None
    except (RuntimeError, tls.UnsafeError) as error:
        parser.error(str(error))
    reached = cluster.client(address, security) if address else cluster.embedded(options.work, options.without_gpu)
    try:
        with reached as client:
            client.subscribe_topic(task.TOPIC, screen.hear)
            cluster.wait_for(client, 1)
            what = options.bench, options.largest, options.silence
            is_complete = engine.Fleet(client, ROOT, ROOT / "results", screen.say, *what).backfill(commits)
    except (cluster.LostError, tls.UnsafeError) as error:
        sys.exit(str(error))
    screen.say(f"{time.monotonic() - began:.0f} s in all")
    return 0 if is_complete else 1
