"""Where results are: runs write to `results-local/`, which git ignores, and `make keep` to `results/`, which it tracks.

So no run changes the checkout. What is read is both. Where both have a number of a configuration, the
local one counts.
"""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from asv.console import log

from kernelwatch.store import storing, united
from kernelwatch.store.accept import suite

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

    Parameters
    ----------
    folder : Path
        That of the stored results, or the one that runs write to.
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
    """Give one folder that has the results of all places: asv's commands read no more than one.

    Parameters
    ----------
    stored : Path
        That of the stored results, or the one that runs write to.

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
            content = united.content(*found) if len(found) > 1 else None
            if content is not None:
                target.write_bytes(content)
            else:
                target.symlink_to((newest(*found) if target.name == suite.FILE else found[-1]).resolve())
        yield Path(made)


def newest(*lists: Path) -> Path:
    """Return the list of benchmarks that was written last: by the checkout that was used last."""
    return max(lists, key=lambda path: path.stat().st_mtime_ns if path.exists() else -1)


def _files(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield what is read of a folder, by its name there."""
    found = (path for path in sorted(folder.rglob("*.json*")) if path.suffix in (".json", ".jsonl"))
    return ((path.relative_to(folder), path) for path in found)


def _is_another(folder: Path, known: Path) -> bool:
    """Whether a folder is of another machine than the known one of that name."""
    facts = [each / "machine.json" for each in (folder, known)]
    if not all(each.exists() for each in facts) or any(storing.problem(each) for each in facts):
        return False
    one, other = (json.loads(each.read_bytes()) for each in facts)
    return bool(one != other)
