"""Common kernels compiled by nvcc: outputs equal NumPy's, to rounding."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ptxcount.engine.execute import execute_kernel
from ptxcount.lanes.warps import Array
from tests.ptxcount import by_sets, sources

RNG = np.random.default_rng(31)
N = 1000
X = RNG.normal(size=N).astype(np.float32)
XD = RNG.normal(size=N)
POSITIVE = RNG.uniform(5, 30, (2, N)).astype(np.float32)
NUMBERS = RNG.integers(-1000, 1000, 1024).astype(np.int32)
WORDS = RNG.integers(0, 2**32, N, dtype=np.uint32)
HALVES = RNG.normal(size=(N, 2)).astype(np.float16)
SMALL = RNG.integers(0, 9, 256).astype(np.int32)
ROWS = RNG.normal(size=(5, 300)).astype(np.float32)
MATRIX = RNG.normal(size=(2, 40, 40)).astype(np.float32)
ALL = (4, 256)  # grid and block: a thread for each of N numbers, and 24 that have none
erf: Any = np.vectorize(math.erf)


def _like(array: Array) -> Any:
    return np.zeros_like(array)


def _bfloats(floats: Array) -> Array:
    """Return the bits of bfloat16: upper halves of float32, rounded to nearest even."""
    bits = floats.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _bits() -> Any:
    byte = WORDS.view(np.uint8).reshape(-1, 4).astype(np.uint32)
    counted = [x.bit_count() + 100 * (32 - x.bit_length()) + 10000 * (x & -x).bit_length() + (x >> 31)
               for x in WORDS.tolist()]  # fmt: skip
    return np.array(counted, np.uint32) + (byte[:, 3] | byte[:, 0] << 8 | byte[:, 1] << 16 | byte[:, 2] << 24)


def _powers() -> Any:
    log_gamma = np.array([math.lgamma(abs(x) + 1) for x in XD])
    return (np.abs(XD) + 0.5) ** 2.5 + np.sin(1e6 * XD) + np.exp(XD) + log_gamma


def _logs() -> Any:
    x = np.abs(X).astype(float)
    return np.asarray(np.log(1 + x * x) + np.log1p(x) + 1 / np.sqrt(2 + x) + np.cbrt(x))


def _waves() -> Any:
    s, c = np.sin(X * np.float32(100)).astype(float), np.cos(X * np.float32(100)).astype(float)
    return s + 2 * c + np.arctan2(s, c) + np.tan(X.astype(float))


def _rounding() -> Any:
    away = np.copysign(np.floor(np.abs(X) + 0.5), X)
    return away + 10 * np.floor(X) + 100 * np.rint(X) + np.fmod(X, np.float32(0.75)) + np.trunc(X)


def _divisions() -> Any:
    def divide(i: int, x: int) -> int:
        return int(x / (i % 7 + 1)) + int(math.fmod(x, i + 3)) + x % 2**32 // 10 + x * x // (i + 1)

    return np.array([divide(i, int(x)) for i, x in enumerate(NUMBERS[:N])])


def _normal(x: Any) -> Any:
    return 0.5 * (1 + erf(x / math.sqrt(2)))


def _black_scholes() -> Any:
    price, strike = POSITIVE.astype(float)
    spread = (np.log(price / strike) + 0.02 + 0.5 * 0.3**2) / 0.3
    return price * _normal(spread) - strike * math.exp(-0.02) * _normal(spread - 0.3)


def _horner() -> Any:
    coefficients = [0.5, -1, 0.25, 2, -0.125, 1]
    return np.array([sum(coefficients[k] * float(x) ** k for k in range(i % 6 + 1)) for i, x in enumerate(X)])


def _polynomial() -> Any:
    value = np.zeros(1, np.dtype([("of", "f4", 6), ("degree", "i4")]))
    value["of"], value["degree"] = [0.5, -1, 0.25, 2, -0.125, 1], 5
    return value[0]


def _mandelbrot() -> Any:
    width, limit = np.float32(32), 60
    index = np.arange(1024)
    re = (index % 32).astype(np.float32) * np.float32(3) / width - np.float32(2)
    im = (index // 32).astype(np.float32) * np.float32(2) / width - np.float32(1)
    count = []
    for c in re.astype(float) + 1j * im.astype(float):
        z, k = 0j, 0
        while k < limit and abs(z) ** 2 < 4:
            z, k = z * z + c, k + 1
        count.append(k)
    return np.array(count)


def _softmax(rows: Array) -> Any:
    powers = np.exp(rows - rows.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _rotary() -> Any:
    pairs = ROWS[:, :64].reshape(5, 32, 2).astype(float)
    angle = np.arange(5)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angle)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(5, 64)


def _heat() -> Any:
    image = ROWS[:, :70].astype(float)
    wide = np.pad(image, 1, mode="edge")
    return 0.5 * image + 0.125 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:])


def _attention() -> Any:
    q, k, v = (ROWS.ravel()[first : first + 320].reshape(10, 32).astype(float) for first in (0, 320, 640))
    return np.asarray(_softmax(q @ k.T / math.sqrt(32)) @ v)


STARTS = np.concatenate([[0], np.cumsum(RNG.integers(0, 12, 100))]).astype(np.int32)
COLUMNS = RNG.integers(0, N, int(STARTS[-1])).astype(np.int32)
EDGES = np.stack([RNG.integers(0, 50, 300), RNG.integers(0, 50, 300)], axis=1).astype(np.int32)
BODIES = RNG.normal(size=(128, 4)).astype(np.float32)


def _sparse() -> Any:
    products = X[: len(COLUMNS)].astype(float) * X[COLUMNS]
    return np.array([products[a:b].sum() for a, b in pairwise(STARTS)])


def _distances() -> Any:
    """Return distances after the step from 3 to 4: -1 is unknown, and the first 5 of 50 vertices have 3."""
    distance = np.full(50, -1)
    distance[:5] = 3
    for a, b in EDGES:
        if distance[a] == 3 and distance[b] == -1:
            distance[b] = 4
    return distance


def _forces() -> Any:
    place, mass = BODIES[:, :3].astype(float), BODIES[:, 3].astype(float)
    apart = place[None] - place[:, None]
    return np.asarray((apart * (mass / ((apart**2).sum(axis=2) + 0.01) ** 1.5)[..., None]).sum(axis=1))


def _inside() -> Any:
    state, hits = (12345 + 7919 * np.arange(128, dtype=np.uint32)).astype(np.uint32), 0
    for _ in range(20):
        squares = np.zeros(128, np.float32)
        for _ in range(2):
            for shift in (13, -17, 5):
                state = state ^ (state << np.uint32(shift) if shift > 0 else state >> np.uint32(-shift))
            squares += (state.astype(np.float32) * np.float32(2.3283064e-10)) ** 2
        hits += int((squares < 1).sum())
    return np.array([hits])


ROW_STEPS = np.abs(ROWS).max(axis=1, keepdims=True) / np.float32(127)
ZERO = np.zeros(1, np.int32)
F, INT = np.float32, np.int32
BYTES = RNG.integers(0, 256, 5000, dtype=np.uint8)
DIGITS = RNG.integers(-128, 128, (2, 64, 16)).astype(np.int8)
FULL_COPY = ROWS.ravel()[:768].reshape(6, 32, 4)
#: Kernel; grid, block and bytes of shared memory; arguments; function that computes the first argument's content
#: afterwards; tolerance.
Case = tuple[str, tuple[Any, ...], list[Any], Callable[[], Any], float]
CASES: list[Case] = [
    ("saxpy", ALL, [X.copy(), X[::-1].copy(), F(2), INT(N)], lambda: 2 * X[::-1] + X, 1e-6),
    ("gelu", ALL, [_like(X), X, INT(N)], lambda: 0.5 * X * (1 + erf(X * math.sqrt(0.5))), 1e-6),
    ("logs", ALL, [_like(X), np.abs(X), INT(N)], _logs, 1e-6),
    ("waves", ALL, [_like(X), X, INT(N)], _waves, 1e-4),
    ("powers", ALL, [_like(XD), XD, INT(N)], _powers, 1e-9),
    ("rounding", ALL, [_like(X), X, INT(N)], _rounding, 1e-5),
    ("divisions", ALL, [_like(NUMBERS), NUMBERS, INT(N)], lambda: np.pad(_divisions(), (0, 24)), 0),
    ("black_scholes", ALL, [_like(X), *POSITIVE, F(0.02), F(0.3), INT(N)], _black_scholes, 1e-5),
    ("bits", ALL, [_like(WORDS), WORDS, INT(N)], _bits, 0),
    ("halves_twice", ALL, [_like(HALVES), HALVES, INT(N)],
     lambda: (HALVES.astype(float) ** 2 + np.maximum(HALVES, 0.5)).astype(np.float16), 1e-3),
    ("bfloat_scale", ALL, [np.zeros(N, np.uint16), _bfloats(X), F(3), INT(N)],
     lambda: _bfloats((_bfloats(X).astype(np.uint32) << 16).view(F) * F(3)), 0),
    ("horner", ALL, [_like(X), X, _polynomial(), INT(N)], _horner, 1e-5),
    ("mandelbrot", (8, 128), [np.zeros(1024, INT), INT(32), INT(60)], _mandelbrot, 0),
    ("greatest_divisors", ALL, [_like(NUMBERS), np.abs(NUMBERS), INT(N)],
     lambda: [*(math.gcd(*map(int, np.abs(NUMBERS)[[i, N - 1 - i]])) + math.gcd(i, 12) for i in range(N)), *[0] * 24],
     0),
    ("summed_by_function", (4, 64), [np.zeros(4, F), X],
     lambda: X[:256].reshape(4, 64).astype(float).sum(axis=1), 1e-5),
    ("block_max", (2, 128, 512), [np.zeros(2, F), X, INT(N)],
     lambda: [X[np.arange(N) // 128 % 2 == k].max() for k in (0, 1)], 0),
    ("dot", (2, 128), [np.zeros(1, F), X, X[::-1].copy(), INT(N)], lambda: [X.astype(float) @ X[::-1]], 1e-4),
    ("arg_max", ALL, [np.zeros(1, np.uint64), WORDS, INT(N)],
     lambda: [int(WORDS.max()) << 32 | int(WORDS.argmax())], 0),
    ("last_block_sums", (5, 128), [np.zeros(1, F), np.zeros(5, F), np.zeros(1, np.uint32), X],
     lambda: [X[:640].astype(float).sum()], 1e-4),
    ("tiles", (1, 256), [_like(SMALL), SMALL],
     lambda: (SMALL.reshape(-1, 8).sum(axis=1) + 1000 * (SMALL.reshape(-1, 8) == 5).any(axis=1)).repeat(8), 0),
    ("counted_below", (1, 256), [_like(SMALL), SMALL, INT(4)],
     lambda: np.full(256, (SMALL < 4).sum() + 1000 * (SMALL == 4).any() + 2000), 0),
    ("compacted", ALL, [np.zeros(N, INT), ZERO.copy(), NUMBERS, INT(N)],
     lambda: np.pad(NUMBERS[:N][NUMBERS[:N] % 3 == 0], (0, int((NUMBERS[:N] % 3 != 0).sum()))), 0),
    ("coalesced_count", (1, 256), [ZERO.copy(), SMALL], lambda: [(SMALL % 3 == 0).sum()], 0),
    ("warp_scan", (1, 256), [_like(SMALL), SMALL], lambda: SMALL.reshape(-1, 32).cumsum(axis=1).ravel(), 0),
    ("bitonic", (1, 512), [NUMBERS[:512].copy()], np.sort(NUMBERS[:512]).copy, 0),
    ("byte_histogram", (3, 256), [np.zeros(256, np.uint32), BYTES, INT(5000)],
     lambda: np.bincount(BYTES, minlength=256), 0),
    ("reduced_by_hardware", (1, 256), [np.zeros(256, np.uint32), SMALL.astype(np.uint32)],
     lambda: (SMALL.reshape(-1, 32).sum(axis=1) + SMALL.reshape(-1, 32).max(axis=1)).repeat(32), 0),
    ("softmax", (5, 128), [_like(ROWS), ROWS, INT(300)], lambda: _softmax(ROWS.astype(float)), 1e-6),
    ("rms_norm", (5, 64), [_like(ROWS.astype(np.float16)), ROWS.astype(np.float16), INT(300)],
     lambda: ROWS / np.sqrt((ROWS.astype(float) ** 2).mean(axis=1, keepdims=True)), 4e-3),
    ("rotary", (5, 32), [ROWS[:, :64].copy(), INT(32)], _rotary, 1e-5),
    ("quantised", (5, 128), [np.zeros((5, 300), np.int8), np.zeros(5, F), ROWS, INT(300)],
     lambda: np.rint(ROWS / ROW_STEPS).astype(np.int8), 0),
    ("tiled_product", ((3, 3), (16, 16)), [np.zeros((40, 40), F), *MATRIX, INT(40)],
     lambda: MATRIX[0] @ MATRIX[1], 1e-5),
    ("byte_product", (64, 64), [np.zeros((64, 64), INT), *DIGITS.view(INT).copy(), INT(4)],
     lambda: DIGITS[0].astype(int) @ DIGITS[1].astype(int).T, 0),
    ("pipelined_copy", (1, 32), [np.zeros((6, 32, 4), F), FULL_COPY.copy(), INT(6)],
     lambda: np.where((np.arange(6) % 3 == 2)[:, None, None], 0, FULL_COPY)[:, ::-1], 0),
    ("attention", (10, 32), [np.zeros((10, 32), F), *(ROWS.ravel()[k : k + 320].copy() for k in (0, 320, 640)),
                             INT(10), INT(32)], _attention, 1e-5),
    ("heat", ((3, 1), (32, 8)), [np.zeros((5, 70), F), ROWS[:, :70].copy(), INT(5), INT(70)], _heat, 1e-6),
    ("sparse_product", (1, 128), [np.zeros(100, F), X[: len(COLUMNS)].copy(), COLUMNS, STARTS, X, INT(100)],
     _sparse, 1e-5),
    ("breadth_first", (2, 256), [np.array([3] * 5 + [-1] * 45, INT), ZERO.copy(), EDGES, INT(300), INT(3)],
     _distances, 0),
    ("bodies", (2, 64), [np.zeros((128, 3), F), BODIES, INT(128)], _forces, 1e-4),
    ("monte_carlo", (1, 128), [np.zeros(1, np.uint32), INT(20), np.uint32(12345)], _inside, 0),
    ("locked_sum", (40, 32), [ZERO.copy(), ZERO.copy(), NUMBERS], lambda: [NUMBERS[:40].sum()], 0),
    ("produced_and_consumed", (1, 64), [np.zeros(160, INT), NUMBERS, INT(5)],
     (2 * NUMBERS[:160].reshape(5, 32)[:, ::-1]).ravel, 0),
    ("half_atomics", (1, 64), [np.zeros(1, np.float16), np.zeros(2, np.float16), np.zeros(2, np.uint16),
                               np.ones(64, np.float16)], lambda: [64], 0),
]  # fmt: skip


def _three(extent: Any) -> tuple[int, int, int]:
    x, y = extent if isinstance(extent, tuple) else (extent, 1)
    return x, y, 1


@pytest.mark.parametrize(
    ("name", "launch", "arguments", "compute", "tolerance"), CASES, ids=[case[0] for case in CASES]
)
def test_outputs_as_in_numpy_and_counts_as_with_sets(
    name: str, launch: tuple[Any, ...], arguments: list[Any], compute: Callable[[], Any], tolerance: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Each access is a `by_sets.Watched`, which also counts with sets."""
    by_sets.COUNTS_BY_ACCESS.clear()
    monkeypatch.setattr("ptxcount.machine.chunk.Access", by_sets.Watched)
    grid, block, *shared = launch
    copies = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    ptx, dynamic_shared = sources.ptx("everyday"), shared[0] if shared else 0
    counters = execute_kernel(ptx, name, _three(grid), _three(block), copies, dynamic_shared=dynamic_shared)
    assert not counters.findings
    assert not by_sets.differences(counters.accesses)
    output, expected = copies[0], np.asarray(compute())
    if output.dtype.kind != "f":
        np.testing.assert_array_equal(output.reshape(expected.shape), expected)
    else:
        np.testing.assert_allclose(output.astype(float).reshape(expected.shape), expected, tolerance, tolerance)


def test_clock_grows() -> None:
    """The kernel copies 32 numbers between two readings of the clock, and stores the difference before them."""
    out = np.zeros(1 + 32, np.int64)
    sources.execute("everyday", "timed", [out, NUMBERS])
    cycles, numbers = out[0], out[1:]
    assert cycles > 0
    assert numbers.tolist() == NUMBERS[:32].tolist()
