"""The comparison that stands before every timing, on arrays that no GPU made."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelwatch.instrument import buffers, inputs, verification
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.verification import Near, WrongOutputError
from kernelwatch.kernel.arguments import ArrayArgument, Direction

GUARD = 64


@pytest.mark.parametrize(
    ("start", "length"), [(0, 10), (inputs.BLOCK - 3, 10), (5, 2 * inputs.BLOCK + 9), (10**12, 64)]
)
def test_input_repeats_the_random_block(start: int, length: int) -> None:
    """The host knows any stretch of input memory."""
    first = start % inputs.BLOCK
    again = np.concatenate([inputs.block()] * 4)
    held = inputs.repeated(None, start, length)
    assert np.array_equal(held, again[first : first + length])
    assert not held.flags.writeable, "a reference that writes into its input would spoil those of all others"


@pytest.mark.parametrize(
    ("pair_bytes", "l2", "pairs"),
    [(2 * 256 * 256 * 4, 60 << 20, 360), (1 << 30, 60 << 20, 1), (120 << 20, 60 << 20, 2)],
)
def test_rotation_exceeds_the_l2(pair_bytes: int, l2: int, pairs: int) -> None:
    """A rotation goes through at least three times the L2."""
    assert buffers.sets_for(pair_bytes, l2) == pairs
    assert pairs * pair_bytes >= 3 * l2


@pytest.mark.parametrize(
    ("found", "expected", "ulp", "near"),
    [
        (1.0 + 2**-10, 1.0, 1.0, True),
        (1.0 + 2**-9, 1.0, 1.0, False),
        (-8.0, -8.0 - 2**-8, 0.5, True),
        # Below 1 the last place of 1 counts: a sum that cancels is not held to its own.
        (2**-11, 0.0, 0.5, True),
        (2**-10, 0.0, 0.5, False),
        (float("nan"), 1.0, 100.0, False),
        (float("inf"), 1.0, 100.0, False),
    ],
)
def test_near(found: float, expected: float, ulp: float, near: bool) -> None:
    """A float16 may lie so many units in the last place from its reference, which is in float64."""
    _checked(
        np.array([[found]]), np.array([[expected]]), ulp, "" if near else r"element \[0, 0\] is .* units in the last"
    )


def _checked(values: NDArray[Any], reference: NDArray[Any], ulp: float, message: str, behind: int = POISON) -> None:
    raw = np.concatenate([values.astype(np.float16).reshape(-1).view(np.uint8), np.full(GUARD, POISON, np.uint8)])
    raw[-1] = behind

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = raw[start : start + len(into)]

    with pytest.raises(WrongOutputError, match=message) if message else nullcontext():
        verification.check_near("case", reference, GUARD, read, Near("float16", ulp))


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_in_pieces(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is read at a time, the first element that differs is named, and then what lies behind."""
    monkeypatch.setattr(verification, "_CHUNK", chunk)
    right = np.arange(63.0).reshape(7, 9)
    wrong = right.copy()
    wrong[5, 3] += 1
    wrong[6, 8] += 1
    _checked(right, right, 0.0, "")
    _checked(wrong, right, 0.0, r"case: element \[5, 3\] is 49\.0, NumPy expects 48\.0 within 0 units")
    _checked(right, right, 0.0, f"case: wrote behind the end of its output, first {GUARD - 1} bytes on", 0)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128", "bfloat16"])
def test_exact_values_are_exact(dtype: str) -> None:
    """Sums and products of inputs have no rounding, and no input is NaN, in each dtype that computes."""
    kind = np.dtype(dtype)
    held = inputs.block(dtype)[: 16 * 6000].view(kind)
    cpu = [inputs.counted((40, 150), dtype, place, is_exact=True).reshape(-1) for place in (0, 1)]
    assert not np.array_equal(cpu[0], cpu[1])
    for values in (held, *cpu):
        wide = values.astype(np.complex128)
        assert np.isfinite(wide).all()
        assert len(np.unique(wide.real)) == inputs.LEVELS
        assert wide.real.max() == -wide.real.min()
        assert np.array_equal((values + values[::-1]).astype(np.complex128), wide + wide[::-1])
    if kind.itemsize >= 4 and kind.kind == "f":
        one, other = (values.reshape(40, 150) for values in cpu)
        product = one.astype(np.float64) @ other.T.astype(np.float64)
        assert np.array_equal(one @ other.T, product.astype(kind)), "a product of matrices depends on the order"
        assert np.abs(product).max() > 10


@pytest.mark.parametrize(
    ("values", "dtype", "limit", "ends"),
    [
        ("random", "int8", None, (-128, 127)),
        ("random", "uint8", None, (0, 255)),
        ("zeros", "float32", None, (0, 0)),
        ("bits", "int32", 7, (0, 6)),
    ],
)
def test_content(values: str, dtype: str, limit: int | None, ends: tuple[int, int]) -> None:
    """Random integers are any of their type, and indices any below their limit."""
    held = inputs.content(ArrayArgument("a", (30000,), np.dtype(dtype), Direction.IN, values, limit=limit))
    assert (held.min(), held.max()) == ends
