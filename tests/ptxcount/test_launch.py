"""`ptxcount.count` on files and texts, by any name of a kernel; integer constants of C++ text."""

import doctest
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.engine import kernel_counts
from ptxcount.source.constants import CONSTANTS, VARIABLES, evaluate_constant
from ptxcount.source.names import cpp_name, find_entry, parameter_types, select_kernels, source_name
from tests.ptxcount import sources

TEXT = """
namespace own { template <class T> __global__ void scale(T* x, T by) { x[blockIdx.x * 128 + threadIdx.x] *= by; } }
template __global__ void own::scale(float*, float);
template __global__ void own::scale(double*, double);
extern "C" __global__ void first(int* x) { x[threadIdx.y] = threadIdx.y; }
"""  # fmt: skip
FLOATS = "_ZN3own5scaleIfEEvPT_S1_"


def test_text_has_lines_of_source_cu() -> None:
    x = np.arange(256, dtype=np.float32)
    counters = ptxcount.count(TEXT, FLOATS, 2, 128, [x, np.float32(2)])
    assert x.tolist() == [2 * n for n in range(256)]
    totals = counters.totals()
    assert (totals["load_requests"], totals["load_sectors"], totals["store_sectors"]) == (256 // 32, 256 // 8, 256 // 8)
    assert list(counters.by_line()) == [("source.cu", 2)]
    accesses = [(a.space, a.kind, a.requests, str(a.source)[:12]) for a in counters.accesses]
    assert accesses == [("global", kind, 8, "source.cu:2 ") for kind in ("load", "store")]


def _ptx() -> str:
    return sources.ptx("row_sums").replace("row_sums", "other") + FIRST


FIRST = """
.entry first(.param .u64 x) {
    .reg .b64 %rd1; .reg .b32 %r1;
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.y; mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.u32 [%rd1], %r1; ret;
}
"""


@pytest.mark.parametrize("grid", [1, (1,), [1, 1], (1, 1, 1), np.int64(1)])
def test_count_takes_forms_of_grid_block_and_source(grid: Any, tmp_path: Path) -> None:
    ptx, cuda = tmp_path / "kernels.ptx", tmp_path / "kernels.inc"
    ptx.write_text(_ptx())
    cuda.write_text(TEXT)
    blocks: list[Any] = [(1, 8), (np.int32(1), 8, 1)]
    for source, block in product((ptx, cuda, _ptx()), blocks):
        x = np.full(8, -1, np.int32)
        ptxcount.count(source, "first", grid, block, [x])
        assert x.tolist() == [*range(8)]


#: Mangled name, C++ name, name in the source, and other accepted names.
NAMES = [
    ("_Z5scalePf", "scale", "scale", ["scale(float*)"]), ("_ZL5scalePf", "scale", "scale", []),
    ("_ZN3own5scaleIfEEvPT_S1_", "own::scale<float>", "own::scale", ["scale", "scale<float>(float*, float)"]),
    ("_ZN3own33_GLOBAL__N__73a82065_4_f_cu__Z1ff2k2IfEEvPT_", "own::(anonymous namespace)::k2<float>", "own::k2", []),
    ("scale", "scale", "scale", []), ("_Zebra", "_Zebra", "_Zebra", []),
    ("_ZN4phys6gatherIfLi2EEEvPT_PKS1_i", "phys::gather<float, 2>", "phys::gather", ["gather", "gather< float,2>"]),
    ("_ZN6cudapy3own5scaleB2v1B3c_dE5ArrayIfLi1EEi", "cudapy::own::scale[abi:v1][abi:c_d]", "cudapy::own::scale",
     ["scale", "own::scale"]),
    ("_Z8by_value5PointPd", "by_value", "by_value", ["by_value(Point, double*)"]),
]  # fmt: skip


@pytest.mark.parametrize(("mangled", "name", "source", "aliases"), NAMES)
def test_kernel_matches_its_names(mangled: str, name: str, source: str, aliases: list[str]) -> None:
    assert (cpp_name(mangled), source_name(mangled)) == (name, source)
    assert all(select_kernels([mangled], alias) for alias in (name, source, *aliases))
    assert not any(select_kernels([mangled], fragment) for fragment in ("cale", "ather", "Point", "gather<double>"))


def test_mangled_name_gives_parameter_types() -> None:
    types = [parameter_types(symbol) for symbol in ("_Z1kv", "_Z1kPFviiEi", "_Z1k1PIiLi2EES_IfLi3EE", "k")]
    assert types == [[], ["void (*)(int, int)", "int"], ["P<int, 2>", "P<float, 3>"], None]


@pytest.mark.parametrize("name", ["scale", "scale()"])
@pytest.mark.parametrize("entry", ["scale", "_Z5scalev"])
def test_exact_name_precedes_others(entry: str, name: str) -> None:
    ptx = f".entry _ZN3own5scaleEv() {{ ret; }} .entry {entry}() {{ ret; }}"
    assert find_entry(ptx, "own::scale") == "_ZN3own5scaleEv"
    if (entry, name) != ("scale", "scale()"):  # a C function has no name with parameters
        assert find_entry(ptx, name) == entry


def test_instance_is_of_the_template_beside_a_kernel_of_its_name() -> None:
    source = """namespace own { template <class T> __global__ void fill(T* x) { x[threadIdx.x] = 1; } }
        __global__ void fill(double* x) { x[threadIdx.x] = 2; }"""
    array = np.zeros(32, np.float32)
    ptxcount.count(source, "fill<float>", 1, 32, [array])
    assert array.tolist() == [1] * 32


def test_error_for_a_template_suggests_an_instance(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("namespace own { template <typename T, int N> __global__ void tm(T* x) { x[N] = 0; } }")
    ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
    assert [kernel_counts.find_kernel(source, ptx, name) for name in (None, "k")] == ["k", "k"]
    with pytest.raises(ptxcount.LaunchError, match=r"^there is no kernel 'other'; name one of k \(--entry\)$"):
        kernel_counts.find_kernel(source, ptx, "other")
    advice = r"tm is a template; name an instance, such as 'own::tm<float, 16>' \(--entry\)$"
    with pytest.raises(ptxcount.LaunchError, match=f"^{advice}"):
        kernel_counts.find_kernel(source, ptx, "tm")
    with pytest.raises(ptxcount.LaunchError, match=f"^no kernel is named; own::{advice}"):
        kernel_counts.find_kernel(source, ptx.partition(".visible")[0], None)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"entry": "scale"}, "'scale' names 2 kernels; name one of void own::scale<float>.float., float., void"),
    ({"entry": "cale"}, "no kernel 'cale'; name one of first, void own::scale<"),
    ({"entry": ""}, "no kernel ''"),
    ({"grid": 2.0}, "grid is 2.0; give one to three whole numbers"),
    ({"grid": ()}, r"grid is \(\); give one to three whole numbers"),
    ({"block": (1, 2, 3, 4)}, r"block is \(1, 2, 3, 4\); give one to three whole numbers"),
    ({"block": "32"}, "block is '32'; give one to three whole numbers"),
    ({"step_limit": 0}, "step limit is 0; it must be positive"),
    ({"source_or_ptx": Path("nowhere.cu")}, "nowhere.cu does not exist"),
    ({"source_or_ptx": _ptx, "flags": "-O3"}, "flags '-O3' are only for CUDA"),  # `_ptx` compiles when the test runs
    ({"arguments": [np.zeros(8, object)]}, "argument 0 is an array of object; it must hold numbers"),
]


