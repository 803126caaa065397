"""Lines of records: what is read is what was written, and nothing stored is lost by what fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store.folders import append

ENTRIES: list[dict[str, Any]] = [{"name": "one", "samples": [1.0, 2.5]}, {"name": "µs\n", "samples": []}, {}]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """One line each, and none twice; a line that has no end stays one of its own; no other file is left."""
    path = tmp_path / "kept.jsonl"
    path.write_text("nan,")
    for entry in [*ENTRIES, *ENTRIES]:
        append(path, entry)
    first, *others = path.read_text().splitlines()
    assert (first, [*map(json.loads, others)]) == ("nan,", ENTRIES)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("entries", [[{"n": 1}, {"n": {2}}], [{"n": {1}}]], ids=["the second", "the first"])
def test_what_cannot_be_written_is_written_in_no_part(entries: list[dict[str, object]], tmp_path: Path) -> None:
    """All entries or none, and no other file is left."""
    path = tmp_path / "runs.jsonl"
    append(path, {"n": 0})
    with pytest.raises(TypeError):
        append(path, *entries)
    assert json.loads(path.read_text()) == {"n": 0}
    assert list(tmp_path.iterdir()) == [path]
