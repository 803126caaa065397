"""What experiments keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments import kept

FACTS = {"gpu": "GPU X", "commit": None}


def test_lines(tmp_path: Path) -> None:
    """One of facts, one an entry; read as they were."""
    entries: list[dict[str, Any]] = [{"name": "one", "samples": [1.0, 2.5]}, {"name": "two", "samples": []}]
    kept.write(tmp_path / "kept.jsonl", FACTS, entries)
    assert [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()] == [
        {"facts": FACTS},
        *entries,
    ]
    assert kept.read(tmp_path / "kept.jsonl") == (FACTS, entries)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.jsonl"]


def test_a_run_that_fails_loses_nothing(tmp_path: Path) -> None:
    """The file is as before, and what was found lies beside it."""
    path = tmp_path / "kept.jsonl"
    path.write_text("before")

    def entries() -> Iterator[dict[str, Any]]:
        yield {"name": "one"}
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        kept.write(path, FACTS, entries())
    assert path.read_text() == "before"
    assert '"one"' in (tmp_path / "kept.unfinished").read_text()
