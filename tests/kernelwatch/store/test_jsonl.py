"""Files of one JSON text a line: what is read is what was written, and nothing stored is lost by what fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import jsonl

ENTRIES: list[dict[str, Any]] = [{"name": "one", "samples": [1.0, 2.5]}, {"name": "µs\n", "samples": []}, {}]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Appended one by one or written anew; one line each; no other file is left."""
    path = tmp_path / "kept.jsonl"
    assert jsonl.read(path) == []
    for entry in ENTRIES:
        jsonl.append(path, entry)
    assert jsonl.read(path) == ENTRIES
    assert len(path.read_text().splitlines()) == len(ENTRIES)
    jsonl.replace(path, ENTRIES[1:])
    assert jsonl.read(path) == ENTRIES[1:]
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_that_fails_loses_nothing(tmp_path: Path) -> None:
    """The file is as before, and what was found lies beside it."""
    path = tmp_path / "kept.jsonl"
    jsonl.append(path, {"name": "before"})

    def entries() -> Iterator[dict[str, Any]]:
        yield {"name": "one"}
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        jsonl.replace(path, entries())
    assert jsonl.read(path) == [{"name": "before"}]
    assert jsonl.read(path.with_suffix(".unfinished")) == [{"name": "one"}]


@pytest.mark.parametrize("line", ["{", '{"a": 1', "nan,"])
def test_a_line_that_is_no_json_is_named(line: str, tmp_path: Path) -> None:
    """By file and number; blank lines count, and are no entries."""
    path = tmp_path / "kept.jsonl"
    path.write_text(f'{{"name": "one"}}\n\n{line}\n')
    with pytest.raises(ValueError, match=r"kept\.jsonl, line 3: is not JSON"):
        jsonl.read(path)
