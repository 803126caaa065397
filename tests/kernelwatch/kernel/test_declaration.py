"""Declarations of kernels: what their settings may be, and the errors."""

import math
from array import array
from collections import deque
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from gpu_kernels import KERNELS
from kernelwatch import Kernel, inputs, outputs, scalar
from kernelwatch.errors import (
    ArgumentError,
    CompileError,
    KernelwatchError,
    UnknownArgumentError,
    UnknownDtypeError,
    UnknownFlagsError,
    UnknownKernelError,
)
from kernelwatch.kernel.arguments import ScalarArgument, to_dtype
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.jit_arguments import numba_arguments
from kernelwatch.kernel.launch import read_parameters, split_flags
from kernelwatch.kernel.ptx_module import PtxModule, find_entry
from kernelwatch.kernel.sources import make_text
from kernelwatch.suite import registry


def _bind_length(shape: Any) -> None:
    Kernel("k", [outputs("o", shape), "n"], 32, over=("n",), file="k.cu").bind_arguments("int8", n=5)


def _grid(**shape: Any) -> Geometry:
    return Kernel("k", [outputs("o", "w h")], file="k.cu", over=("w", "h"), **shape).compute_geometry("int8", w=5, h=9)


def _declare(**settings: Any) -> Kernel:
    return Kernel(
        **{"name": "k", "arguments": [outputs("o", "n")], "block": 32, "over": ["n"], "file": "k", **settings}
    )


@pytest.mark.parametrize("dtype", ["float32", "f4", np.float32, np.dtype("float32")])
def test_dtypes_are_dtypes_of_numpy(dtype: Any) -> None:
    kernel = _declare(dtypes=[dtype])
    assert kernel.check_dtype("float32") == "float32"
    with pytest.raises(UnknownDtypeError, match="k does not support int8, only float32"):
        kernel.check_dtype("int8")


@pytest.mark.parametrize(
    "block", [(8, 4), range(8, 3, -4), np.array([8, 4]), array("i", [8, 4]), lambda w: deque([8, 4])]
)
def test_lengths_of_a_block_are_a_sequence(block: Any) -> None:
    assert _grid(block=block).block == (8, 4, 1)


THREE: list[Any] = [outputs("o", "n"), inputs("a", "n"), inputs("b", "n")]

