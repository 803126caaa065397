"""Products of ``tcgen05.mma``: types, factors, and the words of results."""

from typing import Any, NamedTuple

import numpy as np

from ptxcount.lanes.warps import Array
from tests.ptxcount.small_floats import ml_dtypes
from tests.ptxcount.tcgen05_kernels import (
    FIRST_THREAD,
    Factor,
    describe_product,
    finish,
    join_images,
    launch,
    lay_out,
    load_descriptors,
    write_kernel,
)

RNG = np.random.default_rng(5)
#: Types of factors, as dtypes of NumPy.
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "u8": np.uint8, "s8": np.int8,
}  # fmt: skip


class Kind(NamedTuple):
    """A kind of product: types of factors and of results, and K of an instruction."""

    factors: tuple[str, ...]
    results: tuple[str, ...]
    k: int


KINDS = {
    "f16": Kind(("f16", "bf16"), ("f32",), 16), "tf32": Kind(("tf32",), ("f32",), 8),
    "f8f6f4": Kind(("e4m3", "e5m2"), ("f32", "f16"), 32), "i8": Kind(("u8", "s8"), ("s32",), 32),
}  # fmt: skip


def make_factor(outer: int, products: int, name: str = "f16") -> Array:
    """Return random small integers of a type; each type of result holds their products exactly."""
    low = 0 if name == "u8" else -3
    return RNG.integers(low, 4, (outer, products)).astype(DTYPES[name])


def find_lanes(rows: int) -> Array:
    """Return the lane of tensor memory of each row of a result (PTX ISA, layouts D and F)."""
    row = np.arange(rows)
    return row if rows == 128 else row // 16 * 32 + row % 16


def make_code(
    left: Factor, right: Factor, kind: str, idesc: int, *, rest: str = "%no", before: str = "", columns: int = 64,
    stationary: str = "",
) -> str:  # fmt: skip
    """Return code in which the first thread multiplies two factors, and all threads store the result.

    `idesc` is the instruction descriptor, and `rest` the operands after it. `before` is code before the product.
    `stationary` is empty or ``.ws``, then ``.sp`` for a sparse left factor.
    """
    mma = f"tcgen05.mma{stationary}.cta_group::1.kind::{kind}"
    return (
        f"{before}bar.sync 0;\n{load_descriptors(left, right)}mov.u32 %r7, {idesc};\n{FIRST_THREAD}"
        f"@%p {mma} [%d], %a, %b, %r7, {rest};\n{finish(columns)}"
    )


def run_product(left: Factor, right: Factor, code: str, columns: int, **options: Any) -> Array:
    """Run code with two factors in shared memory; return the words (128 lanes, columns) that it stores."""
    image, out = join_images([left, right])[0], np.zeros((128, columns), np.uint32)
    launch(write_kernel(code, columns=128, size=len(image)), image, out, **{"unwritten": "off", **options})
    return out


def decode(words: Array, result: str) -> Array:
    """Return the numbers in the words of a result as float64; f16 uses the lower halves."""
    if result == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view({"f32": np.float32, "s32": np.int32}[result]).astype(np.float64)


def multiply(
    a: Array, b: Array, kind: str = "f16", *, types: tuple[str, str] | None = None, result: str = "f32",
    swizzle: str = "none", majors: tuple[bool, bool] = (False, False), fields: dict[str, int] | None = None,
    product_columns: int | None = None, **options: Any,
) -> Array:  # fmt: skip
    """Return a @ b.T, computed by ``tcgen05.mma`` from factors in shared memory.

    `types` are those of a and b, by default the first of the kind. `majors` tells for a and b whether they are
    MN-major. `fields` go to `describe_product`, and `options` to `make_code`. The instruction descriptor has
    `product_columns`, by default all rows of b.
    """
    left, right = (lay_out(matrix, swizzle, mn_major=major) for matrix, major in zip((a, b), majors, strict=True))
    turned = majors[0] | majors[1] << 1
    types = types or (KINDS[kind].factors[0],) * 2
    idesc = describe_product(len(a), product_columns or len(b), types, result, turned=turned, **(fields or {}))
    columns = options.setdefault("columns", len(b))
    out = run_product(left, right, make_code(left, right, kind, idesc, **options), columns)
    return decode(out if "stationary" in options else out[find_lanes(len(a))], result)


def multiply_exactly(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64).T)
