"""Pointers in arguments: into the middle of arrays, in structs, and in memory."""

from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.cli.argument_words import make_arguments, make_variables
from tests.ptxcount.snippets import module
from tests.ptxcount.sources import compile_to_ptx

SOURCE = """
struct Row { const float* x; int n; };
struct Set { Row rows[2]; float* y; float by; };
struct Node { Node* next; float value; };
__device__ float* where;
extern "C" {
__global__ void shift(float* to, const float* from) { to[threadIdx.x] = from[(int)threadIdx.x - 1]; }
__global__ void copy(const float* from, float* to) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void of_struct(Set s) { s.y[threadIdx.x] = s.by * s.rows[0].x[threadIdx.x] + s.rows[1].x[s.rows[1].n]; }
__global__ void of_rows(float* out, float** rows) { out[threadIdx.x] = rows[threadIdx.x & 1][threadIdx.x]; }
__global__ void of_sets(const Set* s) { s[1].y[threadIdx.x] = s[0].rows[1].x[threadIdx.x]; }
__global__ void of_list(float* out, const Node* at) {
    float sum = 0;
    for (; at; at = at->next) sum += at->value;
    out[threadIdx.x] = sum;
}
__global__ void of_variable(float* out) { out[threadIdx.x] = where[threadIdx.x]; }
struct Picture { cudaTextureObject_t texture; float* out; };
__global__ void of_texture(Picture p) { p.out[threadIdx.x] = tex2D<float>(p.texture, threadIdx.x + 0.5f, 1.5f); }
}
"""
ZEROS = '"y": "float32[32]=zeros"'
ROWS = '"rows": [{"x": "float32[32]", "n": "int32:0"}, {"x": "float32[32]=ones", "n": "int32:3"}]'
ONE = f'{{{ROWS}, {ZEROS}, "by": "float32:2"}}'
NODE = '{"next": {"*": {"next": "int64:0", "value": "float32:2"}}, "value": "float32:5"}'
#: Kernel, words of arguments, words of variables, and the last array of zeros after the launch.
CASES: list[tuple[str, list[str], list[str], list[float]]] = [
    ("of_struct", [f"s={ONE}"], [], [2 * n + 1 for n in range(32)]),  # by * x[n] + 1
    ("of_rows", ["out=float32[32]=zeros", 'rows=["float32[32]", "float32[32]=ones"]'], [],
     [1 if n % 2 else n for n in range(32)]),
    ("of_sets", [f"s=[{ONE}, {ONE}]"], [], [1] * 32),  # the ones of the second row
    ("of_list", ["out=float32[32]=zeros", f'at={{"*": {NODE}}}'], [], [5 + 2] * 32),
    ("of_variable", ["out=float32[32]=zeros"], ['where={"*": "float32[32]"}'], [*range(32)]),
    ("of_texture", ['p={"texture": "texture:float32[4,32]", "out": "float32[32]=zeros"}'], [], [*range(32, 2 * 32)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_to_ptx(SOURCE)


def _list_zeros(argument: Any) -> list[Any]:
    """List the arrays of zeros in an argument and its members, in order."""
    if isinstance(argument, dict):
        return _list_zeros([*argument.values()])
    if isinstance(argument, list):
        return [array for member in argument for array in _list_zeros(member)]
    return [argument] if isinstance(argument, np.ndarray) and not argument.any() else []


@pytest.mark.parametrize(("entry", "words", "set_by_host", "expected"), CASES, ids=[case[0] for case in CASES])
def test_pointers_reach_their_arrays(
    entry: str, words: list[str], set_by_host: list[str], expected: list[float], ptx: str
) -> None:
    arguments = make_arguments(words)
    *_, output = _list_zeros(arguments)
    counters = ptxcount.count(ptx, entry, 1, 32, arguments, variables=make_variables(set_by_host))
    assert output.tolist() == expected
    assert counters.stores.sectors == 4


#: Slices of an array of 64 to store to and to load from, and the sectors of stores and loads: 4 if the first element is
#: a multiple of 8, else 5. The kernel loads from one element before the slice.
PARTS = [(slice(32, None), slice(1, 33), 4, 4), (slice(31, 63), slice(2, 34), 5, 5), (slice(0, 32), slice(8, 40), 4, 5)]


@pytest.mark.parametrize(("to", "source", "stored", "loaded"), PARTS)
def test_slice_keeps_its_address(to: slice, source: slice, stored: int, loaded: int, ptx: str) -> None:
    array = np.arange(64, dtype=np.float32).reshape(8, 8)
    flat = array.reshape(-1)
    expected = flat[source.start - 1 : source.stop - 1].copy()
    counters = ptxcount.count(ptx, "shift", 1, 32, [flat[to], flat[source]])
    assert (counters.stores.sectors, counters.loads.sectors) == (stored, loaded)
    assert flat[to].tolist() == expected.tolist()


def test_read_only_slice_is_not_stored_to(ptx: str) -> None:
    flat = np.arange(64, dtype=np.float32)
    fixed = flat[1:33]
    fixed.flags.writeable = False
    ptxcount.count(ptx, "shift", 1, 32, [flat[32:], fixed])
    with pytest.raises(ptxcount.ReadOnlyError, match=r"byte .* of the base array of argument 0 of 256 bytes"):
        ptxcount.count(ptx, "shift", 1, 32, [fixed, flat[8:40]])
    with pytest.raises(ptxcount.ReadOnlyError):
        ptxcount.count(ptx, "copy", 1, 32, [flat[8:40], fixed])


def test_writable_slice_may_be_stored_to(ptx: str) -> None:
    """A slice stays writable if its base becomes read-only later."""
    array = np.ones(64, np.float32)
    part = array[32:]
    array.flags.writeable = False
    ptxcount.count(ptx, "shift", 1, 32, [part, np.arange(64, dtype=np.float32)[1:33]])
    assert part.tolist() == [*range(32)]


@pytest.mark.parametrize("kind", ["u64", "b64", "s64"])
def test_loaded_pointers_are_checked_for_races(kind: str) -> None:
    body = f"ld.param.u64 %rd1, [p0]; ld.global.{kind} %rd2, [%rd1]; st.global.u32 [%rd2], %r0;"
    findings = ptxcount.count(module(body, 1), None, 1, 32, [{"*": {"x": np.zeros(1, np.uint32)}}]).findings
    assert [finding.code for finding in findings] == ["global-race"]


def test_slice_has_the_bounds_of_its_base(ptx: str) -> None:
    array = np.zeros(64, np.float32)
    with pytest.raises(ptxcount.OutOfBoundsError, match="4 bytes before the base array of argument 1 of 256 bytes"):
        ptxcount.count(ptx, "shift", 1, 32, [np.zeros(32, np.float32), array[:32]])
    with pytest.raises(ptxcount.OutOfBoundsError, match="4 bytes before argument 1 of 128 bytes"):
        ptxcount.count(ptx, "shift", 1, 32, [np.zeros(32, np.float32), array[32:].copy()])


@pytest.mark.parametrize(("argument", "text"), [
    ({"rows": [np.int32(1), np.float32(1)]}, "argument 0.rows is a list of float32 and int32; all elements"),
    ({"rows": {"x": 7}}, "argument 0.rows.x has the type int; pass an array or a NumPy scalar"),
    ({"*": {"n": "7"}}, r"\*argument 0.n has the type str; pass an array or a NumPy scalar"),
    ({}, "argument 0 is an empty dict; pass an array or a NumPy scalar"),
    ({"y": np.zeros(8, np.float32)}, "argument 0 has 8 bytes; of_struct takes 48"),
])  # fmt: skip
def test_errors_name_the_member(argument: Any, text: str, ptx: str) -> None:
    with pytest.raises(ptxcount.LaunchError, match=text):
        ptxcount.count(ptx, "of_struct", 1, 32, [argument])
