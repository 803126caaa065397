"""The experiment that sets transposes of libraries beside ours: what it keeps, shows, and does without a GPU."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from experiments import pages, transposes
from experiments.libraries import LIBRARIES
from experiments.transposes import KERNELS, Transposed
from gpu_kernels import dtypes
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT
from kernelwatch.store import jsonl

KEPT = pages.EVIDENCE / "transposes.jsonl"

FACTS = {"gpu": "GPU", "uuid": "GPU-1", "driver": "1", "nvcc": "13.0.88", "commit": "abc", "date": "2026-11-22"}


def test_page_is_fresh() -> None:
    """The page is what the kept data renders to, and the page of results has its first table."""
    known, found = transposes.read(KEPT)
    assert (pages.EVIDENCE / "transposes.md").read_text(encoding="utf-8") == transposes.page(known, found)
    assert transposes.table(found, *transposes.SHAPES[0]) in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def test_kept_data_is_whole() -> None:
    """Of every shape and dtype there are the suite's kernels, and of each library what it has, if any was measured."""
    _, found = transposes.read(KEPT)
    measured = {each.method for each in found}
    expected = {
        (rows, columns, dtype, method)
        for rows, columns in transposes.SHAPES
        for dtype in dtypes.ONE_OF_EACH_SIZE
        for method in measured
        if method in KERNELS or dtype in LIBRARIES[method].dtypes
    }
    assert {(each.rows, each.columns, each.dtype, each.method) for each in found} == expected
    assert measured <= {*KERNELS, *LIBRARIES}


def test_shares(tmp_path: Path) -> None:
    """A share is the copy's time over the method's; a row a method, empty where a library lacks a dtype."""
    found = [
        Transposed(12, 34, "float32", "transpose_vectorized", 2e-6, 1e-6),
        Transposed(12, 34, "float32", "geam", 4e-6, 1e-6),
        Transposed(12, 34, "int8", "transpose_vectorized", 1e-6, 1e-6),
        Transposed(56, 78, "int8", "torch", 8e-6, 1e-6),
    ]
    data = tmp_path / "data.jsonl"
    jsonl.replace(data, [{"facts": FACTS}, *map(dataclasses.asdict, found)])
    assert transposes.main(["--data", str(data), "--render", str(tmp_path / "page.md")]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    assert ["`transpose_vectorized`", "1.000", "", "0.500", "", ""] in cells
    assert ["cuBLAS geam", "", "", "0.250", "", ""] in cells
    assert ["56 x 78", *dtypes.ONE_OF_EACH_SIZE] in cells
    assert ["PyTorch", "0.125", "", "", "", ""] in cells


def test_libraries_have_dtypes_of_the_suite() -> None:
    """Each of a library's dtypes is measured, and NumPy knows it."""
    for library in LIBRARIES.values():
        assert set(library.dtypes) <= set(dtypes.ONE_OF_EACH_SIZE)
        assert all(np.dtype(dtype) for dtype in library.dtypes)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so, and keeps what was measured."""
    monkeypatch.setattr(machine, "gpu", lambda: None)
    data = tmp_path / "data.jsonl"
    data.write_text("kept\n", encoding="utf-8")
    assert transposes.main(["--data", str(data)]) == 2
    assert "no GPU or no CuPy here" in capsys.readouterr().err
    assert data.read_text(encoding="utf-8") == "kept\n"
