"""Of files and of lines, what is read is what was written, and nothing stored is lost by what fails."""

from __future__ import annotations

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


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    """By file and number; blank lines count, and are no entries. One without an end stays a line of its own."""
    path = tmp_path / "kept.jsonl"
    path.write_text('{"name": "one"}\n\nnan,')
    jsonl.append(path, {"name": "two"})
    assert path.read_text().endswith('\nnan,\n{"name": "two"}\n')
    with pytest.raises(ValueError, match=r"kept\.jsonl, line 3: is not JSON"):
        jsonl.read(path)


@pytest.mark.parametrize("entries", [[{"n": 1}, {"n": {2}}], [{"n": {1}}]], ids=["the second", "the first"])
def test_what_cannot_be_written_is_written_in_no_part(entries: list[dict[str, object]], tmp_path: Path) -> None:
    """All entries or none, and no other file is left."""
    path = tmp_path / "runs.jsonl"
    jsonl.append(path, {"n": 0})
    with pytest.raises(TypeError):
        jsonl.append(path, *entries)
    with pytest.raises(TypeError):
        jsonl.replace(path, entries)
    assert jsonl.read(path) == [{"n": 0}]
    assert list(tmp_path.iterdir()) == [path]
