"""Tensor maps: conditions of the driver API, columns of ``im2col`` beside a walk, maps that a kernel changes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import ptxcount
from experiments import conditions
from experiments.condition_cases import CONDITIONS, REPLACEMENTS, Condition, MapRequest
from ptxcount.engine.execute import execute_kernel
from ptxcount.util.errors import LaunchError
from tests.ptxcount import sources
from tests.ptxcount.snippets import module


@cache
def _compile() -> str:
    return sources.compile_to_ptx(conditions.SOURCE, arch=conditions.ARCH)


def _find_conditions(group: str) -> list[Condition]:
    return [condition for condition in CONDITIONS if condition.group == group]


def _swizzle(data: bytes, swizzle: int) -> Any:
    """Exchange pieces of 16 bytes of a tile that lies at a multiple of 1,024 (PTX ISA, "Swizzling Modes")."""
    pieces = np.frombuffer(data, np.uint8).reshape(-1, 16)
    period = {0: 1, 32: 2, 64: 4, 128: 8}[swizzle]
    places = np.arange(len(pieces))
    return pieces[places ^ places // 8 % period].ravel()


def _walk_column(request: MapRequest, start: tuple[int, ...], offsets: tuple[int, ...]) -> bytes:
    """Return the channels of each pixel, one pixel after the other; zeros beyond the images."""
    assert request.corners
    array = np.arange(np.prod(request.shape)).reshape(request.shape) + 1
    ends = [extent - 1 + high for extent, high in zip(request.shape[-2:0:-1], request.corners[1], strict=True)]
    steps, place, image = request.steps or (1,) * len(request.shape), [*start[1:-1]], start[-1]
    words = []
    for _ in range(request.pixels):
        pixel = (image, *[at + offset for at, offset in zip(place, offsets, strict=True)][::-1])
        for channel in range(start[0], start[0] + request.channels):
            element = (*pixel, channel)
            is_inside = all(0 <= at < extent for at, extent in zip(element, request.shape, strict=True))
            words.append(int(array[element]) if is_inside else 0)
        for axis, end in enumerate(ends):
            place[axis] += steps[axis + 1]
            if place[axis] <= end:
                break
            place[axis] = request.corners[0][axis]
        else:
            image += 1
    return np.array(words, request.dtype).tobytes()


#: Words of an error -> the launches of im2col that end with it.
REFUSED_COLUMNS = {
    "must begin within the bounding box, (0, 0) to (6, 5)": 4, "0 to 255 are allowed": 2, "no multiple of 16": 2,
    "the map is one of im2col, the copy is not": 1, "the map is one of tiles, the copy is not": 1,
    "no multiple of 128": 1, "no coordinate may be below 0": 1, "they must lie within the tensor": 2,
    "tensor maps have no fill": 1,
}  # fmt: skip


def _place_column(condition: Condition) -> tuple[MapRequest, tuple[int, ...], tuple[int, ...]]:
    assert condition.request
    rank, numbers = len(condition.request.shape), condition.numbers
    return condition.request, numbers[2 : 2 + rank], numbers[7 : 5 + rank]


def test_columns() -> None:
    """A column holds what a walk over its pixels gives, or is refused for one reason."""
    refused = dict.fromkeys(REFUSED_COLUMNS, 0)
    launched: set[tuple[str, int]] = set()
    for condition in _find_conditions("im2col"):
        request, start, offsets = _place_column(condition)
        if condition.expectation == "runs" and not request.fill and (condition.kernel, request.swizzle) in launched:
            images = np.zeros(request.shape, request.dtype)
            fields = conditions.describe_map(images, request).make_fields()
            if not fields.find_stray(start, offsets):
                places, inside, _ = fields.locate(start, offsets)
                words = np.where(inside, places // 4 + 1, 0).astype(request.dtype)
                assert words.tobytes() == _walk_column(request, start, offsets), condition.name
                continue
        verdict, arrays = conditions.count_launch(condition, _compile())
        if verdict != "runs":
            (reason,) = (words for words in REFUSED_COLUMNS if words in verdict)
            refused[reason] += 1
            continue
        launched.add((condition.kernel, request.swizzle))
        column = _walk_column(request, start, offsets)
        if condition.kernel == "store_im2col":
            stored, read = (0xEEEEEEEE - np.arange(128)).astype(np.uint32), np.frombuffer(column, np.uint32)
            expected = np.arange(arrays[1].size, dtype=np.uint32) + 1
            expected[read[read > 0] - 1] = stored[read > 0]
            np.testing.assert_array_equal(arrays[1].ravel(), expected, condition.name)
        else:
            tile = _swizzle(column, request.swizzle)
            np.testing.assert_array_equal(arrays[0].view(np.uint8)[: len(tile)], tile, condition.name)
            assert arrays[0][conditions.WORDS] == 1, condition.name
    assert refused == REFUSED_COLUMNS
    assert len(launched) == 5


def test_steps() -> None:
    """Of the elements of a box along an axis every step-th is copied; x has no step (`cuTensorMapEncodeTiled`)."""
    for condition in _find_conditions("element strides"):
        request = condition.request
        assert request
        start, steps = condition.numbers[2 : 2 + len(request.shape)], (1, *request.steps[1:])
        axes = [range(first, first + count, step) for first, count, step in zip(start, request.box, steps, strict=True)]
        array = (np.arange(np.prod(request.shape)) + 1).astype(request.dtype).reshape(request.shape)
        wide = np.pad(array, 8)[np.ix_(*[np.array(axis) + 8 for axis in axes[::-1]])]
        places, inside, columns = conditions.describe_map(array, request).make_fields().locate(start)
        np.testing.assert_array_equal(np.where(inside, places // 4 + 1, 0), wide.ravel(), condition.name)
        assert columns == request.box[0]


def _walk_tile(condition: Condition) -> bytes:
    """Return the tile of a changed map, element by element."""
    assert condition.request
    x, y, field, value = condition.numbers[2:6]
    base = np.arange(4096, dtype=np.uint32) + 1
    extents, pitch, box, steps = [64, 64], 256, [*condition.request.box], [1, 1]
    width, swizzle = 4, 0
    if field == 0:
        base = np.arange(4160, dtype=np.uint32)[value // 4 :] + 100001
    elif field in (2, 3):
        box[field - 2] = value
    elif field in (4, 5):
        extents[field - 4] = value
    elif field == 6:
        pitch = value
    elif field == 8:
        steps[1] = value
    elif field == 9:
        width = {0: 1, 1: 2, 4: 8, 7: 4}[value]
    elif field == 11:
        swizzle = (0, 32, 64, 128)[value]
    data, tile = base.astype(condition.request.dtype).tobytes(), b""
    for row in range(y, y + box[1], steps[1]):
        for column in range(x, x + box[0]):
            place = row * pitch + column * width
            is_inside = 0 <= row < extents[1] and 0 <= column < extents[0]
            tile += data[place : place + width] if is_inside else bytes(width)
    return bytes(_swizzle(tile, swizzle))


#: Field and value of a change -> what the copy by that map ends with.
REFUSED_CHANGES = {
    ("global_address", 8): "a multiple of 16 is needed", ("rank", 0): "2 coordinates for (64,)",
    ("rank", 2): "a tensor of (0, 64, 64)", ("rank", 7): "rank 7, one less than the dimensions",
    ("box_dim 0", 3): "a row takes a multiple of 16 bytes", ("box_dim 0", 0): "box (8, 0)",
    ("box_dim 1", 0): "box (0, 16)", ("box_dim 1", 257): "box (257, 16)", ("global_dim 0", 0): "a tensor of (64, 0)",
    ("global_stride", 264): "rows of 264 bytes", ("element_stride 1", 0): "element strides (0, 1)",
    ("element_stride 1", 9): "element strides (9, 1)", ("interleave_layout", 1): "interleaved",
    ("swizzle_mode", 1): "no more than a swizzle", ("fill_mode", 1): "filled with NaN",
}  # fmt: skip


def test_changed_maps() -> None:
    """A copy by a changed map takes the elements that the fields say, or is refused with the line and the value."""
    names = {index: name for name, (index, _) in REPLACEMENTS.items()}
    for condition in _find_conditions("tensormap.replace"):
        verdict, arrays = conditions.count_launch(condition, _compile())
        change, request = (names[condition.numbers[4]], condition.numbers[5]), condition.request
        assert request
        if change in REFUSED_CHANGES and request.box == (16, 8):
            assert REFUSED_CHANGES[change] in verdict, (condition.name, verdict)
            assert "conditions.cu:" in verdict
        else:
            assert verdict == "runs", (condition.name, verdict)
            expected = np.frombuffer(_walk_tile(condition), np.uint8)
            np.testing.assert_array_equal(arrays[0].view(np.uint8)[: len(expected)], expected, condition.name)


FLOATS, IMAGES = np.zeros((64, 64), np.float32), np.zeros((2, 6, 7, 8), np.uint32)
COLUMN: dict[str, Any] = {"lower": (0, 0), "upper": (0, 0), "channels": 8, "pixels": 16}
#: Maps that the driver API does not encode, and what is said of them.
CONDITIONS_OF_MAPS: list[tuple[type, Any, dict[str, Any], str]] = [
    (ptxcount.TensorMap, FLOATS, {"box": (8, 16), "steps": (9, 1)}, r"element strides \(9, 1\): a number from 1 to 8"),
    (ptxcount.TensorMap, FLOATS, {"box": (8, 16), "steps": (1,)}, r"element strides \(1,\): .*each axis of \(64, 64\)"),
    (ptxcount.TensorMap, FLOATS.astype("c16"), {"box": (8, 8)}, "elements of 16 bytes: 1, 2, 4 or 8"),
    (ptxcount.TensorMap, np.zeros((0, 64), "f4"), {"box": (8, 8)}, r"a tensor of \(0, 64\): at least 1"),
    (ptxcount.TensorMap, np.zeros((1,) * 6, "f4"), {"box": (8,) * 6}, "a tensor of 6 dimensions: 1 to 5"),
    (ptxcount.Im2colMap, FLOATS, COLUMN | {"lower": (), "upper": ()}, r"\(64, 64\): im2col needs 3 to 5 dimensions"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"lower": (0, -129)}, r"corner \(0, -129\): 2 numbers from -128 to 127"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"upper": (0,)}, r"upper corner \(0,\): 2 numbers"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"upper": (-6, 0)}, r"corners \(0, 0\) and \(-6, 0\): no pixel of"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"channels": 257}, "257 channels: 1 to 256"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"pixels": 1025}, "1025 pixels: 1 to 1024"),
    (ptxcount.Im2colMap, IMAGES, COLUMN | {"channels": 3}, "3 channels of a pixel: a row takes a multiple of 16 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "array", "fields", "message"), CONDITIONS_OF_MAPS)
def test_conditions(make: type, array: Any, fields: dict[str, Any], message: str) -> None:
    """A map that breaks a condition is refused with the value."""
    with pytest.raises(LaunchError, match=message):
        make(array, **fields)


#: Changes that make a map of 8 rows of 64 bytes out of zeros: a field, its axis, and the value.
CHANGES = [
    ("global_address", "", "%rd1"), ("rank", "", "1"), ("box_dim", "0, ", "16"), ("box_dim", "1, ", "8"),
    ("global_dim", "0, ", "64"), ("global_dim", "1, ", "64"), ("global_stride", "0, ", "%rd3"),
    ("element_stride", "0, ", "1"), ("element_stride", "1, ", "1"), ("elemtype", "", "2"),
    ("interleave_layout", "", "0"), ("swizzle_mode", "", "0"), ("fill_mode", "", "0"),
]  # fmt: skip


def test_map_of_zeros() -> None:
    """A kernel makes a map out of zeros (CUDA guide), in global memory by generic addresses, and stores by it."""
    body = "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u64 %rd3, 256; mov.u32 %r1, s; mov.u32 %r2, 4;\n"
    for field, axis, value in CHANGES:
        kind = "b64" if value.startswith("%") else "b32"
        body += f"tensormap.replace.tile.{field}.b1024.{kind} [%rd2], {axis}{value};\n"
    body += "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r2, %r2}], [%r1];"
    array, place = np.ones((64, 64), np.uint32), np.zeros(16, np.uint64)
    text = module(body, 2, ".shared .align 1024 .b8 s[2048];")
    counters = execute_kernel(text, "snippet", (1, 1, 1), (1, 1, 1), [array, place], unwritten="off")
    expected = np.ones((64, 64), np.uint32)
    expected[4:12, 4:20] = 0
    np.testing.assert_array_equal(array, expected)
    assert counters.totals()["bulk_store_sectors"] == 8 * 3
