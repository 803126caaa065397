"""The records beside asv's results: files of JSON lines that only grow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable
from pathlib import Path
from typing import Any

from kernelwatch.store.accept.models import RECORDS
from kernelwatch.store.accept.refusal import convert, parse, require

#: A commit, wherever a record names it.
_HASH = re.compile('"([0-9a-f]{40})"')

#: File -> what a line says of what: no other line may say otherwise of the same.
_SAYS: dict[str, Callable[[dict[str, Any]], dict[Hashable, object]]] = {
    "instructions.jsonl": lambda line: {line["code"]: line["instructions"]},
    "cubins.jsonl": lambda line: {
        (line["commit"], line["arch"], line.get("nvcc"), what, launch): sha256
        for what in ("cubins", "code")
        for launch, sha256 in line.get(what, {}).items()
    },
    "lines.jsonl": lambda line: {(line["key"], line["counter"]): line["text"]},
}


def added(path: Path, where: str, stored: Path, commits: Collection[str]) -> list[str]:
    """The lines of a record that are not stored yet and speak of the expected commits only, as they are to be stored.

    Raises
    ------
    RefusedError
        Such a line is not as it should be, comes twice, or says otherwise than another one.
    """
    known = set(stored.read_bytes().decode().splitlines()) if stored.exists() else set()
    says = _SAYS.get(path.name)
    said = {of: what for line in known for of, what in says(json.loads(line)).items()} if says else {}
    found: dict[str, bool] = {}
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        place = f"{where}, line {number}"
        record = parse(line or b"{}", place)
        # Written anew: a carriage return within a line would make two of it.
        text = json.dumps(record, default=repr)
        if not line or text in known:
            continue
        convert(record, RECORDS[path.name], place)
        require(text not in found, place, "comes twice")
        for of, what in says(record).items() if says else ():
            require(said.setdefault(of, what) == what, place, f"says {what} of {of}, but known is {said[of]}")
        found[text] = set(_HASH.findall(text)) <= set(commits)
    return [text for text, expected in found.items() if expected]
