"""Fetches from textures, and loads and stores of surfaces (PTX ISA, "Texture Instructions", "Surface Instructions")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...counting.counters import Access
from ...counting.transactions import sectors
from ...lanes.warps import Array, by_warp, lanes_by_warp, spread
from ...machine.chunk import EVERYONE, Chunk
from ...ptx.program import TYPES, Address, Group, Instruction, Operand, Type
from ...util.errors import LaunchError, OutOfBoundsError
from ..operands import address, as_array, elements, expect_count, items, reader, split_name, unsupported
from ..registry import Step, binds, step_of
from . import GEOMETRIES, Surface, Tap, Texture

_U32, _S32, _U64 = TYPES["u32"], TYPES["s32"], TYPES["u64"]


def _place(instruction: Instruction, operand: Operand) -> tuple[Address, tuple[Operand, ...]]:
    """The handle and the coordinates of ``[handle, {x, y}]``."""
    if isinstance(operand, Group) and len(operand.items) == 2 and isinstance(operand.items[0], Address):
        return operand.items[0], items(operand.items[1])
    raise unsupported(instruction, "a texture or a surface and coordinates are needed")


def _bound(chunk: Chunk, handles: Array, kind: type[Surface], geometry: str) -> Iterator[tuple[Any, int, Array]]:
    """What the handles of the active threads stand for, where it begins, and whose it is."""
    rows, active = spread(handles, chunk.shape), spread(chunk.active, chunk.shape)
    what, instruction = kind.__name__.lower(), chunk.instruction
    for handle in np.unique(rows[active]).tolist():
        mine = active & (rows == handle)
        bound = chunk.context.bound.get(handle)
        if bound is None or type(bound.what) is not kind:
            raise LaunchError(
                f"{instruction.source}: {handle:#x} is no {what}; as its argument give ptxcount.{kind.__name__}"
            )
        if not bound.what.fits(geometry):
            raise LaunchError(f"{instruction.source}: {instruction.name} of a {what} of shape {bound.what.extents}")
        yield bound.what, bound.base, mine


class _Lanes(NamedTuple):
    """Lanes of a request, those of them that are served together, and how often: as read on an H200."""

    asking: int
    served: int
    times: int = 1


_OCTET = _Lanes(8, 8)
_QUAD = _Lanes(4, 4)


def _filtered(texture: Texture, taps: int, *, gather: bool) -> _Lanes:
    """Of a fetch by fractions: two lanes are served of eight neighbours, and of four of 16 bytes, read twice."""
    large = texture.element == 16 and taps > 1 and not gather
    return _Lanes(4, 2, 1 + large) if taps == 8 or large else _QUAD


def _record(
    chunk: Chunk, access: Access, lanes: _Lanes, mine: Array, places: list[Array], read: Sequence[Array] = ()
) -> None:
    """Count requests of groups of lanes: sectors by where the chip has the bytes, of all elements that it reads.

    As ``l1tex__t_requests_pipe_tex`` and ``l1tex__t_sectors_pipe_tex`` of Nsight Compute. ``read`` says of each place
    whether it is read; without, all are.
    """
    threads = chunk.shape[1]
    active = [lanes_by_warp(mine & each, threads).reshape(-1, lanes.served) for each in read or [mine] * len(places)]
    rows = [by_warp(spread(each, chunk.shape), threads).reshape(-1, lanes.served) for each in places]
    everyone = lanes_by_warp(mine, threads)
    together = np.concatenate(active, axis=1)
    some = together.any(axis=1)
    access.add(
        int(everyone.reshape(-1, lanes.asking).any(axis=1).sum()),
        lanes.times * int(sectors(np.concatenate(rows, axis=1)[some], together[some], access.width).sum()),
        int(everyone.sum()) * access.width,
    )


@binds("tex", "tld4")
def _fetch(instruction: Instruction) -> Step:
    """``tex{.level,.grad}.geometry.v4.dtype.ctype d, [t, c]{, level}``, ``tld4.{r,g,b,a}.2d.v4.dtype.f32 d, [t, c]``.

    Textures have one level here, so that a fetch from any is one from the first.
    """
    names, kinds = split_name(instruction)
    gather = instruction.opcode == "tld4"
    channel = ["rgba".find(name) for name in names if gather and name in "rgba"]
    geometry = next((name for name in names if name in GEOMETRIES), "")
    known = {geometry, "v4", *("rgba" if gather else ("level", "grad", "base"))}
    if not geometry or not {*names} <= known or [kind.size for kind in kinds] != [4, 4] or gather > (geometry == "2d"):
        raise unsupported(instruction)
    to, from_ = kinds
    handle, coordinates = _place(instruction, instruction.operands[1])
    count, layered = GEOMETRIES[geometry]
    targets = elements(instruction.operands[0], 4, instruction)
    if len(coordinates) < count + layered:
        raise unsupported(instruction, f"{count + layered} coordinates wanted, {len(coordinates)} given")
    wanted = list(coordinates[: count + layered])
    reads: list[tuple[Operand, Type]] = [(each, from_) for each in wanted]
    if layered:
        reads[0] = (wanted[0], _U32)
    read_handle = address(instruction, handle, None)
    whole = from_.kind != "f"

    def fetch(chunk: Chunk, *given: Array) -> list[Array]:
        layer, *places = given if layered else (None, *given)
        results = [np.zeros(chunk.shape, np.uint32) for _ in range(4)]
        handles = as_array(read_handle(chunk), _U64)
        for texture, base, mine in _bound(chunk, handles, Texture, geometry):
            taps = texture.taps(places, layer, gather=gather)
            found = [_texel(chunk, base, texture, tap, mine) for tap in taps]
            where = [texture.place(each.place * texture.element, layered=layered) for each in taps]
            access = chunk.access("texture", "load", texture.element)
            if whole:  # beyond the ends there is no request
                _record(chunk, access, _OCTET, mine & taps[0].inside, where)
            else:
                lanes = _filtered(texture, len(taps), gather=gather)
                _record(chunk, access, lanes, mine, where, [each.read for each in taps])
            if gather:
                values = [each[min(channel[0], len(each) - 1)] for each in found]
            elif len(taps) == 1:
                values = found[0]
            else:
                values = [
                    sum(tap.weight * part for tap, part in zip(taps, parts, strict=True)).astype(np.float32)
                    for parts in zip(*found, strict=True)
                ]
            missing = [np.zeros_like(values[0])] * 2 + [np.ones_like(values[0])]
            for result, value in zip(results, [*values, *missing[len(values) - 1 :]], strict=True):
                result[mine] = value[mine].view(np.uint32)
        return results

    return step_of(instruction, [(each, to) for each in targets], reads, fetch)


def _texel(chunk: Chunk, base: int, texture: Texture, tap: Tap, mine: Array) -> list[Array]:
    """The channels of an element for each thread, zeros where there is none."""
    report, inside = chunk.reporter(), mine & tap.inside
    inside = EVERYONE if inside.all() else inside
    place = spread(np.asarray(base + tap.place * texture.element), chunk.shape)
    found = chunk.context.memory.load(place, texture.array.dtype.itemsize, texture.channels, inside, report)
    return [np.where(inside, texture.decoded(spread(each, chunk.shape)), 0) for each in found]


@binds("suld", "sust")
def _surface(instruction: Instruction) -> Step:
    """``suld.b.geometry{.vec}.type.clamp d, [s, c]`` and ``sust.b.geometry{.vec}.type.clamp [s, c], d``; x in bytes."""
    names, kinds = split_name(instruction)
    loads = instruction.opcode == "suld"
    geometry = next((name for name in names if name in GEOMETRIES), "")
    vector = next((int(name[1]) for name in names if name in ("v2", "v4")), 1)
    beyond = [name for name in names if name in ("trap", "clamp", "zero")]
    rest = {*names} - {"b", geometry, f"v{vector}", *beyond}
    if not geometry or rest or len(beyond) > 1 or "b" not in names or len(kinds) != 1 or kinds[0].kind != "b":
        raise unsupported(instruction)
    (kind,), (count, layered) = kinds, GEOMETRIES[geometry]
    expect_count(instruction, 2)
    handle, coordinates = _place(instruction, instruction.operands[loads])
    data = elements(instruction.operands[not loads], vector, instruction)
    read_handle = address(instruction, handle, None)
    reads = [reader(instruction, each, _S32) for each in coordinates[: count + layered]]
    width = kind.size * vector

    def where(chunk: Chunk) -> Iterator[tuple[Array, Array, Surface]]:
        """Byte addresses, and the threads that have one."""
        given = [as_array(read(chunk), _S32).astype(np.int64) for read in reads]
        layer, *places = given if layered else (np.zeros((1, 1), np.int64), *given)
        handles = as_array(read_handle(chunk), _U64)
        for surface, base, mine in _bound(chunk, handles, Surface, geometry):
            pitch = surface.extents[-1] * surface.element
            limits = [pitch - width, *(extent - 1 for extent in surface.extents[::-1][1:])]
            axes = [*places, layer][: len(limits)]
            outside = np.zeros((1, 1), bool)
            for axis, limit in zip(axes, limits, strict=True):
                outside = outside | (axis < 0) | (axis > limit)
            wrong = mine & outside
            if wrong.any() and (beyond or ["trap"]) == ["trap"]:
                first = tuple(int(each[0]) for each in np.nonzero(wrong))
                at = [int(spread(axis, chunk.shape)[first]) for axis in axes]
                text = f"{width} bytes at x, y, ... {at} of a surface of {surface.extents}, {pitch} bytes a row"
                raise chunk.fault(OutOfBoundsError, text, position=(first[0], first[1]))
            axes = [np.clip(axis, 0, limit) for axis, limit in zip(axes, limits, strict=True)]
            row = np.zeros((1, 1), np.int64)
            for axis, extent in reversed(list(zip(axes[1:], surface.extents[::-1][1:], strict=True))):
                row = row * extent + axis
            byte = row * pitch + axes[0]
            access = chunk.access("surface", "load" if loads else "store", width)
            _record(chunk, access, _OCTET, mine, [surface.place(byte, layered=layered)])
            yield spread(base + byte, chunk.shape), mine & ~outside if beyond == ["zero"] else mine, surface

    def load(chunk: Chunk) -> list[Array]:
        results = [np.zeros(chunk.shape, kind.dtype) for _ in data]
        for place, mine, _ in where(chunk):
            report = chunk.reporter()
            found = chunk.context.memory.load(place, kind.size, vector, mine, report)
            for result, value in zip(results, found, strict=True):
                result[mine] = spread(value, chunk.shape)[mine]
        return results

    def store(chunk: Chunk, *given: Array) -> list[Array]:
        for place, mine, _ in where(chunk):
            report = chunk.reporter()
            values = [spread(each, chunk.shape) for each in given]
            chunk.context.memory.store(place, kind.size, values, mine, report)
        return []

    operands = [(each, kind) for each in data]
    return step_of(instruction, *((operands, [], load) if loads else ([], operands, store)), wider=True)
