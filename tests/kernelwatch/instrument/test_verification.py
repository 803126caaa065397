"""The comparison that stands before every timing, on arrays that no GPU made."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_kernels import catalog
from kernelwatch.instrument import buffers, inputs, threads, verification
from kernelwatch.instrument.poison import POISON, poisoned
from kernelwatch.instrument.verification import Near, WrongOutputError
from tests.cases import AWKWARD_IN_EVERY_DTYPE

GUARD = 64


def outcome(kernel: str, dtype: str, arguments: dict[str, int]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """What NumPy expects of a kernel, and memory that holds just that, with its guard."""
    row = catalog.get(kernel)
    output_shape, *input_shapes = row.arrays(**arguments)
    itemsize, exact = np.dtype(dtype).itemsize, dtype if row.operation.computes else None
    sources = [
        inputs.repeated(exact, (7 + place) * itemsize, math.prod(shape) * itemsize).view(dtype).reshape(shape)
        for place, shape in enumerate(input_shapes)
    ]
    expected = row.operation.reference(poisoned(output_shape, dtype), *sources, **arguments)
    flat = np.ascontiguousarray(expected).view(np.uint8).reshape(-1)
    return expected, np.concatenate([flat, np.full(GUARD, POISON, np.uint8)])


def check(expected: NDArray[Any], found: NDArray[np.uint8], length: int | None = None) -> None:
    """Run the verification on memory."""
    length = length or verification.buffer_bytes(expected.shape, expected.itemsize, GUARD)

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = found[start : start + len(into)]

    verification.check_output("case", expected, GUARD, read, np.empty(length, np.uint8))


#: One kernel of each operation: no kernel runs here, and the others of it have the same reference.
REFERENCES = {
    (catalog.get(kernel).operation.name, dtype, *arguments.items()): (kernel, dtype, arguments)
    for kernel, dtype, arguments in AWKWARD_IN_EVERY_DTYPE
}


@pytest.mark.parametrize(("kernel", "dtype", "arguments"), REFERENCES.values(), ids=str)
def test_right_output_passes_and_a_flipped_bit_does_not(kernel: str, dtype: str, arguments: dict[str, int]) -> None:
    """The right bytes pass; one flipped bit is found at the element it is in, NaNs and signed zeros included."""
    expected, found = outcome(kernel, dtype, arguments)
    check(expected, found)
    for place in {0, len(found) // 2, len(found) - GUARD - 1}:
        if place >= len(found) - GUARD:
            continue
        wrong = found.copy()
        wrong[place] ^= 1
        index = np.unravel_index(place // expected.itemsize, expected.shape)
        with pytest.raises(WrongOutputError, match=rf"case: element \[{', '.join(str(i) for i in index)}\] is"):
            check(expected, wrong)


@pytest.mark.parametrize("rows", [33, 1])
@pytest.mark.parametrize("offset", [0, 1, GUARD - 1])
def test_guard(offset: int, rows: int) -> None:
    """A byte written behind the end is found, also where the output is smaller than its guard."""
    expected, found = outcome("transpose_read_coalesced", "float32", {"rows": rows, "columns": rows})
    found[len(found) - GUARD + offset] = 0
    with pytest.raises(WrongOutputError, match=f"case: wrote behind the end of its output, first {offset} bytes on"):
        check(expected, found)


def test_in_pieces_and_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading back row by row and comparing in threads find the same element."""
    expected, found = outcome("transpose_read_write_coalesced", "float64", {"rows": 97, "columns": 101})
    found[(50 * 97 + 13) * 8] ^= 1
    monkeypatch.setattr(threads, "WORTH_IT", 1)
    for length in (97 * 8, 5 * 97 * 8, None):
        with pytest.raises(WrongOutputError, match=r"element \[50, 13\]"):
            check(expected, found, length)


@pytest.mark.parametrize(
    ("start", "length"), [(0, 10), (inputs.BLOCK - 3, 10), (5, 2 * inputs.BLOCK + 9), (10**12, 64)]
)
def test_input_repeats_the_random_block(start: int, length: int) -> None:
    """The host knows any stretch of input memory."""
    first = start % inputs.BLOCK
    again = np.concatenate([inputs.block()] * 4)
    assert np.array_equal(inputs.repeated(None, start, length), again[first : first + length])


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
    array, reference = np.array([[found]], np.float16), np.array([[expected]])
    assert Near("float16", ulp).holds(array, reference).all() == near
    raw = np.concatenate([array.view(np.uint8).reshape(-1), np.full(GUARD, POISON, np.uint8)])

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = raw[start : start + len(into)]

    buffer = np.empty(verification.buffer_bytes((1, 1), 2, GUARD), np.uint8)
    with nullcontext() if near else pytest.raises(WrongOutputError, match=r"element \[0, 0\] is .* units in the last"):
        verification.check_output("case", reference, GUARD, read, buffer, Near("float16", ulp))


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
