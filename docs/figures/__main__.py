"""Rewrite the tables of the results page and draw its picture: `make readme`."""

from __future__ import annotations

from docs.figures import picture, tables
from kernelwatch.config.project_root import ROOT
from kernelwatch.store.results import History
from ptxcount.util import atomic_write

history = History(tables.MACHINE, ROOT)
results = tables.ResultTables(history)
for page, lines in tables.PAGES.items():
    atomic_write.write(page, tables.replace_between_markers(page.read_text(encoding="utf-8"), lines(results)))
picture.draw_picture(history, ROOT / "docs" / "bandwidth.svg")
