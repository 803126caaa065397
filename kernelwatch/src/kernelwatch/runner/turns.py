"""Describes the jobs of several commits beforehand, so that one process can measure them in turns.

`python -m kernelwatch.runner.turns SOCKET FILE` runs with a commit's package first on Python's path. It compiles all
timed kernels, and writes one job a line.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kernelwatch import package
from kernelwatch.instrument.job import Job, Ready


def describe(commits: Sequence[str], address: str) -> None:
    """Write the jobs of commits where the measuring process at an address looks for them.

    Raises
    ------
    GitError
        Git does not know a commit.
    CalledProcessError
        Its package cannot be used; its output says why.
    """
    for place, commit in enumerate(commits):
        print(f"describing what {commit[:8]} launches ({place + 1} of {len(commits)})", file=sys.stderr, flush=True)
        with package.unpacked(commit) as unpacked:
            file = Path(address).parent / f"{place}.jsonl"
            done = package.python(unpacked, "kernelwatch.runner.turns", address, str(file))
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            raise subprocess.CalledProcessError(done.returncode, done.args)


def jobs(ready: Ready) -> Iterator[Job]:
    """Yield the job of every configuration that is timed, as commits' processes will ask for it."""
    from kernelwatch.benchmarks import timed  # noqa: PLC0415 -- the package that it imports is the commit's in one process alone
    from kernelwatch.runner import times  # noqa: PLC0415

    for sweep in times.groups().values():
        for params in sweep.points():
            with suppress(NotImplementedError):  # what this commit lacks
                yield timed.described(sweep, params).job(ready)


def main(address: str, file: Path) -> None:
    """Write them."""
    from kernelwatch.instrument import exchange, prebuild  # noqa: PLC0415 -- as above

    prebuild.for_device()
    ready = exchange.ready(address)
    if ready is not None:
        file.write_bytes(b"".join(msgspec.json.encode(job) + b"\n" for job in jobs(ready)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
