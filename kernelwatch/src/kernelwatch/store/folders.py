"""Where results are: runs write to `results-local/`, which git ignores; `make keep` moves that to `results/`.

So no run changes the checkout. What is read is both. Where both have a number of a configuration, the local one counts.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from asv.console import log
from asv.util import UserError

from kernelwatch.command import one_line
from kernelwatch.project import ROOT
from kernelwatch.store import jsonl, rows, samples, storing
from kernelwatch.store.merging import merge
from kernelwatch.store.reading import SUITE

#: The environment variable that names one folder to write results to, and to read them from, in place of both.
RESULTS = "KERNELWATCH_RESULTS"

_LOCAL = "-local"

#: Ends when this process does.
_lasting = ExitStack()
atexit.register(_lasting.close)


def local(stored: Path) -> Path:
    """Return the folder of local results, beside the stored ones."""
    return stored.with_name(stored.name + _LOCAL)


def written(stored: Path) -> Path:
    """Return the folder that runs write to."""
    chosen = os.environ.get(RESULTS)
    return Path(chosen) if chosen else local(stored)


def places(folder: Path) -> list[Path]:
    """Return the folders that are read; what the last one has counts.

    `folder` is that of the stored results, or the one that runs write to.
    """
    chosen = os.environ.get(RESULTS)
    stored = folder.with_name(folder.name.removesuffix(_LOCAL))
    return [Path(chosen)] if chosen else [stored, local(stored)]


def machines(stored: Path) -> list[str]:
    """Return the names of the machines that have results anywhere."""
    return sorted({path.parent.name for place in places(stored) for path in place.glob("*/machine.json")})


def union(stored: Path) -> Path:
    """Return one folder that has the results of all places, as `joined`, for as long as this process lives."""
    return _lasting.enter_context(joined(stored))


@contextmanager
def joined(stored: Path) -> Iterator[Path]:
    """Give one folder that has the results of all `places`: asv's commands read no more than one.

    Yields
    ------
    Path
        The first place where there is no other, else a folder of links, and of files that unite two, for as long as it
        is needed.
    """
    first, *others = places(stored)
    if not any(each.exists() for each in others):
        yield first
        return
    (last,) = others
    hidden = {path.name for path in last.iterdir() if _is_another(path, first / path.name)}
    for machine in sorted(hidden):
        log.warning(f"{last / machine} is left out: its machine.json is not that of {first / machine}")
    theirs, ours = dict(_files(first)), {name: path for name, path in _files(last) if name.parts[0] not in hidden}
    with tempfile.TemporaryDirectory(prefix=f"{first.name}-and-{last.name}-") as made:  # messages name it
        for name in {**theirs, **ours}:
            target, found = Path(made, name), [files[name] for files in (theirs, ours) if name in files]
            target.parent.mkdir(exist_ok=True)
            content = _united(*found) if len(found) > 1 else None
            if content is not None:
                target.write_bytes(content)
            else:
                target.symlink_to((_newest(*found) if target.name == SUITE else found[-1]).resolve())
        yield Path(made)


def _newest(*lists: Path) -> Path:
    """Return the list of benchmarks that was written last: by the checkout that was used last."""
    return max(lists, key=lambda path: path.stat().st_mtime_ns if path.exists() else -1)


def _files(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield what is read of a folder, by its name there."""
    found = (path for path in sorted(folder.rglob("*.json*")) if path.suffix in (".json", ".jsonl"))
    return ((path.relative_to(folder), path) for path in found)


def _is_another(folder: Path, known: Path) -> bool:
    """Whether a folder is of another machine than the known one of that name."""
    try:
        one, other = (json.loads((each / "machine.json").read_bytes()) for each in (folder, known))
    except (OSError, ValueError):  # there is none, or whoever reads it says what is wrong
        return False
    return bool(one != other)


def _united(stored: Path, local: Path) -> bytes | None:
    """Return what both files hold, where the local one counts; None if it holds all that is to be read."""
    if local.suffix == ".jsonl":
        return jsonl.united(stored, local.read_bytes().splitlines())
    try:
        ours, theirs = (samples.read(path) for path in (local, stored))
        both = rows.together(ours, theirs)
        is_more = both["results"] != ours["results"]  # a row that nothing was added to is the same object, NaN or not
        return json.dumps(both).encode() if is_more else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no results, or torn: the reader says so
        return None


def keep(machine: str, stored: Path, *, replace: bool = False) -> str:
    """Move the local results of a machine into the stored ones; say how many. Raises as `merging.merge`.

    With `replace`, local numbers take the place of stored ones that differ.
    """
    came = local(stored)
    with storing.alone(came):
        said = merge(came, stored, machine, replace=replace)
        shutil.rmtree(came / machine)
    return said


def _has_results(folder: Path) -> bool:
    return any(path.suffix in (".json", ".jsonl") for path in folder.glob("*.json*"))


def main(words: Sequence[str] | None = None, stored: Path = ROOT / "results") -> int:
    """Move what is local, or say what is wrong with it; return 0 or 1."""
    parser = argparse.ArgumentParser(description="Move local results into results/.")
    parser.add_argument("--machine", metavar="NAME", help="only those of this machine")
    parser.add_argument(
        "--replace", action="store_true", help="local numbers take the place of stored ones that differ"
    )
    options = parser.parse_args(words)
    came = local(stored)
    found = sorted(path.name for path in came.glob("*") if _has_results(path))
    names = [options.machine] if options.machine else found
    refused = 0
    for name in names:
        try:
            print(keep(name, stored, replace=options.replace))
            print(f"to store them: git add {stored.name} && git commit")
        except (ValueError, UserError, OSError) as error:
            print(f"refused: {one_line(error)}", file=sys.stderr)
            refused = 1
    if not names:
        print(f"nothing to keep: {came.name} has no results")
    return refused
