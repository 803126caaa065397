"""Describes the jobs of several commits beforehand, so that one process can measure them in turns.

`python -m kernelwatch.instrument.companions SOCKET FILE` runs with a commit's package first on Python's path. It
compiles all timed kernels, and writes one job a line.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import msgspec

from kernelwatch.asv import package
from kernelwatch.instrument import exchange
from kernelwatch.instrument.job import Job, Ready

#: Names the commits to measure in turns, with spaces between. Their code then shares a process.
IN_TURNS = "KERNELWATCH_IN_TURNS"


class Companions:
    """The jobs of all commits that are measured in turns.

    Parameters
    ----------
    folder : Path, optional
        Holds a file a commit, once the first job is asked for; no job has a companion if not given.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @cached_property
    def _jobs(self) -> dict[tuple[str, bool, bool], list[Job]]:
        found: dict[tuple[str, bool, bool], list[Job]] = {}
        for path in sorted(self._folder.glob("*.jsonl")) if self._folder else ():
            for line in path.read_bytes().splitlines():
                job = msgspec.json.decode(line, type=Job)
                found.setdefault(_key(job), []).append(job)
        return found

    def commits(self, job: Job) -> set[str]:
        """Return the digests of the packages whose jobs share a process with a job: its own, and those in turns."""
        known = {each.commit for jobs in self._jobs.values() for each in jobs}
        return known if job.commit in known else {job.commit}

    def of(self, job: Job) -> list[Job]:
        """Return the same job of each other commit that can take turns with it; none for a commit that is not known."""
        same = self._jobs.get(_key(job), [])
        return [each for each in same if each != job and job.shares_buffers(each)] if job in same else []


def _key(job: Job) -> tuple[str, bool, bool]:
    return job.name, job.in_l2, job.isolated


def describe(commits: Sequence[str], address: str, folder: Path) -> None:
    """Write the jobs of commits into a folder, for the device of the measuring process at that address.

    Raises
    ------
    GitError
        Git does not know a commit.
    CalledProcessError
        Its package cannot be used; its output says why.
    """
    for place, commit in enumerate(commits):
        print(f"describing what {commit} launches ({place + 1} of {len(commits)})", file=sys.stderr, flush=True)
        with package.unpacked(commit) as unpacked:
            words = ("kernelwatch.instrument.companions", address, str(folder / f"{place}.jsonl"))
            done = package.python(unpacked, *words)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            raise subprocess.CalledProcessError(done.returncode, done.args)


def jobs(ready: Ready) -> Iterator[Job]:
    """Yield the job of every configuration that is timed, as asv's processes will ask for it."""
    from kernelwatch.asv import timed  # noqa: PLC0415 -- the package that it imports is the commit's in one process alone

    for each in timed.CLASSES.values():
        for params in each.sweep.points():
            with suppress(NotImplementedError):  # what this commit lacks
                yield each.described(params).job(ready)


def main(words: Sequence[str] | None = None) -> None:
    """Write them."""
    parser = argparse.ArgumentParser("python -m kernelwatch.instrument.companions", description=__doc__)
    parser.add_argument("address", help="path of the measuring process's socket")
    parser.add_argument("file", type=Path, help="file to write")
    options = parser.parse_args(words)
    from kernelwatch.instrument import prebuild  # noqa: PLC0415 -- as above

    prebuild.for_device()
    ready = exchange.ready(options.address)
    if ready is not None:
        options.file.write_bytes(b"".join(msgspec.json.encode(job) + b"\n" for job in jobs(ready)))


if __name__ == "__main__":
    main()
