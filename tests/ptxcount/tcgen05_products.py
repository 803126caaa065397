"""Products of ``tcgen05.mma``: types, factors, and the words of results."""

from typing import Any

import numpy as np

from ptxcount.lanes.warps import Array
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.tcgen05_kernels import (
    FIRST_THREAD,
    Factor,
    describe_product,
    finish,
    launch,
    lay_out,
    load_descriptors,
    write_kernel,
)

RNG = np.random.default_rng(5)
#: Type -> dtype of NumPy, and code in the instruction descriptor.
TYPES: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 0), "bf16": (ml_dtypes.bfloat16, 1), "tf32": (np.float32, 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, 0),
    "e5m2": (ml_dtypes.float8_e5m2, 1), "u8": (np.uint8, 0), "s8": (np.int8, 1),
}  # fmt: skip
#: Kind -> types of factors; type of result -> code in the descriptor; K of an instruction.
KINDS: dict[str, tuple[tuple[str, ...], dict[str, int], int]] = {
    "f16": (("f16", "bf16"), {"f32": 1}, 16),
    "tf32": (("tf32",), {"f32": 1}, 8),
    "f8f6f4": (("e4m3", "e5m2"), {"f32": 1, "f16": 0}, 32),
    "i8": (("u8", "s8"), {"s32": 2}, 32),
}


def make_factor(outer: int, products: int, name: str) -> Array:
    """Return random small integers of a type; each type of result holds their products exactly."""
    low = 0 if name == "u8" else -3
    return RNG.integers(low, 4, (outer, products)).astype(TYPES[name][0])


def find_lanes(rows: int) -> Array:
    """Return the lane of tensor memory of each row of a result (PTX ISA, layouts D and F)."""
    row = np.arange(rows)
    return row if rows == 128 else row // 16 * 32 + row % 16


def make_code(
    left: Factor, right: Factor, kind: str, shape: int, *, rest: str = "%no", before: str = "", columns: int = 64,
    stationary: str = "",
) -> str:  # fmt: skip
    """Return code in which the first thread multiplies two factors, and all threads store the result."""
    mma = f"tcgen05.mma{stationary}.cta_group::1.kind::{kind}"
    return (
        f"{before}bar.sync 0;\n{load_descriptors(left, right)}mov.u32 %r7, {shape};\n{FIRST_THREAD}"
        f"@%p {mma} [%d], %a, %b, %r7, {rest};\n{finish(columns)}"
    )


def run_product(left: Factor, right: Factor, code: str, columns: int, **options: Any) -> Array:
    """Run code with two factors in shared memory; return the words (128 lanes, columns) that it stores."""
    image, out = np.concatenate([left.image, right.image]), np.zeros((128, columns), np.uint32)
    launch(write_kernel(code, columns=128, size=len(image)), image, out, **{"unwritten": "off", **options})
    return out


def decode(words: Array, result: str) -> Array:
    """Return the numbers in the words of a result as float64; f16 uses the lower halves."""
    if result == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view({"f32": np.float32, "s32": np.int32}[result]).astype(np.float64)


def multiply(
    a: Array, b: Array, kind: str = "f16", *, codes: tuple[int, int, int] = (0, 0, 1), swizzle: str = "none",
    majors: tuple[bool, bool] = (False, False), result: str = "f32", fields: dict[str, int] | None = None,
    shape_columns: int | None = None, **options: Any,
) -> Array:  # fmt: skip
    """Return a @ b.T, computed by ``tcgen05.mma`` from factors in shared memory.

    `fields` go to `describe_product`, and `options` to `make_code`. `shape_columns` are the columns in the descriptor,
    by default all of the right factor.
    """
    left, right = (lay_out(matrix, swizzle, mn_major=major) for matrix, major in zip((a, b), majors, strict=True))
    turned = majors[0] | majors[1] << 1
    shape = describe_product(len(a), shape_columns or len(b), codes, turned=turned, **(fields or {}))
    columns = options.setdefault("columns", len(b))
    out = run_product(left, right, make_code(left, right, kind, shape, **options), columns)
    return decode(out if "stationary" in options else out[find_lanes(len(a))], result)


def multiply_exactly(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64).T)
