"""Moves local results into the stored ones, `make keep`: by the rules of `kernelwatch accept`; nothing is lost."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from asv.util import UserError

from kernelwatch.command import one_line
from kernelwatch.project import ROOT
from kernelwatch.store import folders, noise, storing, united
from kernelwatch.store.accept import suite
from kernelwatch.store.accept.command import accept, dates
from kernelwatch.store.accept.models import RECORDS, RESULT, Document
from kernelwatch.store.accept.refusal import RefusedError, convert, read, require
from kernelwatch.store.whole import write_all


def keep(machine: str, stored: Path, repository: Path = ROOT, *, replace: bool = False) -> str:
    """Move the local results of a machine.

    Parameters
    ----------
    machine : str
        Its name.
    stored : Path
        The folder to move them into.
    repository : Path
        Where git knows their commits.
    replace : bool
        Whether local numbers take the place of stored ones that differ.

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
    folder, facts = local / machine, stored / machine / "machine.json"
    require(_has_results(folder), folder, "has no results")
    with storing.alone(local):
        if facts.exists() and not (folder / facts.name).exists():
            shutil.copy(facts, folder)
        files = [path for path in sorted(folder.iterdir()) if RESULT.fullmatch(path.name)]
        revisions = [convert(read(path), Document, path).commit_hash for path in files]
        commits = dates(revisions, repository, ancestors=False) if revisions else {}
        is_newer = folders.newest(local / suite.FILE, stored / suite.FILE) == local / suite.FILE
        said = accept(local, stored, machine, commits, new_machine=True, new_suite=is_newer, replace=replace)
        if replace and (stored / machine / noise.FILE).exists() and (folder / noise.FILE).exists():
            (folder / noise.FILE).replace(stored / machine / noise.FILE)
        for path in files:
            path.unlink()
        left = [path.name for path in sorted(folder.iterdir()) if not _moved(path, stored / machine / path.name)]
        if not left:
            folder.rmdir()
    return said.partition(", of ")[0] + (f"; {folder} keeps {', '.join(left)}" if left else "")


def _has_results(folder: Path) -> bool:
    return any(path.suffix in (".json", ".jsonl") for path in folder.glob("*.json*"))


def _moved(path: Path, target: Path) -> bool:
    """Whether the stored results have all that a file holds, which is removed then."""
    if path.suffix == ".jsonl" and path.name not in RECORDS and not (path.name == noise.FILE and target.exists()):
        write_all({target: united.lines(target, path.read_bytes().splitlines())})  # what no rule is about
    has = target.exists() and set(path.read_bytes().splitlines()) <= set(target.read_bytes().splitlines())
    if has:
        path.unlink()
    return has


def main(words: Sequence[str] | None = None, stored: Path = ROOT / "results") -> int:
    """Move what is local, or say what is wrong with it; return 0 or 1."""
    parser = argparse.ArgumentParser(description="Move local results into results/.")
    parser.add_argument("--machine", metavar="NAME", help="only those of this machine")
    parser.add_argument(
        "--replace", action="store_true", help="local numbers take the place of stored ones that differ"
    )
    options = parser.parse_args(words)
    local = folders.local(stored)
    names = (
        [options.machine] if options.machine else sorted(path.name for path in local.glob("*") if _has_results(path))
    )
    refused = 0
    for name in names:
        try:
            print(keep(name, stored, stored.parent, replace=options.replace))
            print(f"to store them: git add {stored.name} && git commit")
        except (RefusedError, UserError, OSError) as error:
            print(f"refused: {one_line(error)}", file=sys.stderr)
            refused = 1
    if not names:
        print(f"nothing to keep: {local.name} has no results")
    return refused
