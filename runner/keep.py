"""Moves local results into the stored ones, `make keep`: by the rules of `runner.accept`, and nothing is replaced."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from asv.util import UserError

from benchmarks import ROOT
from benchmarks.command import one_line
from runner import folders, storing
from runner.accept import suite
from runner.accept.__main__ import accept, dates
from runner.accept.models import RECORDS, RESULT, Document
from runner.accept.refusal import RefusedError, convert, read, require


def keep(machine: str, stored: Path, repository: Path = ROOT) -> str:
    """Move the local results of a machine.

    Parameters
    ----------
    machine : str
        Its name.
    stored : Path
        The folder to move them into.
    repository : Path
        Where git knows their commits.

    Returns
    -------
    str
        What was moved, in a sentence.

    Raises
    ------
    RefusedError
        With what is wrong and where; nothing is moved then.
    """
    local = folders.local(stored)
    folder = local / machine
    require((folder / "machine.json").exists(), folder, "has no results")
    with storing.alone(local):
        files = [path for path in sorted(folder.iterdir()) if RESULT.fullmatch(path.name)]
        revisions = [convert(read(path), Document, path).commit_hash for path in files]
        commits = dates(revisions, repository, ancestors=False) if revisions else {}
        is_newer = folders.newest(local / suite.FILE, stored / suite.FILE) == local / suite.FILE
        said = accept(local, stored, machine, commits, new_machine=True, new_suite=is_newer)
        left = [path.name for path in sorted(folder.iterdir()) if not _moved(path, stored / machine / path.name)]
        if not left:
            folder.rmdir()
    return said.partition(", of ")[0] + (f"; {folder} keeps {', '.join(left)}" if left else "")


def _moved(path: Path, target: Path) -> bool:
    """Whether the stored results have all that a file holds, which is removed then."""
    if not target.exists() and path.suffix != ".json" and path.name not in RECORDS:  # what no rule is about
        path.rename(target)
        return True
    has = target.exists() and set(path.read_bytes().splitlines()) <= set(target.read_bytes().splitlines())
    if has:
        path.unlink()
    return has


def main(words: Sequence[str] | None = None, stored: Path = ROOT / "results") -> int:
    """Move what is local, or say what is wrong with it; return 0 or 1."""
    parser = argparse.ArgumentParser("python -m runner.keep", description="Move local results into results/.")
    parser.add_argument("--machine", metavar="NAME", help="only those of this machine")
    options = parser.parse_args(words)
    local = folders.local(stored)
    names = [options.machine] if options.machine else sorted(path.parent.name for path in local.glob("*/machine.json"))
    refused = 0
    for name in names:
        try:
            print(keep(name, stored, stored.parent))
            print(f"to store them: git add {stored.name} && git commit")
        except (RefusedError, UserError, OSError) as error:
            print(f"refused: {one_line(error)}", file=sys.stderr)
            refused = 1
    if not names:
        print(f"nothing to keep: {local.name} has no results")
    return refused


if __name__ == "__main__":
    sys.exit(main())
