"""What a kernel prints and asserts, without a function of the driver."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import ptxcount
from ptxcount.bind_call import PRINTED
from ptxcount.command_line import main

SOURCE = r"""
#include <cassert>
#include <cstdio>
extern "C" __global__ void say(int* a, double* d)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x; long far = -(5l << 40);
    const char* when = i > 2 ? "late" : "early";
    if (i % 2) printf("%3d|%-4u|%+.2f|%s|%c|%%|%llx|%*d|%ld\n", a[i], i, d[i], when, 65 + i, 1ull << 40, 5, i, far);
    else printf("even\n");
    a[i] = printf("%d %d;", i, -i);
}
extern "C" __global__ void check(int* a, int n) { assert(a[threadIdx.x] < n); a[threadIdx.x] = 0; }
"""


def test_printf() -> None:
    """Each thread's line, by the format that it has; the result is the number of arguments; no access is counted."""
    a, d = np.arange(4, dtype=np.int32) * 7, np.linspace(0, 1.5, 4)
    counters = ptxcount.count(SOURCE, "say", 2, 2, [a, d])
    expected = [
        f"{7 * i:3}|{i:<4}|{i / 2:+.2f}|{'late' if i > 2 else 'early'}|{chr(65 + i)}|%|{1 << 40:x}|{i:5}|{-5 << 40}\n"
        for i in (1, 3)
    ]
    assert sorted(counters.printed) == sorted([*expected, "even\n", "even\n", *(f"{i} {-i};" for i in range(4))])
    assert a.tolist() == [2] * 4
    assert {(each.code, each.times) for each in counters.findings} == {("printf", 2), ("printf", 4)}
    assert {each.space for each in counters.accesses if each.kind == "load"} == {"global"}


def test_many_lines() -> None:
    """A launch keeps the first of what it prints."""
    a, d = np.zeros(2048, np.int32), np.zeros(2048)
    assert len(ptxcount.count(SOURCE, "say", 16, 128, [a, d]).printed) == PRINTED


def test_assert() -> None:
    """A failed assertion ends the kernel, and names itself, its line, and the first thread."""
    a = np.arange(64, dtype=np.int32)
    assert not ptxcount.count(SOURCE, "check", 1, 64, [a.copy(), np.int32(64)]).findings
    said = r"thread \(40, 0, 0\): assertion 'a\[threadIdx.x\] < n' failed in .*:12"
    with pytest.raises(ptxcount.TrapError, match=said):
        ptxcount.count(SOURCE, "check", 1, 64, [a, np.int32(40)])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints it last, and has it in JSON."""
    (tmp_path / "say.cu").write_text(SOURCE)
    words = [str(tmp_path / "say.cu"), "--entry", "say", "--grid", "1", "--block", "1", "a=int32[1]", "d=float64[1]"]
    assert main(words) == 0
    assert capsys.readouterr().out.endswith(": printf: the kernel prints\n\neven\n0 0;\n")
    assert main([*words, "--json"]) == 0
    given = json.loads(capsys.readouterr().out)
    assert given["printed"] == ["even\n", "0 0;"]
    schema = json.loads((files("ptxcount") / "count.schema.json").read_text(encoding="utf-8"))
    local = {f"local_store_{name}" for name in ("requests", "sectors", "useful_bytes")}  # what is printed lies there
    assert {*given} - {*schema["properties"]} == {*ptxcount.LaunchCounters(1).totals()} | local
    pytest.importorskip("jsonschema").validate(given, schema)
