"""Where the results of a machine are: in `results/`, which git tracks, or in `results-local/`, which it ignores.

A machine that `results/` knows is measured into it. Any other is local until `make keep`, so that a run does not change
the checkout. A pull may bring results of a machine that has local ones too. The two are never mixed: the stored ones
are read and added to, the local ones stay as they are and wait for `make keep`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from asv.console import log

from runner.accept import suite

#: The environment variable that names one folder to write results to, and to read them from, in place of both.
RESULTS = "COALESCING_WATCH_RESULTS"


def local(stored: Path) -> Path:
    """Return the folder of local results, beside the stored ones."""
    return stored.with_name(f"{stored.name}-local")


def of(machine: str, stored: Path) -> Path:
    """Return the folder that a machine's results are written to and read from.

    Parameters
    ----------
    machine : str
        Its name.
    stored : Path
        The folder that asv.conf.json names.
    """
    chosen = os.environ.get(RESULTS)
    return Path(chosen) if chosen else stored if _knows(stored, machine) else local(stored)


def machines(stored: Path) -> list[str]:
    """Return the names of the machines that have results anywhere."""
    chosen = os.environ.get(RESULTS)
    places = [Path(chosen)] if chosen else [stored, local(stored)]
    return sorted({path.parent.name for place in places for path in place.glob("*/machine.json")})


@contextmanager
def joined(stored: Path) -> Iterator[Path]:
    """Give one folder that has the results of all machines: asv's commands read no more than one.

    Yields
    ------
    Path
        The stored results where no machine is local, else a folder of links, for as long as it is needed.
    """
    chosen, beside = os.environ.get(RESULTS), local(stored)
    if chosen or not beside.exists():
        yield Path(chosen or stored)
        return
    hidden = sorted(path.name for path in beside.iterdir() if _knows(stored, path.name))
    for machine in hidden:
        log.warning(f"{beside / machine} is left out: {stored} has results of that name; make keep adds them")
    files = {path.relative_to(place): path for place in (beside, stored) for path in place.rglob("*.json*")}
    files = {name: path for name, path in files.items() if path.is_relative_to(stored) or name.parts[0] not in hidden}
    if Path(suite.FILE) in files:
        files[Path(suite.FILE)] = newest(stored / suite.FILE, beside / suite.FILE)
    with tempfile.TemporaryDirectory() as made:
        for name, path in files.items():
            target = Path(made, name)
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(path.resolve())
        yield Path(made)


def newest(*lists: Path) -> Path:
    """Return the list of benchmarks that was written last: by the checkout that was used last."""
    return max(lists, key=lambda path: path.stat().st_mtime_ns if path.exists() else -1)


def _knows(folder: Path, machine: str) -> bool:
    return (folder / machine / "machine.json").exists()
