"""The commands `kernelwatch fleet COMMIT...` and `kernelwatch fleet-workers tls://HOST:PORT --tls FOLDER`."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import KernelwatchError
from kernelwatch.fleet import INSTALL
from kernelwatch.store import git


def list_revisions(words: Sequence[str]) -> list[str]:
    """Return the hashes of the commits that git revisions and ranges name, oldest first.

    Raises KernelwatchError if git cannot list them, as for an unknown revision.
    """
    git.text(ROOT, "rev-parse", "--git-dir")  # fails, without advice on revisions, if git rejects the folder
    # A range switches --no-walk off for all words of a command, so each word is listed alone.
    excluded = [word for word in words if word.startswith("^")]
    try:
        listed = [git.text(ROOT, "rev-list", "--no-walk", "--end-of-options", word, *excluded, "--") for word in words]
    except git.GitError as error:
        advice = "give revisions, or ranges such as v1.0..main, of names that git knows"
        raise KernelwatchError(f"{error}; {advice}") from None
    commits = " ".join(listed).split()
    return git.text(ROOT, "rev-list", "--reverse", "--no-walk", *commits, "--").split() if commits else []


def measure_commits(words: Sequence[str] | None = None) -> int:
    """Measure commits on the GPUs of a fleet; return 0, or 1 if some commits were not measured."""
    parser = argparse.ArgumentParser(description="Measure commits on many GPUs.")
    parser.add_argument("commits", nargs="+", metavar="COMMIT", help="git revision or range")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler (default: the GPUs of this host)")
    parser.add_argument("--bench", default="", metavar="REGEX", help="run only benchmarks whose names match")
    _add_shared_options(parser, os.cpu_count() or 1)
    options = parser.parse_args(words)
    commits, workers = list_revisions(options.commits), _import_workers(parser)
    from kernelwatch.fleet import engine  # noqa: PLC0415 -- the help text does not need Dask

    connection = (
        workers.connect(options.scheduler, options.tls)
        if options.scheduler
        else workers.run_local_cluster(options.work, options.without_gpu)
    )
    with connection as client:
        return 0 if engine.backfill(client, ROOT, commits, options.bench, _print_line) else 1


def _print_line(line: str) -> None:
    print("".join(filter(str.isprintable, line)), flush=True)


def run_workers(words: Sequence[str] | None = None) -> None:
    """Run this host's workers for a scheduler on another host."""
    parser = argparse.ArgumentParser(description="Start a worker for each GPU of this host.")
    parser.add_argument("scheduler", help="address of the scheduler, such as tls://host:8786")
    parser.add_argument(
        "--name",
        default=os.uname().nodename,
        help="prefix of the workers' names on a host without a GPU; a worker with a GPU is named by the GPU's UUID",
    )
    _add_shared_options(parser, 1)
    options = parser.parse_args(words)
    names = [f"{options.name}-{number}" for number in range(options.without_gpu)]
    asyncio.run(_import_workers(parser).run_workers(options.scheduler, options.tls, options.work, names))


def _add_shared_options(parser: argparse.ArgumentParser, without_gpu: int) -> None:
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / ".asv" / "fleet",
        help="folder for the clones of the repository (default: %(default)s)",
    )
    parser.add_argument(
        "--without-gpu",
        type=int,
        default=without_gpu,
        metavar="N",
        help="number of workers on a host without a GPU (default: %(default)s)",
    )
    parser.add_argument("--tls", type=Path, metavar="FOLDER", help="folder of the certificate that all hosts share")


def _import_workers(parser: argparse.ArgumentParser) -> Any:
    try:
        from kernelwatch.fleet import workers  # noqa: PLC0415 -- the help text does not need Dask
    except ModuleNotFoundError as error:
        parser.error(f"{error}: {INSTALL}")
    return workers
