"""Fetches from textures, and loads and stores of surfaces (PTX ISA, "Texture Instructions", "Surface Instructions")."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...counting.counters import Access
from ...counting.transactions import count_sectors
from ...lanes.warps import Array, by_warp, lanes_by_warp, spread
from ...machine.chunk import ALL_THREADS, Chunk
from ...ptx.program import TYPES, Address, Group, Instruction, Operand
from ...util.errors import LaunchError, OutOfBoundsError
from ...util.grammar import count_noun
from ..opcode_registry import Step, binds, make_step
from ..operands import (
    as_array,
    expect_count,
    make_address_reader,
    make_count_error,
    make_reader,
    split_group,
    split_name,
    split_vector,
    unsupported,
)
from . import GEOMETRIES, Surface, Tap, Texture

_U32, _S32, _U64 = TYPES["u32"], TYPES["s32"], TYPES["u64"]


def _split_handle(instruction: Instruction, operand: Operand, count: int) -> tuple[Address, tuple[Operand, ...]]:
    """Return the handle and the first ``count`` coordinates of ``[handle, {x, y}]``; PTX pads these to 1, 2 or 4."""
    if not isinstance(operand, Group) or len(operand.items) != 2 or not isinstance(operand.items[0], Address):
        raise unsupported(instruction, "it needs a texture or a surface, and coordinates")
    coordinates = split_group(operand.items[1])
    if len(coordinates) < count:
        raise make_count_error(instruction, "it", len(coordinates), "coordinate", count)
    return operand.items[0], coordinates[:count]


def _iter_bound(chunk: Chunk, handles: Array, kind: type[Surface], geometry: str) -> Iterator[tuple[Any, int, Array]]:
    """Yield each texture or surface that active threads use, its address, and the mask of the threads that use it."""
    rows, active = spread(handles, chunk.shape), spread(chunk.active, chunk.shape)
    object_name, instruction = kind.__name__.lower(), chunk.instruction
    for handle in np.unique(rows[active]).tolist():
        mask = active & (rows == handle)
        bound = chunk.context.descriptors.get(handle)
        if bound is None or type(bound.descriptor) is not kind:
            raise LaunchError(
                f"{instruction.source}: {handle:#x} is not a {object_name}; pass a ptxcount.{kind.__name__} as argument"
            )
        if not bound.descriptor.fits(geometry):
            raise LaunchError(
                f"{instruction.source}: {instruction.name} does not match a {object_name} of shape "
                f"{bound.descriptor.extents}; pass an array with as many dimensions and layers as it reads"
            )
        yield bound.descriptor, bound.base, mask


class _LaneGroup(NamedTuple):
    """Lanes per request, lanes whose sectors are counted together, and a factor of sectors (measured on an H200)."""

    requesting: int
    served: int
    repeats: int = 1


_OCTET = _LaneGroup(8, 8)
_QUAD = _LaneGroup(4, 4)


def _select_lane_group(texture: Texture, taps: int, *, gather: bool) -> _LaneGroup:
    """Select the lane group of a fetch with float coordinates, by the number ``taps`` and the size of elements."""
    is_large = texture.element == 16 and taps > 1 and not gather
    return _LaneGroup(4, 2, 1 + is_large) if taps == 8 or is_large else _QUAD


def _record_requests(
    chunk: Chunk, access: Access, lanes: _LaneGroup, mask: Array, places: list[Array], read_masks: Sequence[Array] = ()
) -> None:
    """Add the requests, sectors and bytes of one instruction to ``access``, for the threads in ``mask``.

    Each group of ``lanes.requesting`` lanes is one request if a lane is active. ``places`` are the offsets in GPU
    memory, an array for each element of a fetch. ``read_masks`` are the masks of the threads that read these elements;
    by default, all threads do. The counters are
    ``l1tex__t_requests_pipe_tex`` and ``l1tex__t_sectors_pipe_tex`` of Nsight Compute.
    """
    threads = chunk.shape[1]
    masks = [mask & read_mask for read_mask in read_masks or [mask] * len(places)]
    group_masks = [lanes_by_warp(read, threads).reshape(-1, lanes.served) for read in masks]
    group_places = [by_warp(spread(place, chunk.shape), threads).reshape(-1, lanes.served) for place in places]
    is_read = np.concatenate(group_masks, axis=1)
    is_used = is_read.any(axis=1)  # a row for each group
    sectors = count_sectors(np.concatenate(group_places, axis=1)[is_used], is_read[is_used], access.width)
    lane_masks = lanes_by_warp(mask, threads)
    requests = int(lane_masks.reshape(-1, lanes.requesting).any(axis=1).sum())
    access.add_untraced(requests, lanes.repeats * int(sectors.sum()), int(lane_masks.sum()) * access.width)


@binds("tex", "tld4")
def _bind_fetch(instruction: Instruction) -> Step:
    """Bind ``tex{.level,.grad}.geometry.v4.dtype.ctype d, [t, c]{, level}`` and ``tld4.{r,g,b,a}.2d.v4.dtype.f32``.

    Textures have one level here, so a fetch from any level reads the first.
    """
    names, kinds = split_name(instruction)
    gather = instruction.opcode == "tld4"
    channels = ["rgba".index(name) for name in names if gather and name in ("r", "g", "b", "a")]
    geometry = next((name for name in names if name in GEOMETRIES), "")
    allowed = {geometry, "v4", *("rgba" if gather else ("level", "grad", "base"))}
    if not geometry:
        raise unsupported(instruction, f"it has none of the supported geometries, {', '.join(GEOMETRIES)}")
    if unknown_names := [name for name in names if name not in allowed]:
        raise unsupported(instruction, f"it has unsupported modifiers, .{', .'.join(unknown_names)}")
    if [kind.size for kind in kinds] != [4, 4]:
        raise unsupported(instruction, "texels and coordinates must have 32 bits each")
    if gather and (geometry != "2d" or len(channels) != 1):
        raise unsupported(instruction, "it must have the geometry 2d, and one channel, .r, .g, .b or .a")
    expect_count(instruction, 2, 3, 4)
    result_type, coordinate_type = kinds
    count, layered = GEOMETRIES[geometry]
    handle, coordinates = _split_handle(instruction, instruction.operands[1], count + layered)
    targets = split_vector(instruction, instruction.operands[0], 4)
    types = [*[_U32] * layered, *[coordinate_type] * count]
    reads = list(zip(coordinates, types, strict=True))
    read_handle = make_address_reader(instruction, handle, None)
    by_integers = coordinate_type.kind != "f"

    def fetch(chunk: Chunk, *arguments: Array) -> list[Array]:
        layer, *places = arguments if layered else (None, *arguments)
        results = [np.zeros(chunk.shape, np.uint32) for _ in range(4)]
        handles = as_array(read_handle(chunk), _U64)
        for texture, base, mask in _iter_bound(chunk, handles, Texture, geometry):
            taps = texture.find_taps(places, layer, gather=gather)
            texels = [_load_texel(chunk, base, texture, tap, mask) for tap in taps]
            offsets = [texture.find_offset(tap.place * texture.element, layered=layered) for tap in taps]
            access = chunk.find_counters("texture", "load", texture.element)
            if by_integers:  # no request out of bounds
                _record_requests(chunk, access, _OCTET, mask & taps[0].inside, offsets)
            else:
                lanes = _select_lane_group(texture, len(taps), gather=gather)
                _record_requests(chunk, access, lanes, mask, offsets, [tap.read for tap in taps])
            if gather:
                values = [texel[min(channels[0], len(texel) - 1)] for texel in texels]
            elif len(taps) == 1:
                values = texels[0]
            else:
                values = [
                    sum(tap.weight * part for tap, part in zip(taps, parts, strict=True)).astype(np.float32)
                    for parts in zip(*texels, strict=True)
                ]
            # Missing channels are 0, except for alpha.
            missing = [np.zeros_like(values[0])] * 2 + [np.ones_like(values[0])]
            for result, value in zip(results, [*values, *missing[len(values) - 1 :]], strict=True):
                result[mask] = value[mask].view(np.uint32)
        return results

    return make_step(instruction, [(target, result_type) for target in targets], reads, fetch)


def _load_texel(chunk: Chunk, base: int, texture: Texture, tap: Tap, mask: Array) -> list[Array]:
    """Load the channels of a texel for each thread in ``mask``, one array per channel; zeros out of bounds."""
    report, inside = chunk.make_reporter(), mask & tap.inside
    inside = ALL_THREADS if inside.all() else inside
    place = spread(np.asarray(base + tap.place * texture.element), chunk.shape)
    channels = chunk.context.memory.load(place, texture.array.dtype.itemsize, texture.channels, inside, report)
    return [np.where(inside, texture.decode_texels(spread(channel, chunk.shape)), 0) for channel in channels]


@binds("suld", "sust")
def _bind_surface(instruction: Instruction) -> Step:
    """Bind ``suld.b.geometry{.vec}.type.clamp d, [s, c]`` and ``sust.b`` (``[s, c], d``); x is in bytes."""
    names, kinds = split_name(instruction)
    loads = instruction.opcode == "suld"
    geometry = next((name for name in names if name in GEOMETRIES), "")
    vector = next((int(name[1]) for name in names if name in ("v2", "v4")), 1)
    clamp_modes = [name for name in names if name in ("trap", "clamp", "zero")]
    unknown = {*names} - {"b", geometry, f"v{vector}", *clamp_modes}
    if not geometry or unknown or len(clamp_modes) > 1 or "b" not in names or len(kinds) != 1 or kinds[0].kind != "b":
        raise unsupported(instruction)
    (kind,), (count, layered) = kinds, GEOMETRIES[geometry]
    expect_count(instruction, 2)
    handle, coordinates = _split_handle(instruction, instruction.operands[loads], count + layered)
    data = split_vector(instruction, instruction.operands[not loads], vector)
    read_handle = make_address_reader(instruction, handle, None)
    reads = [make_reader(instruction, coordinate, _S32) for coordinate in coordinates]
    width = kind.size * vector

    def iter_accesses(chunk: Chunk) -> Iterator[tuple[Array, Array, Surface]]:
        """Count the accesses to each surface; yield the byte addresses, the mask of threads, and the surface."""
        arguments = [as_array(read(chunk), _S32).astype(np.int64) for read in reads]
        layer, *places = arguments if layered else (np.zeros((1, 1), np.int64), *arguments)
        handles = as_array(read_handle(chunk), _U64)
        for surface, base, mask in _iter_bound(chunk, handles, Surface, geometry):
            pitch = surface.extents[-1] * surface.element
            limits = [pitch - width, *(extent - 1 for extent in surface.extents[::-1][1:])]
            axes = [*places, layer][: len(limits)]
            outside = np.zeros((1, 1), bool)
            for axis, limit in zip(axes, limits, strict=True):
                outside = outside | (axis < 0) | (axis > limit)
            faulting = mask & outside
            if faulting.any() and (clamp_modes or ["trap"]) == ["trap"]:
                first = tuple(int(indices[0]) for indices in np.nonzero(faulting))
                position = [int(spread(axis, chunk.shape)[first]) for axis in axes]
                text = f"{count_noun(width, 'byte')} at [x in bytes, y, ...] = {position}"
                text += f" of a surface of shape {surface.extents}, with {count_noun(pitch, 'byte')} per row"
                raise chunk.make_fault(OutOfBoundsError, text, position=(first[0], first[1]))
            axes = [np.clip(axis, 0, limit) for axis, limit in zip(axes, limits, strict=True)]
            row = np.zeros((1, 1), np.int64)
            for axis, extent in reversed(list(zip(axes[1:], surface.extents[::-1][1:], strict=True))):
                row = row * extent + axis
            byte = row * pitch + axes[0]
            access = chunk.find_counters("surface", "load" if loads else "store", width)
            _record_requests(chunk, access, _OCTET, mask, [surface.find_offset(byte, layered=layered)])
            yield spread(base + byte, chunk.shape), mask & ~outside if clamp_modes == ["zero"] else mask, surface

    def load(chunk: Chunk) -> list[Array]:
        results = [np.zeros(chunk.shape, kind.dtype) for _ in data]
        for place, mask, _ in iter_accesses(chunk):
            report = chunk.make_reporter()
            loaded = chunk.context.memory.load(place, kind.size, vector, mask, report)
            for result, value in zip(results, loaded, strict=True):
                result[mask] = spread(value, chunk.shape)[mask]
        return results

    def store(chunk: Chunk, *arguments: Array) -> list[Array]:
        for place, mask, _ in iter_accesses(chunk):
            report = chunk.make_reporter()
            values = [spread(argument, chunk.shape) for argument in arguments]
            chunk.context.memory.store(place, kind.size, values, mask, report)
        return []

    operands = [(element, kind) for element in data]
    if loads:
        return make_step(instruction, operands, [], load, wider=True)
    return make_step(instruction, [], operands, store, wider=True)
