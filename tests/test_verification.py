"""The comparison that stands before every timing, on arrays that no GPU made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.instruments import buffers, threads, verification
from benchmarks.instruments.poison import POISON, poisoned
from benchmarks.instruments.verification import WrongOutputError
from gpu_kernels import DTYPES, catalog
from tests.cases import AWKWARD

GUARD = 64


def outcome(kernel: str, dtype: str, arguments: dict[str, int]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """What NumPy expects of a kernel, and memory that holds just that, with its guard."""
    output_shape, input_shape = catalog.get(kernel).arrays(**arguments)
    itemsize = np.dtype(dtype).itemsize
    source = buffers.input_bytes(7 * itemsize, int(np.prod(input_shape)) * itemsize).view(dtype).reshape(input_shape)
    expected = catalog.get(kernel).reference(poisoned(output_shape, dtype), source, **arguments)
    flat = np.ascontiguousarray(expected).view(np.uint8).reshape(-1)
    return expected, np.concatenate([flat, np.full(GUARD, POISON, np.uint8)])


def check(expected: NDArray[Any], found: NDArray[np.uint8], length: int | None = None) -> None:
    """Run the verification on memory."""
    length = length or verification.buffer_bytes(expected.shape, expected.itemsize, GUARD)

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = found[start : start + len(into)]

    verification.check_output("case", expected, GUARD, read, np.empty(length, np.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kernel", "arguments"), AWKWARD, ids=str)
def test_right_output_passes_and_a_flipped_bit_does_not(kernel: str, arguments: dict[str, int], dtype: str) -> None:
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


@pytest.mark.parametrize("offset", [0, 1, GUARD - 1])
def test_guard(offset: int) -> None:
    """A byte written behind the end is found."""
    expected, found = outcome("transpose_read_coalesced", "float32", {"rows": 33, "columns": 31})
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
    ("start", "length"), [(0, 10), (buffers._BLOCK - 3, 10), (5, 2 * buffers._BLOCK + 9), (10**12, 64)]
)
def test_input_repeats_the_random_block(start: int, length: int) -> None:
    """The host knows any stretch of input memory."""
    first = start % buffers._BLOCK
    again = np.concatenate([buffers.random_block()] * 4)
    assert np.array_equal(buffers.input_bytes(start, length), again[first : first + length])


@pytest.mark.parametrize(
    ("pair_bytes", "l2", "pairs"),
    [(2 * 256 * 256 * 4, 60 << 20, 360), (1 << 30, 60 << 20, 1), (120 << 20, 60 << 20, 2)],
)
def test_rotation_exceeds_the_l2(pair_bytes: int, l2: int, pairs: int) -> None:
    """A rotation goes through at least three times the L2."""
    assert buffers.pairs_for(pair_bytes, l2) == pairs
    assert pairs * pair_bytes >= 3 * l2
