"""Constant memory: values and counts apart from global loads."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import ptxcount
from ptxcount.command_line import main
from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.argument_layout import Argument
from ptxcount.util.errors import OutOfBoundsError, ReadOnlyError
from tests.ptxcount import by_sets, sources
from tests.ptxcount.commands import read_output
from tests.ptxcount.snippets import module

TAPS = np.array([0.5, 1, -2, 4, 8, 4, -2, 1, 0.25], np.float32)


def _list_constants(counters: LaunchCounters) -> list[tuple[str, int, int]]:
    return [(a.kind, a.requests, a.sectors) for a in counters.accesses if a.space == "constant"]


def test_constants_at_known_addresses_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    by_sets.COUNTS_BY_ACCESS.clear()
    monkeypatch.setattr("ptxcount.machine.chunk.Access", by_sets.Watched)
    rows, columns, block = 5, 203, 64
    image = np.random.default_rng(3).integers(-9, 10, (rows, columns)).astype(np.float32)
    out = np.zeros_like(image)
    args: list[Argument] = [out, image, np.int32(rows), np.int32(columns)]
    counters = execute_kernel(sources.ptx("constants"), "convolve_rows", (4, rows, 1), (block, 1, 1), args)
    padded = np.pad(image, ((0, 0), (4, 4)))
    np.testing.assert_array_equal(out, sum(t * padded[:, k : k + columns] for k, t in enumerate(TAPS)))
    totals = counters.totals()
    active_warps = rows * -(-columns // 32)
    assert (totals["load_requests"], totals["store_requests"]) == (active_warps * TAPS.size, active_warps)
    assert not by_sets.differences(counters.accesses)
    assert not _list_constants(counters), "they are operands of other instructions in machine code"


@pytest.mark.parametrize("from_constant", [0, 1])
def test_generic_load_counts_in_its_space(from_constant: int) -> None:
    source, out = np.arange(9, dtype=np.float32), np.zeros(40, np.float32)
    args: list[Argument] = [out, source, np.int32(from_constant)]
    counters = sources.execute("constants", "through_a_pointer", args, threads=40)
    assert out.tolist() == [*(TAPS if from_constant else source).tolist() * 5][:40]
    warps = 2
    assert counters.totals()["load_requests"] == (0 if from_constant else warps)
    assert _list_constants(counters) == ([("load", warps, 0)] if from_constant else [])


def test_store_to_constant_memory_is_refused() -> None:
    out, to_output, to_constant = np.zeros(9, np.float32), np.int32(0), np.int32(1)
    sources.execute("constants", "write_through_a_pointer", [out, to_output], threads=9)
    assert out.tolist() == [1] * 9
    with pytest.raises(ReadOnlyError, match=r"byte 0 of taps of 36 bytes"):
        sources.execute("constants", "write_through_a_pointer", [out, to_constant], threads=9)


def test_read_behind_a_constant_is_refused() -> None:
    ptx = sources.ptx("constants").replace("[taps+32]", "[taps+36]")  # from the last of 9 floats to the next word
    args: list[Argument] = [np.zeros(32, np.float32), np.zeros(32, np.float32), np.int32(1), np.int32(32)]
    with pytest.raises(OutOfBoundsError, match=r"4 bytes at 0x.*, which is byte 36 of taps of 36 bytes"):
        execute_kernel(ptx, "convolve_rows", (1, 1, 1), (32, 1, 1), args)


SET = """
namespace own { __constant__ float scale[2]; } __device__ int total = 5; __device__ unsigned seen[4];
extern "C" __global__ void k(float* x, int use)
{
    if (use) x[threadIdx.x] *= own::scale[threadIdx.x % 2];
    if (threadIdx.x == 0) { seen[2] += total; }
}
"""


def test_variables_are_set_by_name() -> None:
    x, scale, seen = np.arange(4, dtype=np.float32), np.array([2, 10], np.float32), np.full(4, 7, np.uint32)
    variables: dict[str, Argument] = {"scale": scale, "total": np.int32(11), "seen": seen}
    ptxcount.count(SET, "k", 1, 4, [x, np.int32(1)], variables=variables)
    assert x.tolist() == [0 * 2, 1 * 10, 2 * 2, 3 * 10]
    assert seen.tolist() == [7, 7, 7 + 11, 7]


def test_only_a_read_variable_needs_a_value() -> None:
    x = np.arange(4, dtype=np.float32)
    ptxcount.count(SET, "k", 1, 4, [x, np.int32(0)])
    remedy = r"own::scale has no value in the source; set it: --variable own::scale=float32\[2\]=ones"
    with pytest.raises(ptxcount.UnsetVariableError, match=f"source.cu:5 .* {remedy}"):
        ptxcount.count(SET, "k", 1, 4, [x, np.int32(1)])


@pytest.mark.parametrize(("name", "value", "message"), [
    ("scales", np.ones(2, np.float32), "'scales'; name one of total, seen, own::scale$"),
    ("scale", np.ones(1, np.float32), "it must have 8"),
    ("seen", np.zeros(8, np.uint32)[::2], "variable seen is not C-contiguous; pass a copy"),
])  # fmt: skip
def test_wrong_variable_is_refused(name: str, value: np.ndarray, message: str) -> None:
    with pytest.raises(ptxcount.LaunchError, match=message):
        ptxcount.count(SET, "k", 1, 4, [np.zeros(4, np.float32), np.int32(1)], variables={name: value})


def test_array_of_unknown_size_takes_any_value() -> None:
    """Its address in an initial value wraps around: 2 ** 64 - 4 is added to the address of the word before it."""
    declarations = ".extern .const .b32 x[];\n.const .b64 before = generic(x)+18446744073709551612;"
    body = """ld.param.u64 %rd1, [p0]; ld.const.u32 %r1, [x+8]; ld.const.u64 %rd2, [before]; ld.u32 %r2, [%rd2+8];
        add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;"""
    out = np.zeros(1, np.uint32)
    values: dict[str, Argument] = {"x": np.array([1, 20, 300], np.uint32)}
    ptxcount.count(module(body, 1, functions=declarations), "snippet", 1, 1, [out], variables=values)
    assert out.tolist() == [300 + 20]


TWO_TAPS = """
namespace a { __constant__ float taps[4]; }
namespace b { __constant__ float taps[4]; }
__constant__ float one;
extern "C" __global__ void k(float* x) { x[threadIdx.x] = a::taps[threadIdx.x] + b::taps[threadIdx.x] + one; }
extern "C" __global__ void none(float* x) { x[threadIdx.x] = 1; }
namespace a { __constant__ float one = 1; }
extern "C" __global__ void both(float* x) { x[threadIdx.x] = one + a::one; }
"""


@pytest.mark.parametrize(("kernel", "name", "message"), [
    ("k", "taps", "2 variables of the kernel end in ::taps; name one of a::taps, b::taps"),
    ("none", "taps", "the kernel uses no variable; remove 'taps'"),
])  # fmt: skip
def test_ambiguous_or_unused_variable_is_refused(kernel: str, name: str, message: str) -> None:
    with pytest.raises(ptxcount.LaunchError, match=f"^{message}$"):
        ptxcount.count(TWO_TAPS, kernel, 1, 4, [np.zeros(4, np.float32)], variables={name: np.ones(4, np.float32)})


@pytest.mark.parametrize("name", ["table", "own::table", "own::table<float>", "_ZN3own5tableIfEE"])
def test_variable_of_a_template_is_set_by_name(name: str) -> None:
    source = """namespace own { template <typename T> __device__ T table[4]; }
        extern "C" __global__ void k(float* x) { x[threadIdx.x] = own::table<float>[threadIdx.x]; }"""
    x, table = np.zeros(4, np.float32), np.arange(4, dtype=np.float32)
    ptxcount.count(source, "k", 1, 4, [x], variables={name: table})
    assert x.tolist() == table.tolist()


def test_full_name_selects_its_variable() -> None:
    """``a::one``, which is 1, ends in the name ``one``, too."""
    x = np.zeros(4, np.float32)
    ptxcount.count(TWO_TAPS, "both", 1, 4, [x], variables={"one": np.float32(2)})
    assert x.tolist() == [3, 3, 3, 3]


def test_variable_option_takes_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "own.cu"
    source.write_text(SET)
    words = [str(source), "--entry", "k", "--grid", "1", "--block", "4", "x=float32[4]", "int32:1"]
    assert main([*words, "--variable", "own::scale=float32[2]=ones", "--variable", "total=int32:3"]) == 0
    assert main(words) == 1
    assert "set it" in capsys.readouterr().err


BY_LANE = """
__constant__ float table[64] = {1};
__global__ void k(float* out, const int* at) { int i = threadIdx.x; out[i] = table[at[i]]; }
"""


@pytest.mark.parametrize(("indices", "addresses", "shown"), [
    ("at=int32[32]=zeros", 1, []),
    ("at=int32[32]", 32, ["32 constant addresses", "100%  table", "32 constant addresses per request, ideal 1"]),
])  # fmt: skip
def test_scattered_constant_addresses_are_listed(
    indices: str, addresses: int, shown: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "by_lane.cu"
    source.write_text(BY_LANE)
    words = [str(source), "--grid", "1", "--block", "32", "out=float32[32]", indices]
    out = read_output(capsys, *words)
    assert re.search(rf"(?m)^  load +1 +{addresses} .* 1.00$", out)
    assert ("constant load" in out) is bool(shown)
    assert [text for text in shown if text not in out] == []
    printed = json.loads(read_output(capsys, *words, "--json"))
    assert (printed["constant_requests"], printed["constant_addresses"]) == (1, addresses)
