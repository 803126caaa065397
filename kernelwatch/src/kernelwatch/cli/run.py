"""`kernelwatch run` and `measure`: asv's own commands, with what belongs to them here."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Sequence
from unittest import mock

from asv import main
from asv.commands.run import Run

from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.store import git
from ptxcount.cli.ending import ended

#: The range that has one commit.
HEAD = "HEAD^!"


def run(words: Sequence[str] | None = None) -> int:
    """Measure, write the pages, print the summary; return the exit code of `asv run`, or of what failed after it.

    Parameters
    ----------
    words : sequence of str, optional
        Arguments of `asv run`; those of the command line if not given. Without a range, HEAD is measured.
    """
    given = list(sys.argv[1:] if words is None else words)
    if not {"-h", "--help"}.isdisjoint(given):
        return _asv("run", *given)
    parser = argparse.ArgumentParser("kernelwatch")
    Run.setup_arguments(parser.add_subparsers())
    asked = parser.parse_args(["run", *given])
    if asked.range is None and not any("existing" in each or each == ":same" for each in asked.env_spec):
        given = [HEAD, *given]
        if changed := _changed():
            print(f"HEAD is measured, without what is not committed: {', '.join(changed)}", file=sys.stderr)
    if (status := _asv("run", "--record-samples", *given)) not in (0, 2):  # nothing was measured, or nobody waits
        return status
    from kernelwatch.cli import site, summary  # noqa: PLC0415 -- what shows results is not needed to measure

    unpublished, failed = site.main(()), summary.main()
    return unpublished or failed or status


def _changed() -> list[str]:
    """The files that git tracks and that differ from HEAD, but for benchmarks and libraries, which run as they lie."""
    running = (each for each in settings.code() if each != settings.package())
    paths = (".", *(f":(exclude){each}" for each in running))
    return (git.try_text(ROOT, "diff", "--name-only", "--relative", "HEAD", "--", *paths) or "").splitlines()


def measure(words: Sequence[str] | None = None) -> int:
    """Measure two commits in turns, sample by sample on the same buffers; return the exit code of `asv run`."""
    parser = argparse.ArgumentParser("kernelwatch measure", usage="%(prog)s BASE HEAD [OPTION OF asv run ...]")
    rest = parser.parse_known_args(words)[1]
    revisions = list(itertools.takewhile(lambda word: not word.startswith("-"), rest))
    if len(revisions) != 2:
        parser.error(f"give two git revisions; given: {' '.join(revisions) or 'none'}")
    with tempfile.NamedTemporaryFile("w") as file:
        file.writelines(f"{each}\n" for each in revisions)
        file.flush()
        return _asv("run", "--interleave-rounds", "--record-samples", *rest[2:], f"HASHFILE:{file.name}")


def _asv(*words: str) -> int:
    """Run a command of asv; return its exit code."""
    os.chdir(ROOT)
    return ended("asv", lambda: _call(*words), 1)


def _call(*words: str) -> int:
    with mock.patch.object(sys, "argv", ["asv", *words]):
        try:
            main.main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
