"""The command: `kernelwatch fleet COMMIT... [--scheduler tls://HOST:PORT --tls FOLDER]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.fleet import INSTALL, tls
from kernelwatch.project import ROOT
from kernelwatch.store import git


def say(text: str) -> None:
    """Print a text without what would command a terminal: workers may say what they like."""
    for line in text.splitlines():
        print("".join(letter for letter in line if letter.isprintable()), flush=True)


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
    tls.add_option(parser)
    options = parser.parse_args(words)
    try:
        from kernelwatch.fleet import cluster, engine  # noqa: PLC0415 -- help needs no Dask
    except ModuleNotFoundError as error:
        parser.error(f"{error}: {INSTALL}")
    address = options.scheduler
    try:
        commits = revisions(options.commits)
        security = tls.security(address, options.tls) if address else None
    except (RuntimeError, tls.UnsafeError) as error:
        parser.error(str(error))
    reached = cluster.client(address, security) if address else cluster.embedded(options.work, options.without_gpu)
    try:
        with reached as client:
            cluster.wait_for(client, 1)
            is_complete = engine.Fleet(client, ROOT, ROOT / "results", say, options.bench).backfill(commits)
    except (cluster.LostError, tls.UnsafeError) as error:
        sys.exit(str(error))
    return 0 if is_complete else 1
