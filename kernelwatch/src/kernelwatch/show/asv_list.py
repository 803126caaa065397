"""asv's page "Benchmark list" without its empty rows: asv writes one for each combination of the parameters."""

from __future__ import annotations

import json
from pathlib import Path


def drop_empty_rows(html: Path) -> None:
    """Drop the rows that never had a value from asv's lists in its `html_dir`: their kernel does not take the dtype."""
    for path in html.glob("graphs/**/summary.json"):
        rows = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps([row for row in rows if row["last_value"] is not None]), encoding="utf-8")
