"""asv's page "Benchmark list" without empty rows. asv writes a row for each combination of the parameters."""

import json
from pathlib import Path


def drop_empty_rows(html: Path) -> None:
    """Drop rows without values from asv's lists in its `html_dir`, such as dtypes that a kernel does not support."""
    for path in html.glob("graphs/**/summary.json"):
        rows = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps([row for row in rows if row["last_value"] is not None]), encoding="utf-8")
