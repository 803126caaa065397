"""Odd calls of the counter of the catalog: exit code 1 and one line.

Those of ptxcount are the library's own tests.
"""

from __future__ import annotations

import pytest

from kernelwatch.counting import counters

KERNEL = "transpose_read_coalesced"

#: Words, the exit code, and the line.
ODD: list[tuple[list[str], int, str]] = [
    ([KERNEL, "rows=--5", "columns=5"], 1, "ArgumentError: 'transpose_read_coalesced rows=--5 columns=5': an argument"),
    ([KERNEL, "rows=" + "9" * 5000, "columns=5"], 1, "ArgumentError: transpose_read_coalesced: rows must"),
    ([KERNEL, "rows=" + "9" * 30, "columns=5"], 1, "ArgumentError: transpose_read_coalesced: rows must fit"),
    ([KERNEL, "rows=\u0665", "columns=\u00b2"], 1, "ArgumentError: "),
    ([KERNEL, "rows=5", "columns=5", "--dtype", "o=object[4]"], 1, "ArgumentError: "),
    ([KERNEL, "rows=5", "columns=5", "--dtype", "object"], 1, "UnknownDtypeError: dtype object has 8"),
    ([KERNEL, "rows=5", "columns=5", "--dtype", "(" * 5000], 1, "UnknownDtypeError: dtype '(("),
    ([KERNEL, "rows=5", "columns=5", "--dtype", "f4," * 5000], 1, "UnknownDtypeError: dtype void160000"),
    ([KERNEL, "rows=5", "columns=5", "--flags", '"x'], 1, "Unknown"),
    ([KERNEL, "rows=5", "columns=5", "--flags", "--version"], 1, "CompileError: nvcc wrote nothing"),
    (["\ud800", "rows=5"], 1, "UnknownKernelError: kernel '\\ud800'"),
]


@pytest.mark.parametrize(("words", "code", "line"), ODD)
def test_odd_call(words: list[str], code: int, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong is told in one line, and nothing else is printed."""
    assert counters.main(words) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(line)
    assert captured.err.count("\n") == 1
