"""Sums of a column and a row behave like the arrays they represent, also where integers wrap and as addresses."""

import operator

import numpy as np
import pytest

from ptxcount.counting.transactions import SECTOR
from ptxcount.lanes import symbolic_values
from ptxcount.lanes.symbolic_values import COMPARISONS, SUM_RULES, Sum, Value, dense
from ptxcount.lanes.warps import choose
from ptxcount.machine.regions import ArrayPart, Region
from ptxcount.ptx.program import TYPES

KINDS = ["s32", "u32", "s64", "u64"]


def _operands(kind: str, rng: np.random.Generator) -> tuple[Value, Value]:
    """Draw a `Sum` near a limit of the type, and either a second `Sum` or a number."""
    size, bits = TYPES[kind].size, TYPES[kind].bits
    signed = f"i{size}"
    center = int(rng.choice([0, 1, -1, 2 ** (bits - 1) - 3, -(2 ** (bits - 1)) + 3, 2 ** (bits - 2), 1000]))
    offsets = rng.integers(-5, 6, 4)[:, None]
    block = np.array([[_wrap(center + int(n), bits)] for n in offsets.ravel()], signed)
    first = Sum(block, rng.integers(-6, 7, (1, 8)).astype(signed))
    second = Sum(block[::-1].copy(), rng.integers(-6, 7, (1, 8)).astype(signed))
    number = np.array([[_wrap(center + int(rng.integers(-8, 9)), bits)]], signed)
    return first, second if rng.random() < 0.5 else number


def _wrap(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_sums_compare_like_arrays(name: str, kind: str) -> None:
    rng, sort, decided = np.random.default_rng(1), TYPES[kind], 0
    for _ in range(500):
        first, second = _operands(kind, rng)
        outcome = symbolic_values.compare_sums(name, sort, first, second)
        expected = COMPARISONS[name](dense(first).view(sort.dtype), dense(second).view(sort.dtype))
        if outcome is not None:
            decided += 1
            np.testing.assert_array_equal(np.broadcast_to(outcome, expected.shape), expected)
    assert decided > 50


@pytest.mark.parametrize("kind", ["s32", "s64"])
def test_wrapping_sums_are_not_exact(kind: str) -> None:
    sort, top = TYPES[kind], 2 ** (TYPES[kind].bits - 1) - 1
    for thread, is_exact in (([-1, 0], True), ([0, 1], False)):
        number = Sum(np.array([[top - 1], [top]], sort.dtype), np.array([thread], sort.dtype))
        assert (symbolic_values.split_exact(number, sort) is not None) == is_exact


ORACLES = {"add": operator.add, "sub": operator.sub, "mul.lo": operator.mul, "shl": operator.lshift}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ORACLES)
def test_sums_wrap_like_arrays(name: str, kind: str) -> None:
    rng, sort, kept = np.random.default_rng(2), TYPES[kind], 0
    for _ in range(200):
        first, second = _operands(kind, rng)
        if name == "shl":
            second = rng.integers(0, 31, (1, 1)).astype(np.uint32)
        expected = ORACLES[name](dense(first).view(sort.dtype), dense(second).astype(sort.dtype))
        result = SUM_RULES[name](sort, first, second)
        if result is not None:
            kept += 1
            np.testing.assert_array_equal(np.broadcast_to(dense(result).view(sort.dtype), expected.shape), expected)
    assert kept > 50


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_sums_convert_like_arrays(source: str, target: str) -> None:
    rng, kept = np.random.default_rng(3), 0
    for _ in range(300):
        number, _ = _operands(source, rng)
        converted = symbolic_values.convert_sum(number, TYPES[source], TYPES[target])
        expected = dense(number).view(TYPES[source].dtype).astype(TYPES[target].dtype)
        if converted is not None:
            kept += 1
            np.testing.assert_array_equal(dense(converted).view(TYPES[target].dtype), expected)
    assert kept > 30


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("blocks", [2, 16, 40])
@pytest.mark.parametrize("stride", [-1, 0, 1, 2, None])  # None: lanes in any order
def test_gather_reads_the_element_of_each_thread(stride: int | None, blocks: int, size: int) -> None:
    rng = np.random.default_rng(1)
    region = Region(1 << 40, rng.integers(0, 256, 4096 * size, np.uint8), "a", writable=True)
    lanes = rng.permutation(32) if stride is None else np.arange(32) * stride - min(31 * stride, 0)
    thread = (lanes + np.array([0, 100, 7])[:, None]).reshape(1, -1)
    block = rng.integers(0, 4096 - int(thread.max()) - 1, (blocks, 1))
    block[0] = 4096 - int(thread.max()) - 2  # its last thread reads the last two elements, at offsets 0 and 1
    address = Sum(block * size + region.base, thread * size)
    part = ArrayPart(region, address, size, places=None, chosen=np.s_[:])
    elements = region.view_elements(size)
    for offset in (0, 1):
        assert (part.gather(offset) == elements[block + thread + offset]).all()


BASE, SECTORS = 1 << 40, 64


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize(("blocks", "threads"), [
    pytest.param([0, 128, 256], range(0, 128, 4), id="contiguous"),
    pytest.param([64, 64, 0], [0, 0, 512, 512], id="repeated"),
    pytest.param([20, 52, 1044], range(0, 96, 12), id="blocks begin in the middle of a sector"),
    pytest.param([4, 24, 132], range(0, 512, 36), id="blocks begin at different places"),
    pytest.param([1000, 1512], range(-1000, 0, 100), id="negative parts"),
])  # fmt: skip
def test_access_notes_its_sectors(blocks: list[int], threads: range | list[int], written: bool) -> None:
    flags, fetch = np.zeros(SECTORS, bool), 2  # sectors that an L2 miss fetches by default
    data, read_flags = np.zeros(SECTORS * SECTOR, np.uint8), {fetch: np.zeros_like(flags)}
    region = Region(BASE, data, "array", writable=True, read=read_flags, written=flags)
    column, row = np.array(blocks)[:, None] + BASE, np.array(threads)[None, :]
    ArrayPart(region, Sum(column, row), 4, places=None, chosen=slice(None)).mark_sectors(written=written)
    touched = np.flatnonzero(flags if written else read_flags[fetch])
    assert touched.tolist() == np.unique((column + row - BASE) // SECTOR).tolist()


@pytest.mark.parametrize("dtype", ["bool", "u1", "f2", "i4", "f4", "u8", "f8", "V16"])
@pytest.mark.parametrize("size", [31, 1 << 13])  # few elements, and so many that bits are blended
def test_choose_selects_as_numpy_does(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    mask, element_size = rng.random((1, size)) < 0.5, np.dtype(dtype).itemsize
    top = 2 if dtype == "bool" else 256
    chosen, alternative = (rng.integers(0, top, (1, size * element_size), np.uint8).view(dtype) for _ in range(2))
    selected = choose(mask, chosen, alternative)
    assert selected.dtype == dtype
    assert selected.tobytes() == np.where(mask, chosen, alternative).tobytes()
