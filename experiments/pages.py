"""Pages of Markdown: tables, output, and what is missing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from kernelwatch.project import ROOT

#: Where pages and what they are made from are kept.
EVIDENCE = ROOT / "docs" / "evidence"


def table(rows: Sequence[Sequence[object]], heads: Sequence[str], align: Sequence[str] | None = None) -> str:
    """Return a table; `align` has "left" or "right" for each column, all are left if not given."""
    return str(tabulate(rows, heads, tablefmt="github", disable_numparse=True, colalign=align))


def made(name: str) -> str:
    """Return which command made an experiment's page, and from what."""
    folder = EVIDENCE.relative_to(ROOT)
    return f"Made by `python -m experiments.{name} --render {folder}/{name}.md` from `{folder}/{name}.jsonl`"


def put(page: str, file: Path | None) -> None:
    """Write a page to a file, or print it if there is none."""
    if file is None:
        sys.stdout.write(page)
    else:
        file.write_text(page, encoding="utf-8")


def tell_missing(names: Sequence[str]) -> None:
    """Say what the suite has by now and a page lacks. The page does not say it: every new kernel would change it."""
    if names:
        print(f"not measured: {', '.join(names)}", file=sys.stderr)