TWO_KERNELS = ".version 8.0\n.target sm_90\n.address_size 64\n.entry a() { ret; }\n.entry b() { ret; }"

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: registry.find_kernel("nope"), UnknownKernelError, "there is no kernel 'nope'; allowed are offset_copy"),
    (lambda: to_dtype("float31"), UnknownDtypeError, "'float31' is not a NumPy dtype"),
    (lambda: to_dtype(object), UnknownDtypeError, "holds Python objects"),
    (lambda: split_flags("-Xptxas '"), UnknownFlagsError, "cannot be split: No closing quotation; write them as on"),
    (lambda: _bind_length("n-5"), ArgumentError, r"is \(0,\) for n=5; lengths must be positive integers"),
    (lambda: _bind_length(lambda n: (n / 2,)), ArgumentError, r"is \(2.5,\) for n=5; lengths must be"),
    (lambda: _bind_length(lambda n: n - 5), ArgumentError, r"is \(0,\) for n=5; lengths must be positive integers"),
    (lambda: _bind_length("n//(n-5)"), ArgumentError, "has no value for n=5: integer division"),
    (lambda: inputs("i", "n", index="n-5").bind("int8", {"n": 5}), ArgumentError, "index='n-5' is 0 for n=5; it must"),
    (lambda: inputs("i", "8", index="n").bind("int8", {"n": 129}), ArgumentError, "int8 cannot hold indices below 129"),
    (lambda: inputs("i", "8", index="n").bind("int8", {"n": 2.5}), ArgumentError, "2.5 for n=2.5; it must be an int"),
    *(
        (partial(_bind_length, f"n<<{bits}"), ArgumentError, f"'n<<{bits}' has no value for n=5: it needs {problem}")
        for bits, problem in ((62, "more than 64 bits"), (2**60, "too much memory"))
    ),
    (lambda: to_dtype("(2,"), UnknownDtypeError, "is not a NumPy dtype"),
    (lambda: ScalarArgument("s", (1, 2)).to_numpy(np.dtype("u4")), ArgumentError, "does not fit uint32"),
    (lambda: Kernel("k", [outputs("o", "n"), "n"], 32, grid=("n-5",), file="k.cu").compute_geometry("int8", n=5),
     ArgumentError, r"\(0, 1, 1\) blocks of \(32, 1, 1\) threads; each side must be at least 1, .* maximum is \(21474"),
    (lambda: _grid(block=0, tile=(8, 8)), ArgumentError, r"\(1, 2, 1\) blocks of \(0, 1, 1\) threads; each side must"),
    (lambda: _declare(over=["n"] * 4).compute_geometry("int8", n=5), ArgumentError, "k: over= must give at most three"),
    *(
        (lambda n=n: _declare().compute_geometry("int8", n=n), ArgumentError, f"k: n = {n}; .* a finite number of at")
        for n in (0, -5, math.inf, math.nan)
    ),
    (lambda: _declare().compute_geometry("int8", n=2**40), ArgumentError, f"n may be at most {32 * (2**31 - 1)}"),
    (lambda: _grid(block=0), ArgumentError, r"k: tile, by default the block, is \(0, 1, 1\); each side of over="),
    (lambda: _grid(block=(8, 8), tile=8), ArgumentError, r"k: tile, .* is \(8,\); each side of over= \(w, h\) need"),
    (lambda: _grid(block=(8, 8, 1, 2)), ArgumentError, r"k: block= must give at most three sides, .* \[8, 8, 1, 2\]"),
    (lambda: _grid(block=8, dynamic_shared="w-6"), ArgumentError, "k: dynamic_shared= must give a finite .* given: -1"),
    (lambda: _grid(block=8, grid=lambda w, h: w / 2), ArgumentError, r"k: grid= must give integers; given: 2\.5"),
    (lambda: _grid(block=lambda w: None), ArgumentError, "k: block= must give integers; given: None"),
    (lambda: _grid(block=lambda w: "w"), ArgumentError, "k: block= must give integers; given: 'w'"),
    (lambda: _grid(block=(8, 8), dynamic_shared=lambda w: None), ArgumentError, "at least 0; given: None"),
    (lambda: _grid(block=8, grid=("w", 1, 1, 1)), ArgumentError, r"at most three sides, x, y and z; given: \[5, 1, 1"),
    (lambda: Kernel("k", [outputs("o", "n"), "n"], 32, over=("n",), file="k.cu", options=["-Xptxas"]),
     ArgumentError, "k: options= ends with -Xptxas, which needs a value"),
    *(
        (partial(_declare, **{setting: "n"}), ArgumentError, f"k: {setting}= needs a list of .*; given: 'n'")
        for setting in ("arguments", "over", "options", "dtypes", "include", "read", "earlier")
    ),
    *(
        (partial(_declare, **{setting: [3]}), ArgumentError, rf"k: {setting}= needs .*; given: \[3\]")
        for setting in (
            *("over", "options", "dtypes", "include", "read", "earlier"),
            *("file", "text", "ptx", "entry", "prelude", "where", "constants"),
        )
    ),
    *(
        (partial(_declare, constants={"c": value}), ArgumentError, "k: constants= gives c the value .*; give an array")
        for value in ("abc", None, [[1], [1, 2]])
    ),
    (lambda: _declare(constants={"c": lambda n: "abc"}).variable_values({"n": 5}), ArgumentError,
     "k: constants= gives c the value 'abc'; give an array of numbers"),
    (lambda: PtxModule(TWO_KERNELS, "a").find_variable("c"), UnknownArgumentError, "matches 0 variables .* has none"),
    (lambda: find_entry("hello", "a"), CompileError, "PTX line 1: expected a directive, found 'hello'"),
    (partial(_declare, earlier=[{"n": 5}]), ArgumentError, "k: earlier= has n; allowed are name, arguments, block"),
    (partial(_declare, arguments=[scalar(cast(Any, 3))]), ArgumentError, "k: each of the arguments must be"),
    *(
        (partial(outputs, "o", cast(Any, shape)), ArgumentError, 'o: shape must be a string of expressions')
        for shape in (64, ("n", "m"))
    ),
    (lambda: _grid(block=lambda w: [[w], [w, w]]), ArgumentError, r"must give integers; given: \[5\], \[5, 5\]"),
    (lambda: _grid(block={}), UnknownDtypeError, "k: block= has no value for elements of 1 byte, only for none"),
    (lambda: numba_arguments(outputs("o", lambda n: (n,))), ArgumentError, "needs the shape as a string"),
    (lambda: to_dtype([]), UnknownDtypeError, "has no bytes"),
    (lambda: ScalarArgument("s", None).to_numpy(np.dtype("f4")), ArgumentError, "s: None does not fit float32"),
    *(
        (partial(_declare, name=name), ArgumentError, "is not a name of a kernel; write one without spaces, commas and")
        for name in ("", "a b", "a,b", "-a")
    ),
    *(
        (partial(_declare, arguments=[outputs("o", "n"), name]), ArgumentError, "k: an argument cannot be called copy")
        for name in ("copy", "2*copy", scalar("c", value="copy"))
    ),
    *(
        (partial(_declare, arguments=[outputs("o", "n"), name]), ArgumentError, f"'{name}' is not a length; write")
        for name in ("a b", "a=b", "")
    ),
    *(
        (partial(outputs, "o", "n", ulp=ulp), ArgumentError, "o: ulp must be a number of at least 0, or a mapping from")
        for ulp in (-1, "1", {"float32": None})
    ),
    *(
        (partial(read_parameters, {axis: value}), ArgumentError, f"'{value}' does not fit the axis '{axis}'.*{number}$")
        for axis, value, number in (("n x m", "3x", "64x64"), ("n x m", "3", "64x64"), ("n", "a", "64"))
    ),
    (lambda: _declare(reference="np.ones"), ArgumentError, "reference= needs a function or a Kernel; given: 'np.ones'"),
    *(
        (partial(_declare, arguments=[*THREE, "n"], reference=_declare(arguments=arrays)), ArgumentError,
         f"k: the kernel in reference= takes {names}; it must take o, a, b, in this order; an entry of earlier= with")
        for arrays, names in ((THREE[:2], "o, a"), (THREE[::-1], "b, a, o"))
    ),
    (lambda: _declare(arguments=THREE, reference=_declare(arguments=THREE), earlier=[{"arguments": THREE[:2]}]),
     ArgumentError, "takes o, a, b; it must take o, a, in this order; an entry of earlier= .* needs its own reference"),
    (lambda: _declare(arguments=[outputs("o", "n"), 3]), ArgumentError, r"or scalar\(\); given: 3$"),
    (lambda: outputs("x", "n", values="none"), ArgumentError, "must be one of bits, exact, random, zeros, or a f"),
    (lambda: _declare(dtypes=("int8", "int16")).check_dtype("int32"), UnknownDtypeError,
     "k does not support int32, only int8, int16"),
    (lambda: find_entry(TWO_KERNELS, "scale"), UnknownKernelError,
     "no kernel scale; allowed are a, b; correct entry= .*; a template needs its arguments, as in scale<float>"),
    (lambda: find_entry(TWO_KERNELS, "scale<int>"), UnknownKernelError, "no kernel scale<int>; .* in earlier=$"),
    (lambda: _declare(options=["-DELEMENT={T}"]).nvcc_options("bool"), UnknownDtypeError,
     r"the dtype bool has no C\+\+ type; allowed are int8"),
    (lambda: KERNELS["offset_copy"].nvcc_options("S3"), UnknownDtypeError, r"of 3 bytes has no C\+\+ type"),
    (lambda: make_text(lambda: 5, {}), KernelwatchError,  # type: ignore[arg-type,return-value]
     "gives a value of type int; it must give the source text as a string"),
    (lambda: make_text("math:pi", {}), KernelwatchError, "'math:pi' gives a value of type float; it must give the"),
    (lambda: outputs("a", "0").bind("int8", {}), ArgumentError, r"a: the shape is \(0,\); lengths must be"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_errors_say_what_is_allowed(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
