"""The records beside asv's results: files of JSON lines that only grow."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from runner.accept import strict
from runner.accept.strict import RefusedError, is_hashes, is_moment, is_number, is_texts, require

_ARCH = re.compile(r"sm_\d+[af]?")
_SHA256 = re.compile(r"[0-9a-f]{64}")

#: Records that are taken, and what each line must hold besides facts. Not `noise.jsonl`: thresholds decide verdicts, so
#: a person commits them.
FILES: dict[str, dict[str, Callable[[Any], bool]]] = {
    "runs.jsonl": {
        "commits": is_hashes,
        "started": is_moment,
        "ended": is_moment,
        "peak_bytes_per_second": lambda value: value is None or (is_number(value) and value > 0),
        "before": lambda value: isinstance(value, dict),
        "after": lambda value: isinstance(value, dict),
    },
    "cubins.jsonl": {
        "commit": lambda value: is_hashes([value]),
        "arch": lambda value: isinstance(value, str) and bool(_ARCH.fullmatch(value)),
        "cubins": lambda value: is_texts(value) and all(map(_SHA256.fullmatch, value.values())),
    },
}


def added(path: Path, where: str, stored: Path, commits: Collection[str]) -> list[str]:
    """The lines of a record that are not stored yet and speak of the expected commits only.

    Raises
    ------
    RefusedError
        Such a line is not as it should be.
    """
    known = set(_lines(stored)) if stored.exists() else set()
    found: list[str] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip() or line in known:
            continue
        place = f"{where}, line {number}"
        record = strict.parse(line, place)
        require(isinstance(record, dict), place, "is no mapping")
        strict.check_facts(record, place)
        for key, holds in FILES[path.name].items():
            require(key in record and holds(record[key]), place, f"{key} is missing or not as expected")
        if _commits(record, place) <= set(commits):
            found.append(line)
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError:
        raise RefusedError(f"{path.name}: is not UTF-8") from None


def _commits(record: dict[str, Any], where: str) -> set[str]:
    """Every commit that a record names."""
    found = record.get("commits", [record["commit"]] if "commit" in record else [])
    require(is_hashes(found), where, "names commits otherwise than by full hashes")
    return set(found)
