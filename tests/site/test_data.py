"""What the pages read: pieces that hold what was stored, and scripts beside asv's own files."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.show.site import data
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.store.results import History
from kernelwatch.suite import registry
from tests.stored import BASE, COUNT, Suite, write


def handed_over(path: Path) -> Any:
    """What a script hands over; JSON in the strict sense, without NaN."""
    match = re.fullmatch(r"arrived\((\".*\")\);\n", path.read_text(encoding="utf-8"))
    assert match is not None, path
    return json.loads(json.loads(match[1]), parse_constant=pytest.fail)


def test_of_several_pythons_the_last_counts(tmp_path: Path) -> None:
    """By its name; where it has no value, the one before. What failed is told from what is not there."""
    nothing = float("nan")
    for version, cases in {"3.9": (1.0, 2.0, None), "3.11": (3.0, 4.0, None), "3.10": (5.0, nothing, None)}.items():
        made: Suite = {BASE: {COUNT: dict(zip(("one", "two", "three", "four"), (*cases, nothing), strict=True))}}
        root = write(tmp_path, made, environment=f"python{version}")
    history = History("gpu", root)
    data.write_data(tmp_path / "data", {COUNT: {"id": 0}}, {"gpu": ShownMachine(history, data.load_values(history, [COUNT]), [])})
    piece = handed_over(tmp_path / "data" / "values" / "0" / "0.js")
    assert (piece["values"], piece["failed"]) == ([[1.0, 2.0, None, None]], [{"2": "failed"}])


def test_order_of_benchmarks() -> None:
    """The suite's; what it does not know, or no longer, comes last."""
    known = list(registry.current_suite().benchmarks)
    assert list(data.number_benchmarks(["a.A.time_a", *reversed(known), "z.Z.time_z"])) == [*known, "a.A.time_a", "z.Z.time_z"]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        *((each, each) for each in ({"__proto__": "</script>"}, "\u2028\\u2028", [1.5, None, '\\""'])),
        *(([1.5, value], [1.5, None]) for value in (math.nan, math.inf, -math.inf)),
    ],
)
def test_script_hands_over_any_json(given: Any, read: Any, tmp_path: Path) -> None:
    """Whatever the text holds, the script is one call with one argument; what JSON does not know is missing."""
    (tmp_path / "piece.js").write_text(data.format_script(given), encoding="utf-8")
    assert handed_over(tmp_path / "piece.js") == read
