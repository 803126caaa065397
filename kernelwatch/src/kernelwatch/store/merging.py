"""Results of one machine, taken into another folder: those of a fleet's worker, or of `results-local/`."""

from __future__ import annotations

import json
from pathlib import Path

from kernelwatch.store import jsonl, reading, rows, samples, storing
from kernelwatch.store.models import RESULT
from kernelwatch.store.record import RECORDS
from ptxcount import whole

#: So many benchmarks are named whose numbers differ.
_NAMED = 3


class DifferingError(ValueError):
    """What came is of another machine, or has other numbers than what is stored; the message begins with its place."""


def merge(came: Path, stored: Path, machine: str, *, replace: bool = False) -> str:
    """Take a machine's results, all of them or none, and say in a sentence how many.

    What only one side has of a commit stays. Of thresholds and of the list of benchmarks, those that came count.

    Parameters
    ----------
    came, stored : Path
        Folders in the shape of `results/`.
    machine : str
        Whose results.
    replace : bool
        Whether numbers that came take the place of stored ones that differ.

    Raises
    ------
    DifferingError
        The stored machine is another, or stored numbers differ and are not to be replaced.
    UnreadableError
        A file is not as its model has it.
    """
    with storing.alone(stored):
        taken: dict[Path, bytes] = {}
        for path in sorted((came / machine).glob("*.json*")):
            target = stored / machine / path.name
            content = _merged(path, target, replace=replace)
            if not target.exists() or content != target.read_bytes():
                taken[target] = content
        if (came / reading.SUITE).exists():
            taken[stored / reading.SUITE] = reading.content(came / reading.SUITE)
        for target, content in taken.items():
            target.parent.mkdir(exist_ok=True)
            whole.write(target, content)
    return f"{machine}: {sum(RESULT.fullmatch(path.name) is not None for path in taken)} commits taken"


def _merged(path: Path, target: Path, *, replace: bool) -> bytes:
    """Return the content of a file with what is stored of it."""
    if path.name in RECORDS:
        return jsonl.united(target, (line for line, _ in reading.lines(path, RECORDS[path.name])))
    content = reading.content(path)
    if path.name == "machine.json" and target.exists() and json.loads(content) != json.loads(target.read_bytes()):
        raise DifferingError(f"{path}: is not the machine of {target}")
    both = (path, target) if target.exists() else (path,)
    for each in both if RESULT.fullmatch(path.name) else ():
        reading.document(each)
    if not RESULT.fullmatch(path.name) or not target.exists() or content == target.read_bytes():
        return content
    ours, theirs = samples.read(path), samples.read(target)
    names = rows.differing(ours, theirs)
    if names and not replace:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise DifferingError(
            f"{path}: has other numbers than {target} for {', '.join(names[:_NAMED])}{more}; "
            "--replace puts new numbers in the place of stored ones"
        )
    return json.dumps(rows.together(ours, theirs) if replace else rows.together(theirs, ours)).encode()
