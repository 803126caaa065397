"""Files of asv's page "Benchmark list", as asv 0.6.6 writes them: see findings/asv_list_of_skipped.sh."""

from __future__ import annotations

import json
from pathlib import Path

from kernelwatch.show.site import publisher


def test_empty_rows_are_dropped(tmp_path: Path) -> None:
    rows = [{"name": "track_bytes", "idx": index, "last_value": value} for index, value in enumerate([None, 0.0, 16.0])]
    folder = tmp_path / "graphs" / "branch-main" / "machine-host"
    folder.mkdir(parents=True)
    for name in ("summary.json", "track_bytes.json"):
        (folder / name).write_text(json.dumps(rows))
    publisher.drop_empty_rows(tmp_path)
    assert json.loads((folder / "summary.json").read_text()) == rows[1:]
    assert json.loads((folder / "track_bytes.json").read_text()) == rows