@pytest.mark.parametrize(("change", "text"), REFUSED)
def test_invalid_calls_are_refused(change: dict[str, Any], text: str) -> None:
    call: dict[str, Any] = {"source_or_ptx": TEXT, "entry": "first", "grid": 1, "block": 1}
    call |= {"arguments": [np.zeros(8, np.int32)]} | change
    if callable(call["source_or_ptx"]):
        call["source_or_ptx"] = call["source_or_ptx"]()
    with pytest.raises(ptxcount.LaunchError, match=text):
        ptxcount.count(**call)


def test_examples_of_count_run() -> None:
    """The docstring of `count` has six statements."""
    assert doctest.testmod(kernel_counts) == doctest.TestResults(failed=0, attempted=6)


def test_errors_are_exported() -> None:
    from ptxcount.util import errors

    raised = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert raised <= {*ptxcount.__all__}
    assert all(issubclass(getattr(ptxcount, name), ptxcount.PtxError) for name in raised)


NUMBERS = """
#define TILE 32 // lanes
#define ROWS (TILE / 4) /* of a block */
constexpr unsigned long WIDTH{ROWS * 2u}, HEIGHT = 0x1F'00;
static const int depth(3);
const int unknown = count(), again = again + 1;
int block = 256; block = {128};
"""


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("TILE", 32), ("ROWS", 8), ("WIDTH + HEIGHT", 16 + 0x1F00), ("depth", 3),
    ("static_cast<size_t>(TILE) << 2", 128), ("-(int)ROWS % 5", -3), ("std::size_t{4} * 2", 8), ("7 / 2", 3),
    ("-7/2", -3), ("7 % -2", 1), ("(1.5 + 1) * 2", 5), ("1e999", None), ("2 ** 3", None), ("1 << 64", None),
    ("unknown", None), ("again", None), ("missing", None), ("TILE / 0", None), ("f(2)", None), ("", None),
    ("1 +", None), ("sizeof(int)", None), ("TILE > 4 ? 1 : 2", None),
])  # fmt: skip
@pytest.mark.parametrize("definitions", [CONSTANTS, VARIABLES])
def test_expression_of_constants_has_a_value(text: str, value: int | None, definitions: str) -> None:
    assert evaluate_constant(text, NUMBERS, definitions) == value


@pytest.mark.parametrize("start", ["1+", "-"])
def test_too_long_expression_has_no_value(start: str) -> None:
    """Python's parser raises RecursionError or MemoryError."""
    assert [evaluate_constant(start * count + "1", "") for count in (3000, 100_000)] == [None, None]


@pytest.mark.parametrize(("sign", "value"), [("+", 2 * 30**7), ("*", None)])
def test_constants_of_constants_take_little_time(sign: str, value: int | None) -> None:
    """Each of seven constants has 30 times the next one, so 30 ** 7 terms: 2, or more than 64 bits."""
    lines = [f"#define A{k} " + sign.join([f"A{k + 1}"] * 30) for k in range(7)]
    assert evaluate_constant("A0", "\n".join([*lines, "#define A7 2"])) == value


@pytest.mark.parametrize(("definitions", "value"), [(CONSTANTS, None), (VARIABLES, 128)])
def test_variable_has_its_last_value(definitions: str, value: int | None) -> None:
    assert evaluate_constant("block", NUMBERS, definitions) == value
