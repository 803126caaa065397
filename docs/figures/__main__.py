"""Rewrite the tables of the results page and draw its picture: `make readme`."""

from __future__ import annotations

from docs.figures import picture, tables
from kernelwatch.config.project_root import ROOT
from kernelwatch.store.results import History
from ptxcount.util import atomic_write

history = History(tables.MACHINE, ROOT)
lines = tables.render_page(tables.ResultTables(history))
atomic_write.write(tables.PAGE, tables.replace_between_markers(tables.PAGE.read_text(encoding="utf-8"), lines))
picture.draw_picture(history, ROOT / "docs" / "bandwidth.svg")
