"""Textures and surfaces against NumPy: point and weighted sampling."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.cli.argument_words import make_arguments
from ptxcount.engine.execute import execute_kernel
from ptxcount.lanes.warps import Array
from ptxcount.report.suggested_launches import format_overview
from ptxcount.util.errors import LaunchError, OutOfBoundsError
from tests.ptxcount import sources

RNG = np.random.default_rng(11)
COUNT = 128


def _index(place: int, extent: int, address: str) -> int | None:
    """Return the element that an index along an axis addresses; None if it is a border."""
    if address == "wrap":
        return place % extent
    if address == "mirror":
        return int([*range(extent), *reversed(range(extent))][place % (2 * extent)])
    return None if address == "border" and not 0 <= place < extent else min(max(place, 0), extent - 1)


def _nearest(number: float, tie: float) -> float:
    """Round a number to 8 fractional bits; a tie goes down if `tie` is negative, else up."""
    return float(np.ceil(number * 256 - 0.5) if tie < 0 else np.floor(number * 256 + 0.5)) / 256


def _weight(choice: tuple[int, ...], parts: list[float]) -> float:
    """Return a neighbour's weight, rounded to 8 fractional bits as on an H200; weights add up to one."""
    if len(parts) == 3:
        plane = _weight(choice[::2], parts[::2])
        further = _nearest(plane * parts[1], -1)
        return further if choice[1] else plane - further
    corner = _nearest(parts[0] * parts[1], 1) if len(parts) == 2 else 0.0
    first, last = parts[0], parts[-1] if len(parts) == 2 else 0.0
    return {(0,): 1 - first, (1,): first, (0, 0): 1 - first - last + corner, (0, 1): last - corner,
            (1, 0): first - corner, (1, 1): corner}[choice]  # fmt: skip


