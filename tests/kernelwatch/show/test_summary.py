"""The end of `make bench`, and its tables, from this repository's own results of a GPU."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from asv.results import Results

from kernelwatch.asv import progress
from kernelwatch.instrument import skips
from kernelwatch.show import summary
from kernelwatch.store import git
from kernelwatch.store.results import History, Point

MATRIX = "rows x columns 12800x12800"


@pytest.fixture(scope="module")
def text() -> str:
    """The tables of 740a787 on an H200."""
    return "\n".join(summary.numbers(*_measured()))


def _measured() -> tuple[History, Results]:
    history = History("nvidia-h200")
    results = history.commit("740a7872b13f3fc74408f59cea51df6a85d996d9")
    assert results is not None
    return history, results


@pytest.mark.parametrize(
    ("title", "row", "shown"),
    [
        (f"Transpose, DRAM, microseconds a launch, {MATRIX}", "transpose_read_write_coalesced", "769.7"),
        (f"Transpose, DRAM, useful GB/s, {MATRIX}", "transpose_read_write_coalesced", "1703"),
        ("Offset copy, DRAM, useful GB/s, size 67108864", "0", "2696"),
        ("Stride copy, DRAM, microseconds a launch, size 4194304", "2", "24.1"),
        ("Compiled: registers a thread, -Xptxas -O3, sm_90", "offset_copy", "8"),
    ],
)
def test_float32(text: str, title: str, row: str, shown: str) -> None:
    """A table a metric, a row a kernel, offset or stride, a column a dtype."""
    (table,) = re.findall(rf"^{re.escape(title)}.*\n(?:.+\n)+", text, re.MULTILINE)
    (line,) = (line.split() for line in table.splitlines()[1:] if line.split()[0] == row)
    names = next(line.split() for line in table.splitlines() if "float32" in line)
    assert line[names.index("float32")] == shown


def test_what_computes_has_gflops() -> None:
    """Beside GB/s, at the sizes that tell most; of what moves data there are none."""
    benchmark = "time_kernel.MatrixProduct.time_back_to_back"
    (table,) = (each for each in summary.tables() if each.benchmark == benchmark)
    params = {"kernel": "matmul_tiled", "rows x inner x columns": "1024x1024x1024", "dtype": "float32"}
    point = Point({**params, "flags": "-Xptxas -O3"}, 1e-3)
    stored: Any = SimpleNamespace(points=lambda *_: [point], title=lambda _: "Matrix product, DRAM: time")
    text = "\n".join(table.lines(stored, stored))
    for unit, shown in (("microseconds a launch", "1000.0"), ("useful GB/s", "13"), (summary.GFLOPS, "2147")):
        assert re.search(rf"^Matrix product, DRAM, {unit}, .*\n.*\n.*\n *matmul_tiled +{shown}$", text, re.MULTILINE)


def test_what_moves_has_none(text: str) -> None:
    """Neither GFLOP/s, nor what they mean."""
    assert summary.GFLOPS not in text


def test_where_to_look() -> None:
    """It says in four lines what was skipped, and which page and commands show more."""
    first, *_, tables, own = summary.lines(*_measured())
    assert first == "Skipped: nothing"
    assert tables.strip() == "tables of them: KERNELWATCH_TABLES=1 .venv/bin/kernelwatch summary"
    assert own.endswith(".venv/bin/asv show 740a7872 --machine nvidia-h200")


@pytest.mark.parametrize("tables", ["", "1"])
def test_verdict_first(tables: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without tables, unless those are asked for."""
    history, results = _measured()
    monkeypatch.setenv(progress.TABLES, tables)
    monkeypatch.setattr(summary, "History", lambda *_: history)
    monkeypatch.setattr(git, "text", lambda *_: f"{results.commit_hash} f22cf79")
    monkeypatch.setattr(summary, "verdict", lambda *_: "THE VERDICT")
    assert summary.main() == 0
    said = capsys.readouterr().out
    assert said.endswith("\n".join(["THE VERDICT", *summary.lines(history, results), ""]))
    assert (len(said.splitlines()) > 100, said.startswith("THE VERDICT")) == (bool(tables), not tables)


@pytest.mark.parametrize(
    ("earlier", "begins"),
    [
        (["0" * 40], "Compared with nothing: nvidia-h200 has results of no earlier commit."),
        (["0" * 40, "f22cf79"], "FASTER  f22cf79 -> 740a7872 (3 commits), nvidia-h200\n"),
    ],
    ids=["nothing earlier", "the newest that was measured"],
)
def test_ends_with_the_verdict(earlier: list[str], begins: str) -> None:
    """Of the review against the commit that was measured before."""
    head = "740a7872b13f3fc74408f59cea51df6a85d996d9"
    told = summary.verdict(History("nvidia-h200"), head, earlier)
    assert told.startswith(begins)
    assert ("BASE=f22cf79 HEAD=740a7872" in told) == ("f22cf79" in told)


@pytest.mark.parametrize("tables", ["", "1"])
def test_skips(tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit of a run is told its own, and what no commit will have only together with the tables."""
    history, results = _measured()
    monkeypatch.setenv(progress.TABLES, tables)
    never = f"{skips.NEVER}addition has no int8; it has float32, float64"
    noted = [
        {"commit": commit, "benchmark": "b", "reason": reason, "configurations": count}
        for commit, reason, count in (
            ("f" * 40, "another's", 5),
            (results.commit_hash, "its own", 2),
            (results.commit_hash, never, 1),
        )
    ]
    monkeypatch.setattr(history, "run_of", lambda *_: {"skipped": noted})
    told = [line for line in summary.lines(history, results) if line.startswith("Skipped: ")]
    assert told == ["Skipped: 2 configurations: its own", *([f"Skipped: 1 configurations: {never}"] if tables else [])]
