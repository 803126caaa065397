"""The jobs of several commits, described beforehand, so that one process can measure them in turns."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import msgspec

from kernelwatch.instrument.job import Job


class Companions:
    """The jobs of all commits that are measured in turns: a folder's, a file a commit, read when they are needed."""

    def __init__(self, folder: Path | None) -> None:
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
        known = {each.package_digest for jobs in self._jobs.values() for each in jobs}
        return known if job.package_digest in known else {job.package_digest}

    def of(self, job: Job) -> list[Job]:
        """Return the same job of each other commit that can take turns with it; none for a commit that is not known."""
        same = self._jobs.get(_key(job), [])
        return [each for each in same if each != job and job.shares_buffers(each)] if job in same else []


def _key(job: Job) -> tuple[str, bool, bool]:
    return job.name, job.in_l2, job.isolated
