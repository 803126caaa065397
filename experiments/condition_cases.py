"""Launches that obey or break a condition of bulk copies and tensor maps, each with a guessed outcome.

The guesses were written before any launch ran (2026-11-29). They are from the comments of `cuda.h` 13.0 on
`cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`, the PTX ISA, and docs/evidence/memory.md. Coordinates, boxes,
extents and strides are in the driver's order: x first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

RUNS, INVALID = "runs", "encoding: invalid value"
MISALIGNED, ILLEGAL, FAILED, BAD_ADDRESS = (
    "misaligned address",
    "illegal instruction",
    "launch failed",
    "illegal address",
)
TWO = (64, 64)
NHWC = (2, 6, 7, 8)


@dataclass(frozen=True)
class MapRequest:
    """Parameters of `cuTensorMapEncodeTiled`; with `corners`, of `cuTensorMapEncodeIm2col`.

    `extents`, and `pitches` in bytes, are by default those of a C-contiguous array of this shape. `offset` is added to
    the address, in bytes.
    """

    shape: tuple[int, ...] = TWO
    dtype: str = "u4"
    box: tuple[int, ...] = (16, 8)
    steps: tuple[int, ...] = ()
    swizzle: int = 0
    interleave: int = 0
    fill: int = 0
    corners: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    channels: int = 8
    pixels: int = 16
    extents: tuple[int, ...] | None = None
    pitches: tuple[int, ...] | None = None
    offset: int = 0


@dataclass(frozen=True)
class Condition:
    """A launch of a kernel; without a kernel, only a call that encodes a tensor map.

    `expectation` is the guessed outcome. `numbers` are the kernel's integer arguments.
    """

    group: str
    name: str
    expectation: str
    request: MapRequest | None = None
    kernel: str = ""
    numbers: tuple[int, ...] = ()


def _make_copy(
    kernel: str, expectation: str, request: MapRequest, size: int, start: tuple[int, ...], **more: Any
) -> Condition:
    """Make a launch that copies a tile of `size` bytes at coordinates `start`.

    `more` has its `group`, and optionally `to`, the shared offset, the im2col `offsets`, and a `text` for its name.
    """
    to, offsets = more.get("to", 0), more.get("offsets", ())
    numbers = (to, size, *start, *(0,) * (5 - len(start)), *offsets, *(0,) * (3 - len(offsets)))
    words = [kernel, more.get("text", ""), f"at {start}", f"to {to}" * bool(to), f"offsets {offsets}" * bool(offsets)]
    return Condition(more["group"], " ".join(filter(None, words)), expectation, request, kernel, numbers)


def _iter_alignments() -> Iterator[Condition]:
    for swizzle in (0, 32, 64, 128):
        request = MapRequest(box=(swizzle // 4 or 16, 16), swizzle=swizzle)
        for to in (128, 256, 384, 512, 64, 1040):
            for kernel in ("load_2d", "store_2d"):
                yield _make_copy(kernel, MISALIGNED if to % 128 else RUNS, request, 64 * request.box[0], (0, 2), to=to,
                                 group="shared address", text=f"swizzle {swizzle}")  # fmt: skip


def _iter_sizes() -> Iterator[Condition]:
    table = {
        "bulk_load": [((0, 0, 0, 0), RUNS), ((0, 8, 0, 0), FAILED), ((0, 40, 0, 0), FAILED),
                      ((0, 64, 0, 4), MISALIGNED), ((0, 64, 1 << 30, 0), BAD_ADDRESS),
                      ((16128, 4096, 0, 0), BAD_ADDRESS), ((1 << 18, 64, 0, 0), BAD_ADDRESS)],
        "bulk_store": [((0, 0, 0, 0), RUNS), ((0, 8, 0, 0), RUNS), ((0, 40, 0, 0), RUNS),
                       ((16128, 4096, 0, 0), BAD_ADDRESS), ((0, 64, 1 << 30, 0), BAD_ADDRESS)],
        "bulk_reduce": [((0, 0, 0, 0), RUNS), ((0, 8, 0, 0), RUNS), ((0, 24, 0, 0), RUNS), ((0, 64, 8, 0), MISALIGNED)],
        "bulk_prefetch": [((0, 0, 0, 0), RUNS), ((0, 24, 0, 0), FAILED), ((0, 64, 8, 0), MISALIGNED),
                          ((0, 64, 1 << 30, 0), RUNS)],
    }  # fmt: skip
    for kernel, rows in table.items():
        for (to, size, place, barrier), expectation in rows:
            text = f"{kernel}: {size} bytes, shared {to}, global {place}" + f", barrier + {barrier}" * bool(barrier)
            yield Condition("sizes", text, expectation, None, kernel, (to, size, place, barrier, *(0,) * 6))


def _iter_boxes_beyond() -> Iterator[Condition]:
    start: tuple[int, ...]
    small = MapRequest((6, 12), box=(32, 8))
    inside = [(0, 0), (8, 4), (12, 0), (0, 6), (0, 1 << 30), (1 << 30, 0)]
    for start in [*inside, (-16, -4), (-32, 0), (0, -8), (0, -(1 << 31)), (-(1 << 31), 0), (-4, 0), (1, 0), (3, 2)]:
        is_odd = start[0] % 4 != 0
        yield _make_copy("load_2d", ILLEGAL if is_odd else RUNS, small, 1024, start, group="box beyond", text="6 x 12")
        for kernel in ("store_2d", "reduce_2d"):
            expectation = RUNS if start in inside else ILLEGAL
            yield _make_copy(kernel, expectation, small, 1024, start, group="box beyond", text="6 x 12")
    for shape in ((3, 6, 12), (2, 3, 6, 12), (2, 2, 3, 6, 12)):
        request, rank = MapRequest(shape, box=(16, 8, 4, 2, 2)[: len(shape)]), len(shape)
        size = 4 * 16 * 8 * 4 * 2 ** (rank - 3)
        for start in ((0,) * rank, (-4, *(-1,) * (rank - 1)), (4, *(1,) * (rank - 1))):
            yield _make_copy(f"load_{rank}d", RUNS, request, size, start, group="box beyond", text=f"{shape}")
    for dtype, row in (("f4", 16), ("f2", 32), ("f8", 8)):
        yield _make_copy("load_2d", RUNS, MapRequest(dtype=dtype, box=(row, 8), fill=1), 512, (-row // 2, -1),
                         group="box beyond", text=f"{dtype}, NaN")  # fmt: skip


def _iter_steps() -> Iterator[Condition]:
    start: tuple[int, ...]
    for steps, rows in {(1, 2): 8, (1, 3): 6, (1, 8): 2, (2, 1): 16, (8, 1): 16}.items():
        for swizzle in (0, 64):
            request = MapRequest(box=(16, 16), steps=steps, swizzle=swizzle)
            text = f"element strides {steps}, swizzle {swizzle}"
            for start in ((0, 0), (4, 5), (0, -3)):
                yield _make_copy("load_2d", RUNS, request, 64 * rows, start, group="element strides", text=text)
            yield _make_copy("store_2d", RUNS, request, 64 * rows, (4, 5), group="element strides", text=text)
    request = MapRequest((9, 9, 16), box=(8, 6, 5), steps=(1, 2, 3))
    for start in ((0, 0, 0), (4, 1, -1)):
        yield _make_copy("load_3d", RUNS, request, 32 * 3 * 2, start, group="element strides", text="(1, 2, 3)")


def _iter_encodings() -> Iterator[Condition]:
    plain, three = MapRequest(), MapRequest((4, 64, 64), box=(16, 8, 2))
    column = MapRequest(NHWC, corners=((0, 0), (0, 0)))
    cubes = MapRequest((2, 3, 6, 7, 8), corners=((0, 0, 0), (0, 0, 0)))
    wide = MapRequest((8, 64, 512), "u1", corners=((0,), (0,)), channels=16)
    rows: list[tuple[MapRequest, dict[str, Any], str]] = [
        (plain, {}, RUNS), (plain, {"extents": (), "pitches": (), "box": ()}, INVALID),
        *((plain, {"offset": offset}, INVALID if offset % 16 else RUNS) for offset in (4, 8, 16)),
        *((plain, {"extents": (64, extent)}, INVALID if extent in (0, 1 + (1 << 32)) else RUNS)
          for extent in (0, 1, (1 << 32) - 1, 1 << 32, 1 + (1 << 32))),
        *((plain, {"pitches": (pitch,)}, INVALID if pitch % 16 or pitch >> 40 else RUNS)
          for pitch in (0, 16, 240, 264, (1 << 40) - 16, 1 << 40)),
        *((three, {"pitches": pitches}, RUNS) for pitches in ((256, 128), (256, 0), (16, 16))),
        *((plain, {"box": box}, INVALID if 0 in box or 257 in box or box[0] in (1, 3, 5) else RUNS)
          for box in ((0, 8), (16, 0), (16, 256), (16, 257), (256, 256), (257, 8), (1, 8), (3, 8), (5, 8), (4, 8))),
        *((plain, {"swizzle": swizzle, "box": (row // 4, 8)}, INVALID if row > swizzle else RUNS)
          for swizzle in (32, 64, 128) for row in (16, 32, 64, 128, 256)),
        *((plain, {"steps": steps}, INVALID if 0 in steps or 9 in steps else RUNS)
          for steps in ((0, 1), (1, 0), (9, 1), (1, 9), (8, 8))),
        (plain, {"interleave": 16}, INVALID), (three, {"interleave": 16}, RUNS), (three, {"interleave": 32}, INVALID),
        (three, {"interleave": 16, "swizzle": 128}, RUNS), (three, {"interleave": 16, "box": (3, 8, 2)}, RUNS),
        (three, {"interleave": 32, "swizzle": 32}, RUNS), (three, {"interleave": 32, "swizzle": 64}, INVALID),
        (three, {"interleave": 32, "swizzle": 32, "offset": 16}, INVALID),
        (three, {"interleave": 32, "swizzle": 32, "pitches": (272, 544)}, INVALID),
        *((plain, {"dtype": dtype, "fill": 1}, RUNS if dtype[0] == "f" else INVALID)
          for dtype in ("f4", "f2", "f8", "u4", "i8")),
        (column, {}, RUNS), (MapRequest(corners=((), ())), {}, INVALID),
        *((column, {"corners": ((low, 0), (high, 0))}, expectation) for low, high, expectation in (
            (-128, 127, RUNS), (-129, 0, INVALID), (0, 128, INVALID), (7, 0, INVALID), (6, 0, RUNS), (0, -7, INVALID),
            (0, -6, RUNS))),
        *((cubes, {"corners": ((low, 0, 0), (high, 0, 0))}, INVALID if (low, high) != (-16, 15) else RUNS)
          for low, high in ((-16, 15), (-17, 0), (0, 16))),
        *((wide, {"corners": ((low,), (high,))}, INVALID if (low, high) != (-32768, 32767) else RUNS)
          for low, high in ((-32768, 32767), (-32769, 0), (0, 32768))),
        *((wide, {"channels": channels}, INVALID if not 0 < channels <= 256 or channels % 16 else RUNS)
          for channels in (0, 8, 16, 24, 256, 257, 272)),
        *((wide, {"pixels": pixels}, INVALID if pixels in (0, 1025) else RUNS)
          for pixels in (0, 1, 256, 257, 1024, 1025)),
        (column, {"steps": (1, 2, 2, 1)}, RUNS), (column, {"steps": (1, 9, 1, 1)}, INVALID),
        (column, {"steps": (1, 1, 1, 2)}, RUNS), (column, {"swizzle": 32}, RUNS),
        (column, {"channels": 4, "swizzle": 32}, RUNS),
        (wide, {"channels": 64, "swizzle": 32}, INVALID),
    ]  # fmt: skip
    for request, changes, expectation in rows:
        text = f"{'im2col' if request.corners is not None else 'tiled'} {request.shape} {changes or 'plain'}"
        yield Condition("encoding", text, expectation, replace(request, **changes))


def _iter_im2col() -> Iterator[Condition]:
    plain = MapRequest(NHWC, corners=((0, 0), (0, 0)))
    padded = replace(plain, corners=((-1, -1), (-1, -1)))
    origin, none = (0, 0, 0, 0), (0, 0)
    rows: list[tuple[MapRequest, tuple[int, ...], tuple[int, ...], str]] = [
        (plain, origin, none, RUNS), (plain, (0, 3, 2, 0), none, RUNS), (replace(plain, pixels=48), origin, none, RUNS),
        (replace(plain, pixels=60), (0, 0, 0, 1), none, RUNS), (plain, (0, 0, 0, 5), none, RUNS),
        *((padded, (0, -1, -1, 0), offsets, RUNS) for offsets in (none, (1, 0), (0, 1), (2, 2), (1, 2))),
        *((padded, (0, 2, 3, 1), offsets, RUNS) for offsets in ((2, 0), (255, 0), (0, 255), (256, 0), (65535, 0))),
        (replace(plain, corners=((-1, 0), (0, -2))), (0, 0, 0, 0), (1, 0), RUNS),
        (replace(plain, corners=((2, 0), (0, 1))), (0, 2, 0, 0), none, RUNS),
        *((plain, start, none, RUNS)
          for start in ((0, 7, 0, 0), (0, -1, 0, 0), (0, 0, -1, 0), (0, 0, 6, 0), (0, 0, 0, -1))),
        *((plain, (channel, 0, 0, 0), none, ILLEGAL if channel % 4 else RUNS) for channel in (4, 8, -4, 1, 2)),
        (replace(plain, channels=4), (4, 0, 0, 0), none, RUNS), (replace(plain, channels=16), origin, none, RUNS),
        *((replace(plain, steps=steps), start, none, RUNS)
          for steps in ((1, 2, 2, 1), (1, 2, 1, 1), (1, 1, 3, 1), (1, 1, 1, 2)) for start in (origin, (0, 1, 1, 0))),
        *((replace(padded, steps=(1, 2, 2, 1)), (0, -1, -1, 0), offsets, RUNS) for offsets in (none, (1, 1))),
        (replace(plain, swizzle=32), origin, none, RUNS),
        (replace(plain, dtype="f4", fill=1, corners=((-1, -1), (0, 0))), (0, -1, -1, 0), none, RUNS),
    ]  # fmt: skip
    for request, start, offsets, expectation in rows:
        changes = f"corners {request.corners}, {request.channels} channels, {request.pixels} pixels"
        changes += f", steps {request.steps}" * bool(request.steps) + f", swizzle {request.swizzle}"
        size = request.channels * request.pixels * 4
        yield _make_copy("im2col_4d", expectation, request, size, start, offsets=offsets, group="im2col", text=changes)
    yield _make_copy("im2col_4d", MISALIGNED, plain, 512, origin, to=64, group="im2col")
    line = MapRequest((2, 7, 8), corners=((-1,), (0,)))
    cube = MapRequest((2, 3, 6, 7, 8), corners=((-1, -1, -1), (0, 0, 0)))
    yield _make_copy("im2col_3d", RUNS, line, 512, (0, -1, 0), offsets=(1,), group="im2col")
    yield _make_copy("im2col_5d", RUNS, cube, 512, (0, -1, -1, -1, 0), offsets=(1, 0, 1), group="im2col")
    yield _make_copy("load_4d", ILLEGAL, plain, 512, origin, group="im2col", text="map of im2col, copy of a tile")
    tiled = MapRequest(NHWC, box=(8, 4, 4, 1))
    yield _make_copy("im2col_4d", ILLEGAL, tiled, 512, origin, group="im2col", text="map of a tile")
    for start in (origin, (0, 3, 2, 1), (0, -1, 0, 0), (0, 0, 0, 5)):
        yield _make_copy("store_im2col", RUNS if min(start) >= 0 else ILLEGAL, plain, 512, start, group="im2col")
    for corners in (((-1, 0), (0, 0)), ((0, 0), (1, 0)), ((1, 0), (-1, 0))):
        request, is_within = replace(plain, corners=corners), corners[0][0] > 0
        text = f"corners {corners}"
        yield _make_copy(
            "store_im2col", RUNS if is_within else ILLEGAL, request, 512, (0, 2, 2, 0), group="im2col", text=text
        )


#: Field of a tensor map -> its index in the kernel `replace_2d`, and cases: new value, bytes of the tile, and outcome.
REPLACEMENTS: dict[str, tuple[int, list[tuple[int, int, str]]]] = {
    "global_address": (0, [(0, 512, RUNS), (16, 512, RUNS), (8, 512, ILLEGAL)]),
    "rank": (1, [(1, 512, RUNS), (0, 512, ILLEGAL), (2, 512, ILLEGAL), (7, 512, ILLEGAL)]),
    "box_dim 0": (2, [(8, 256, RUNS), (3, 96, ILLEGAL), (0, 512, ILLEGAL)]),
    "box_dim 1": (3, [(4, 256, RUNS), (0, 512, ILLEGAL), (257, 64, ILLEGAL)]),
    "global_dim 0": (4, [(8, 512, RUNS), (0, 512, ILLEGAL)]),
    "global_dim 1": (5, [(4, 512, RUNS)]),
    "global_stride": (6, [(512, 512, RUNS), (264, 512, ILLEGAL), (32, 512, RUNS)]),
    "element_stride 0": (7, [(2, 512, RUNS)]),
    "element_stride 1": (8, [(2, 256, RUNS), (0, 512, ILLEGAL), (9, 64, ILLEGAL)]),
    "elemtype": (9, [(0, 128, RUNS), (1, 256, RUNS), (4, 1024, RUNS), (7, 512, RUNS)]),
    "interleave_layout": (10, [(1, 512, ILLEGAL)]),
    "swizzle_mode": (11, [(1, 512, ILLEGAL), (2, 512, RUNS), (3, 512, RUNS)]),
    "fill_mode": (12, [(1, 512, ILLEGAL)]),
}


def _iter_replacements() -> Iterator[Condition]:
    rows = [(MapRequest(), name, field, *case) for name, (field, cases) in REPLACEMENTS.items() for case in cases]
    rows.append((MapRequest(box=(8, 8)), "swizzle_mode", 11, 1, 256, RUNS))
    rows.append((MapRequest(dtype="f4"), "fill_mode", 12, 1, 512, RUNS))
    for request, text, field, value, size, expectation in rows:
        x, y = {9: (16, 1), 12: (-4, -1)}.get(field, (4, 1))
        numbers = (0, size, x, y, field, value, 0, 0, 0, 0)
        name = f"{text} = {value}, box {request.box}, {request.dtype}"
        yield Condition("tensormap.replace", name, expectation, request, "replace_2d", numbers)


#: All conditions. Those without any earlier measurement come first.
CONDITIONS = [
    *_iter_im2col(), *_iter_replacements(), *_iter_steps(), *_iter_boxes_beyond(), *_iter_sizes(),
    *_iter_alignments(), *_iter_encodings(),
]  # fmt: skip
