"""Arguments on the command line: types, stored arrays, and words."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxcount.cli.argument_words import make_argument, make_arguments
from ptxcount.command_line import main
from ptxcount.source.cpp_types import check_arguments
from ptxcount.util import host_memory
from ptxcount.util.errors import LaunchError
from tests.ptxcount.commands import ROW_SUMS, SUMS, read_error
from tests.ptxcount.snippets import module

#: Type of a parameter, its argument, and the required type; empty if they match. Signs may differ; pointers to bytes or
#: to unknown types take any array.
TYPED = [
    ("const float*", "a=float64[64]", "float32"), ("volatile float* __restrict__", "a=int32[64]", "float32"),
    ("double*", "a=float32[128]", "float64"), ("int*", "a=uint32[64]", ""),
    ("unsigned long long*", "a=uint32[128]", "uint64"), ("float2*", "a=float64[64]", "float32"),
    ("float2*", "a=complex64[64]", ""), ("float4*", "a=float32[64,4]", ""), ("char*", "a=float64[64]", ""),
    ("short*", "a=float64[64]", "int16"), ("void*", "a=float64[64]", ""), ("float**", "a=uint64[64]", ""),
    ("float", "float32:1", ""), ("float", "int32:1", "float32"), ("int", "float32:1", "int32"),
    ("unsigned", "int32:1", ""), ("unsigned", "bytes:01000000", ""),
]  # fmt: skip


@pytest.mark.parametrize("linkage", ["", 'extern "C" '])  # types of the mangled name, or of the declaration
@pytest.mark.parametrize(("number", "word", "needed"), [(number, *row[1:]) for number, row in enumerate(TYPED)])
def test_types_must_match(
    number: int, word: str, needed: str, linkage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "k.cu"
    source.write_text("\n".join(f"{linkage}__global__ void k{n}({kind} a) {{}}" for n, (kind, *_) in enumerate(TYPED)))
    words = [str(source), *f"--entry k{number} --grid 1 --block 1".split()]
    if needed:
        error = read_error(capsys, *words, word)
        assert error.startswith(f"LaunchError: argument {word} is ")
        assert error.endswith(f"; pass {needed}\n")
    else:
        assert main([*words, word]) == 0


def test_types_of_one_of_two_declarations_are_unknown(tmp_path: Path) -> None:
    source, words = tmp_path / "k.cu", ["a=float32[4]"]
    texts = [f'extern "C" __global__ void k({kind}* a) {{}}\n' for kind in ("double", "float")]
    for text, is_refused in ((texts[0], True), (f"#if 0\n{texts[0]}#else\n{texts[1]}#endif\n", False)):
        source.write_text(text)
        with pytest.raises(LaunchError, match="pass float64") if is_refused else nullcontext():
            check_arguments(make_arguments(words), words, "k", [source])


#: Arguments for a kernel of (out, in, n), and the labels in the error; empty if the arguments are allowed. A label that
#: no parameter has is allowed anywhere; - stands for no label.
ORDERED = [
    ("out=float32[32] in=float32[32] n=int32:32", ""), ("y=float32[32] x=float32[32] int32:32", ""),
    ("in=float32[32] out=float32[32] n=int32:32", "in, out, n"), ("in=float32[32] x=float32[32] int32:32", "in, x, -"),
    ("out=float32[32] out=float32[32] int32:32", "out, out, -"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "labels"), ORDERED)
def test_label_of_another_parameter_is_refused(words: str, labels: str, tmp_path: Path) -> None:
    source, header = tmp_path / "k.cu", tmp_path / "k.h"
    source.write_text('#include "k.h"\n')
    header.write_text("template <class T> __global__ void k(T* out, T* in, int n) { out[0] = in[n]; }")
    message = rf"^the arguments are named {labels}; the kernel's order is out, in, n; reorder or rename them$"
    with pytest.raises(LaunchError, match=message) if labels else nullcontext():
        check_arguments(make_arguments(words.split()), words.split(), "_Z1kIfEvPT_S1_i", [source, header])


#: Mangled type of a parameter, its argument, and the error; empty if the argument is allowed.
MISMATCHED = [
    ("Pf", "in=int32:4", "argument in=int32:4 is int32, but the kernel takes float*; pass in=float32[N]"),
    ("P7__half2", "a=float64[4]", "argument a=float64[4] is float64, but the kernel takes __half2*; pass float16"),
    ("7__half2", "a=int32:1",
     'argument a=int32:1 is int32, but the kernel takes __half2; pass a={"x": "float16:7", "y": "float16:7"}'),
    ("P14__nv_bfloat162", "a=float16[4]",
     "argument a=float16[4] is float16, but the kernel takes __nv_bfloat162*; pass uint16"),
    ("13__nv_bfloat16", "a=float32:1", "argument a=float32:1 is float32, but the kernel takes __nv_bfloat16"),
    ("P13__nv_bfloat16", "a=uint16[4]", ""),
    ("l", "n=int64[4]", "argument n=int64[4] is an array, but the kernel takes long; pass n=int64:7"),
    ("Pf", "in=uint64:0", ""),  # an address
    ("Pf", "t=texture:float32[4]",
     "argument t=texture:float32[4] is a Texture, but the kernel takes float*; pass an array"),
    ("y", "t=float32[4]", "argument t=float32[4] is an array, but the kernel takes unsigned long long; "
     "pass t=uint64:7, or for a texture, t=texture:float32[...]"),
    ("y", "t=texture:float32[4]", ""),
    ("1P", 'p={"x": "float32:1", "n": "int32:1"}', "p has the members x, n; struct P has x, n, q in this order"),
    ("1P", 'p={"n": "int32:1", "x": "float32:1", "q": "float32[4]"}',
     "p has the members n, x, q; struct P has x, n, q in"),
    ("1P", 'p={"x": "float32:1", "n": "int32:1", "q": "float32[4]"}', ""),
    ("P1P", 'p={"*": {"x": "float32:1"}}', ""),  # behind a pointer, members are not checked
]  # fmt: skip


@pytest.mark.parametrize(("mangled", "word", "error"), MISMATCHED)
def test_mismatch_names_what_to_pass(mangled: str, word: str, error: str, tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("struct P { float x; int n; float* q; };")
    with pytest.raises(LaunchError, match=f"^{re.escape(error)}") if error else nullcontext():
        check_arguments(make_arguments([word]), [word], f"_Z1k{mangled}", [source])


def test_stored_array_becomes_contiguous_and_writable(tmp_path: Path) -> None:
    stored = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "in.npy", stored)
    array: Any = make_argument("a=@in.npy", folder=tmp_path)
    assert (array.tolist(), array.flags.c_contiguous, array.flags.writeable) == (stored.tolist(), True, True)


def test_files_other_than_npy_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("0 1 2")
    np.savez(tmp_path / "arrays.npz", np.zeros(3))
    for name, problem in (("text.npy", "it has no array of numbers"), ("arrays.npz", "it is an archive of arrays")):
        with pytest.raises(LaunchError, match=f"{name}: {problem}; give a .npy file"):
            make_argument(f"a=@{name}", folder=tmp_path)


def test_variable_beyond_memory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, extent = tmp_path / "huge.ptx", 2**32 - 1
    source.write_text(module("mov.u64 %rd1, g;", 0, functions=f".global .b8 g[{extent}][{extent}];"))
    error = read_error(capsys, str(source), "--grid", "1", "--block", "1")
    assert error.startswith(f"MemoryError: the arrays do not fit in this machine's memory: {extent**2} bytes ")


def test_arrays_must_fit_in_memory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words, needed = [SUMS, *ROW_SUMS.split()], 32 * 4 + 32 * 4 * 4  # bytes of the sums and of the matrix
    monkeypatch.setattr(host_memory, "total_memory_bytes", lambda: needed)
    assert main(words) == 0
    capsys.readouterr()
    monkeypatch.setattr(host_memory, "total_memory_bytes", lambda: needed - 1)
    problem = f"{needed} bytes of memory are needed; this machine or its container allows {needed - 1}; use smaller"
    assert f"memory: {problem}" in read_error(capsys, *words)


@pytest.mark.parametrize("members", ['{"x": "f4[8]", "in": {"y": "f4[8]"}}', '["f4[8]", ["f4[8]"]]'])
def test_arrays_of_a_struct_must_fit_together(members: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "total_memory_bytes", lambda: 2 * 32)
    make_argument(members)
    with pytest.raises(MemoryError):
        make_argument(members, used_bytes=1)


KINDS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
WHOLE = [(kind, np.iinfo(kind).min, np.iinfo(kind).max) for kind in KINDS]
#: Word of an argument, and its value or its error. By default an array counts up; halves start again at 2048, above
#: which they are not exact.
ARGUMENTS: list[tuple[str, Any]] = [
    ("a=int16[2,3]", np.array([[0, 1, 2], [3, 4, 5]], np.int16)), ("a=f4[3]=arange", np.arange(3, dtype=np.float32)),
    ("a=f2[131072]", np.tile(np.arange(2048), 64).astype("f2")),
    ("a=float16[4]=random(1,0,1e6)", "random has low 0 and high 1e+06, too far for float16"),
    ("a=float16[1]=random(1,0,1e5)", np.array([1e5 * np.random.default_rng(1).uniform()], "f2")),
    *((f"a={kind}[4]=random(1,5,2)", "random has low 5 above high 2; exchange them") for kind in ("float32", "int32")),
    ("a=float32[4]=random(1,5,5)", np.full(4, 5, np.float32)), ("a=int32[4]=random(1,5,5)", np.full(4, 5, np.int32)),
    ("a=int32[9]=random(7)", np.random.default_rng(7).integers(0, 9, 9).astype("i4")),
    ("a=int32[9]=random(7,-1,2)", np.random.default_rng(7).integers(-1, 2, 9).astype("i4")),
    ("a=f2[70000]=permutation(1)", (np.random.default_rng(1).permutation(70000) % 2048).astype("f2")),
    ("a=bool[9]=random(7)", np.random.default_rng(7).integers(0, 2, 9).astype(bool)),
    ("a=float64[4]=ones", np.ones(4)), ("a=bool[2]=zeros", np.zeros(2, bool)),
    ("n=uint8:7", np.uint8(7)), ("u1:7", np.uint8(7)), ("int64:-5", np.int64(-5)), ("float32:1e-3", np.float32(1e-3)),
    ("complex64:1+2j", np.complex64(1 + 2j)), ("bytes:00ff", np.void(b"\x00\xff")),
    *((f"{kind}:{end}", np.dtype(kind).type(end)) for kind, *ends in WHOLE for end in ends),
    *((f"{kind}:{end}", "is out of range; ") for kind, low, high in WHOLE for end in (low - 1, high + 1)),
    ("a=float64[-1]", "neither an array nor a scalar; write, for example, name=float32[64,64] or int32:7"),
    ("x", "or int32:7"),
    *((word, f"an array needs a name; write name={word}") for word in ("float32[4]", "@x.npy", "texture:f4[4]")),
    ("1024", "or int32:1024; sizes of a 2-D grid or block have commas, --block 32,32"),
    ("int32:x", "'x' is not a decimal integer that int32 can hold"),
    ("bool:x", "'x' is not a bool; allowed are 0, 1, false, true"),
    *((f"b=bool:{text}", np.bool_(value)) for text, value in (("0", 0), ("1", 1), ("False", 0), ("true", 1))),
    *((f"float{bits}:-1e999", "-1e999 is out of range; allowed are -") for bits in (16, 32, 64)),
    ("float16:-inf", np.float16("-inf")),
    ("float32:two", "'two' is not a number that float32 can hold"),
    ('s={"n"}', "it is not valid JSON: Expecting ':' delimiter: line 1 column 5 (char 4); write, for example, {"),
    *((f"o={name}[4]", f"'{name}' is not a known dtype; write a NumPy dtype with its size, such as float32")
      for name in ("int99", "object", "longdouble", "float")),
    ("bytes:0", "the bytes are no pairs of hexadecimal digits"),
    ("a=float32[4]=twos", "the fill is twos; allowed are "),
    ("a=float32[4]=ones(1)", "allowed are zeros"), ("a=float32[4]=permutation", "allowed are zeros"),
    ("a=float32[4]=random(x)", "'x' is not a number; write, for example, random(7)"),
    ("o=float32[" + ",".join("1" * 66) + "]", "the array has 66 dimensions; at most 32 are allowed"),
    (f"o=float32[{'9' * 5000}]", "neither an array nor a scalar"),
    (f"int64:{'9' * 5000}", "9...' is not a decimal integer that int64 can hold"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, -2.0), (-1e-7, 0.0), (0.0, 0.1)])
def test_random_floats_are_below_high(dtype: str, low: float, high: float) -> None:
    """Some of the numbers in float64 round up to ``high`` in float16."""
    array: Any = make_argument(f"a={dtype}[100000]=random(1,{low},{high})")
    assert low <= array.real.min()
    assert array.real.max() < high


@pytest.mark.parametrize(("word", "expected"), ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_word_gives_value_or_error(word: str, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(LaunchError, match=re.escape(expected)):
            make_argument(word)
    else:
        value: Any = make_argument(word)
        assert (value.dtype, value.shape, value.tolist()) == (expected.dtype, expected.shape, expected.tolist())
