"""Costs of source lines: keys of stored costs, and the text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwatch import Kernel, inputs, outputs, scalar
from kernelwatch.counting import source_lines
from kernelwatch.instrument import fingerprint
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from kernelwatch.suite.registry import Suite
from kernelwatch.suite.sweep import Sweep

#: Body of a kernel -> lines of the text that describe it.
LINES = {
    "\tout[threadIdx.x] = x[threadIdx.x];\t// \u03b1": [
        "      2     out[threadIdx.x] = x[threadIdx.x];  // \u03b1",
        "         ^ load: 4.00 sectors per request, ideal 4.00; 1.00 cache lines, ideal 1.00",
        "         ^ store: 4.00 sectors per request, ideal 4.00; 1.00 cache lines, ideal 1.00",
    ],
    "": [source_lines.NO_ACCESSES],
}


def _compute_key(monkeypatch: pytest.MonkeyPatch, n: int, **change: Any) -> str:
    row: dict[str, Any] = {"arguments": [outputs("out", "n"), "n"], "block": 64, "over": ("n",), "text": "//"}
    kernel = Kernel("copy", **{**row, **change})
    monkeypatch.setattr(registry, "find_kernel", lambda _: kernel)
    return source_lines.launch_key(Launch("copy", "float32", "-O3", {"n": n}))


def test_keys_depend_on_source_and_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    out = outputs("out", "n")
    changes: dict[str, dict[str, Any]] = {
        "none": {},
        "block": {"block": 32, "grid": (1,)},
        "grid": {"grid": (2,)},
        "source": {"text": "/"},
        **{f"option {option}": {"options": [option]} for option in ("-DN=4", "-DN=8")},
        **{f"scalar {value}": {"arguments": [out, scalar("n", value=value)]} for value in (1, 32, "2*n")},
        **{f"constant {value}": {"constants": {"table": np.array([value], "f4")}} for value in (0, 1)},
        "values of an input": {"arguments": [out, inputs("x", "n", values=np.zeros), "n"]},
        **{
            f"content {content}": {"arguments": [out, inputs("x", "n", dtype="int32", **content), "n"]}
            for content in ({"values": "zeros"}, {"index": "n"}, {"index": "1"})
        },
        "seed of an input": {"arguments": [out, inputs("x", "n", seed=1), "n"]},
    }
    cases = {_compute_key(monkeypatch, 64, **change): name for name, change in changes.items()}
    cases[_compute_key(monkeypatch, 65)] = "another n"
    assert [*cases.values()] == [*changes, "another n"], "a missing case has the key of another one"


def test_stored_keys_of_line_costs_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without own options, values and constants, the key is the hash of source, launch, grid and block."""
    stored_key = fingerprint.hash_facts("//", "copy n=64 float32 -O3", (1, 1, 1), (64, 1, 1))
    assert _compute_key(monkeypatch, 64) == stored_key
    assert _compute_key(monkeypatch, 64, options=["-DT={T}", "-DELEMENT={bits}"]) == stored_key


@pytest.mark.parametrize("body", LINES)
def test_text_of_line_costs(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text has each line's costs, or says that no line accesses memory. Tab stops are four columns apart."""
    text = f"__global__ void copy(float* out, const float* x, int n) {{\n{body}\n}}"
    arguments: Any = [outputs("out", "n", "float32"), inputs("x", "n", "float32"), "n"]
    kernel = Kernel("copy", arguments, 64, over=("n",), text=text, reference=(lambda x: x) if body else None)
    axes = {"dtype": ("float32",), "flags": ("-Xptxas -O3",)}
    sweep = Sweep("Copy", "Copy", axes, kernel="copy", fixed={"n": 64})
    suite = Suite(kernels=lambda: {"copy": kernel}, timed=(), copy=None, counted=(sweep,), compiled=sweep)
    monkeypatch.setattr(registry, "current_suite", lambda: suite)
    assert not list(source_lines.iter_missing(tmp_path, {"Other"}))
    (missing_line,) = source_lines.iter_missing(tmp_path, {"Copy"})
    # Without the lines of the signature and of the last brace.
    shown = [line for line in missing_line["text"].splitlines() if line.strip(" 13{}") and "void" not in line]
    assert shown == LINES[body]