def compute_fetch(array: Array, coordinates: tuple[float, ...], linear: bool, address: str, normalized: bool) -> float:
    """Return the result of a fetch by the formulas of the CUDA guide; coordinates are in the order of axes."""
    scaled = np.array(coordinates) * (array.shape if normalized else 1)
    fixed = [int(x) for x in (np.floor(scaled * 256 + 0.5) - 128 if linear else np.floor(scaled) * 256)]
    total = 0.0
    for choice in product(*[(0, 1) if linear else (0,)] * len(coordinates)):
        steps = zip(fixed, choice, array.shape, strict=True)
        places = [_index(center // 256 + step, extent, address) for center, step, extent in steps]
        if None not in places:
            weight = _weight(choice[::-1], [center % 256 / 256 for center in fixed[::-1]])
            total += float(array[tuple(places)]) * weight
    return total


def _expect_fetches(
    out: Array, arrays: Iterable[Array], coordinates: list[Array], linear: bool, address: str, normalized: bool
) -> None:
    points = zip(*(axis.tolist() for axis in coordinates), strict=True)
    pairs = zip(arrays, points, strict=True)
    expected = [compute_fetch(array, point, linear, address, normalized) for array, point in pairs]
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


MODES = [
    (filter_, address, normalized)
    for filter_ in ("point", "linear")
    for address, normalized in (("clamp", False), ("border", False), ("clamp", True), ("wrap", True), ("mirror", True))
]


@pytest.mark.parametrize(("filter_", "address", "normalized"), MODES)
@pytest.mark.parametrize(("entry", "shape"), [("fetch1", (19,)), ("fetch2", (7, 19)), ("fetch3", (5, 7, 19))])
def test_fetches_as_in_guide(entry: str, shape: tuple[int, ...], filter_: str, address: str, normalized: bool) -> None:
    array = RNG.normal(size=shape).astype(np.float32)
    extents = [1 if normalized else n for n in shape]
    coordinates = [RNG.uniform(-1.5 * extent, 2.5 * extent, COUNT).astype(np.float32) for extent in extents]
    out = np.zeros(COUNT, np.float32)
    texture = ptxcount.Texture(array, filter=filter_, address=address, normalized=normalized)
    counters = sources.execute("textures", entry, [out, texture, *coordinates[::-1]], threads=COUNT)
    arrays = [array] * COUNT
    _expect_fetches(out, arrays, coordinates, filter_ == "linear", address, normalized)
    assert counters.totals()["texture_load_requests"] == COUNT // 4  # four lanes are a request


@pytest.mark.parametrize("filter_", ["point", "linear"])
def test_fetches_outside_of_a_border_are_zero(filter_: str) -> None:
    """No thread reads the array, but each four lanes are a request all the same."""
    out, outside = np.ones(COUNT, np.float32), np.full(COUNT, -100, np.float32)
    texture = ptxcount.Texture(np.ones((8, 8), np.float32), filter=filter_, address="border")
    counters = sources.execute("textures", "fetch2", [out, texture, outside, outside], threads=COUNT)
    assert not out.any()
    assert counters.totals()["texture_load_requests"] == COUNT // 4


@pytest.mark.parametrize("shape", [(40, 100), (3, 20, 300), (5, 9, 40)])
def test_sector_of_a_surface_has_two_rows(shape: tuple[int, ...]) -> None:
    """All bytes of a sector are in the same 16 columns, pair of rows, and layer."""
    layered, size = len(shape) > 2, int(np.prod(shape))
    place = ptxcount.Surface(np.zeros(shape, np.uint8)).find_offset(np.arange(size), layered=layered)
    assert len({*place.tolist()}) == size
    x, y = np.arange(size) % shape[-1], np.arange(size) // shape[-1]
    pieces = np.stack([place // 32, x // 16, y % shape[-2] // 2, y // shape[-2]])
    assert np.unique(pieces, axis=1).shape[1] == len({*(place // 32).tolist()})


@pytest.mark.parametrize(("entry", "shape"), [("layer1", (3, 19)), ("layer2", (3, 7, 19))])
def test_layers_are_clamped_and_not_filtered(entry: str, shape: tuple[int, ...]) -> None:
    array, layer = RNG.normal(size=shape).astype(np.float32), RNG.integers(-1, 5, COUNT).astype(np.int32)
    coordinates = [RNG.uniform(0, n, COUNT).astype(np.float32) for n in shape[1:]]
    out = np.zeros(COUNT, np.float32)
    args: list[Any] = [out, ptxcount.Texture(array, filter="linear"), *coordinates[::-1], layer]
    sources.execute("textures", entry, args, threads=COUNT)
    layers = np.where(layer < 0, 2, np.clip(layer, 0, 2))  # a negative number is a large unsigned one
    _expect_fetches(out, array[layers], coordinates, True, "clamp", False)


def test_tex1dfetch_converts_elements() -> None:
    index = np.arange(-32, 96, dtype=np.int32)
    cases: list[tuple[Array, dict[str, Any], Any]] = [
        (RNG.normal(size=64).astype(np.float32), {}, lambda a: a),
        (RNG.normal(size=64).astype(np.float16), {}, lambda a: a.astype(np.float32)),
        (np.arange(64, dtype=np.uint8) * 4, {"fractions": True}, lambda a: a / np.float32(255)),
        (np.arange(-128, 128, 4, dtype=np.int8), {"fractions": True}, lambda a: np.maximum(a / np.float32(127), -1)),
    ]
    for array, options, numbers in cases:
        out = np.ones(COUNT, np.float32)
        texture = ptxcount.Texture(array, **options)
        counters = sources.execute("textures", "element", [out, texture, index], threads=COUNT)
        inside = (index >= 0) & (index < 64)
        np.testing.assert_array_equal(out[inside], numbers(array).astype(np.float32))
        assert not out[~inside].any()
        groups = 64 // 8  # eight lanes are a request, of one sector or more
        assert counters.totals()["texture_load_sectors"] == max(groups, 64 * array.itemsize // 32)


def test_fetch_gives_the_channels_of_an_element() -> None:
    coordinates = [RNG.uniform(0, 8, 32).astype(np.float32) for _ in range(2)]
    column, row = (axis.astype(int) for axis in coordinates)
    colours, out = RNG.normal(size=(8, 8, 4)).astype(np.float32), np.zeros((32, 4), np.float32)
    sources.execute("textures", "colours", [out, ptxcount.Texture(colours, channels=4), *coordinates])
    np.testing.assert_array_equal(out, colours[row, column])
    numbers, small = RNG.integers(0, 256, (8, 8, 4)).astype(np.uint8), np.zeros((32, 4), np.uint8)
    sources.execute("textures", "bytes", [small, ptxcount.Texture(numbers, channels=4), *coordinates])
    np.testing.assert_array_equal(small, numbers[row, column])


def test_gather_gives_the_elements_around_a_corner() -> None:
    plane, out = RNG.normal(size=(8, 8)).astype(np.float32), np.zeros((32, 4), np.float32)
    center = [np.full(32, 3, np.float32), np.full(32, 5, np.float32)]
    sources.execute("textures", "gather", [out, ptxcount.Texture(plane), *center])
    assert out[0].tolist() == [plane[5, 2], plane[5, 3], plane[4, 3], plane[4, 2]]  # counterclockwise


def test_surface_accesses_have_their_sectors() -> None:
    """A sector has 16 bytes of two rows. Warps load rows: 8 sectors for 32 floats; they store columns: 16 sectors.

    Eight lanes are a request.
    """
    warps = 64 * 64 // 32
    text, plane = sources.ptx("textures"), RNG.normal(size=(64, 64)).astype(np.float32)
    turned = np.zeros_like(plane)
    counters = execute_kernel(text, "turn", (2, 8, 1), (32, 8, 1), [ptxcount.Surface(turned), ptxcount.Surface(plane)])
    np.testing.assert_array_equal(turned, plane.T)
    totals = counters.totals()
    assert (totals["surface_load_requests"], totals["surface_load_sectors"]) == (warps * 4, warps * 8)
    assert (totals["surface_store_requests"], totals["surface_store_sectors"]) == (warps * 4, warps * 16)


def test_surface_has_layers_and_channels() -> None:
    volume, layers = RNG.normal(size=(4, 4, 4, 2)).astype(np.float32), np.zeros((4, 4, 4), np.float32)
    args = [ptxcount.Surface(layers), ptxcount.Surface(volume, channels=2)]
    sources.execute("textures", "stacked", args, threads=64)
    np.testing.assert_array_equal(layers, volume[..., 0] + volume[..., 1])


def test_access_beyond_a_surface_follows_its_mode() -> None:
    """`beyond` stores 1000 times the element with clamping, plus the element with zeros; `trapped` is a fault."""
    line, x, out = np.arange(1, 9, dtype=np.float32), np.arange(-8, 24, dtype=np.int32), np.zeros(32, np.float32)
    sources.execute("textures", "beyond", [out, ptxcount.Surface(line), x])
    near = np.clip(x, 0, 7)
    np.testing.assert_array_equal(out, line[near] * 1000 + np.where(near == x, line[near], 0))
    message = r"thread \(0, 0, 0\): 4 bytes at \[x in bytes, y, ...\] = \[-32\] of a surface of shape"
    with pytest.raises(OutOfBoundsError, match=message):
        sources.execute("textures", "trapped", [out, ptxcount.Surface(line), x])


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("f4", {"channels": 3}, "channels is 3; use 1, or the length of the last axis"),
    ("f8", {}, "a texture has 1 to 3 dimensions, and at least one number, of 8, 16 or 32 bits"),
    ("f4", {"filter": "cubic"}, "filter is 'cubic'; allowed are point, linear"),
    ("f4", {"address": "wrap"}, "address 'wrap' needs normalized coordinates; set normalized=True"),
    ("i4", {"fractions": True}, "fractions do not exist for int32; pass integers of 8 or 16 bits, or floats"),
    ("u1", {"filter": "linear"}, "filter 'linear' needs floats, not uint8; pass floats, or set fractions=True"),
]


@pytest.mark.parametrize(("dtype", "options", "message"), WRONG)
def test_invalid_textures_are_refused(dtype: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        ptxcount.Texture(np.zeros((4, 4), dtype), **options)
    for shape in ((0,), (8, 0), (0, 8)):
        with pytest.raises(LaunchError, match="at least one number"):
            ptxcount.Texture(np.zeros(shape, np.float32))
    with pytest.raises(LaunchError, match=r"strides of \(32, 8\) bytes is not C-contiguous; pass a copy$"):
        ptxcount.Surface(np.zeros((4, 8), np.float32)[:, ::2])


def test_words_make_textures_and_surfaces() -> None:
    words = ["t=texture(linear,border):float32[8,8]=random(3)", "s=surface(2,rows):int32[4,2]=zeros"]
    texture, surface = make_arguments(words)
    assert isinstance(texture, ptxcount.Texture)
    assert (texture.filter, texture.address, texture.array.shape) == ("linear", "border", (8, 8))
    assert isinstance(surface, ptxcount.Surface)
    assert (surface.channels, surface.layout, surface.extents) == (2, "rows", (4,))


@pytest.mark.parametrize(("word", "message"), [
    ("t=texture(blue):f4[8]", "argument '.*': 'blue' is no option of a texture"),
    ("s=surface(wrap):f4[8]", "'wrap' is no option of a surface; allowed are array, rows, and the number of channels"),
    ("m=tensor(8,linear):f4[8]", "'linear' is no option of a tensor; allowed are swizzle=BYTES, and the lengths"),
    ("t=texture(swizzle=32):f4[8]", "'swizzle=32' is no option of a texture"),
    ("t=texture(9):f4[8]", "argument '.*': channels is 9; use 1,"),
    ("t=texture(2,3):f4[8,2]", "3 is a second number; give only the number of channels"),
])  # fmt: skip
def test_unknown_option_of_a_word_is_refused(word: str, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        make_arguments([word])


def test_fetch_needs_a_texture_of_its_dimensions() -> None:
    plane = ptxcount.Texture(np.zeros((8, 8), np.float32))
    with pytest.raises(LaunchError, match=r"the texture has the shape .*; tex\.1d.* needs 1 dimension"):
        sources.execute("textures", "fetch1", [np.zeros(1, "f4"), plane, np.zeros(1, "f4")], threads=1)


def test_suggested_command_has_texture_and_surface() -> None:
    listed = format_overview(sources.FOLDER / "textures.cu")
    assert "'t=texture:float32[256,256]'" in listed
    assert "'s=texture" not in listed
    assert "'s=surface:float32[256,256]'" in listed
