"""Fetches from textures, and loads and stores of surfaces (PTX ISA, "Texture Instructions", "Surface Instructions")."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...counting.counters import Access
from ...counting.transactions import count_sectors
from ...lanes.warps import ALL_THREADS, Array, by_warp, find_first, lanes_by_warp, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Address, Group, Instruction, Operand, Type, format_operand
from ...util.errors import LaunchError, OutOfBoundsError
from ...util.grammar import count_noun
from ..opcode_registry import Step, binds, make_step
from ..operands import (
    Reader,
    as_array,
    choose_modifier,
    expect_count,
    expect_modifiers,
    find_modifier,
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
#: Elements per surface access, and modes of surface accesses out of bounds.
_VECTORS, _CLAMP_MODES = {"v2": 2, "v4": 4}, ("trap", "clamp", "zero")


def _split_handle(instruction: Instruction, operand: Operand, count: int) -> tuple[Address, tuple[Operand, ...]]:
    """Return the handle and the first ``count`` coordinates of ``[handle, {x, y}]``; PTX pads these to 1, 2 or 4."""
    if not isinstance(operand, Group) or len(operand.items) != 2 or not isinstance(operand.items[0], Address):
        raise unsupported(instruction, f"an operand is {format_operand(operand)}; it must be [handle, {{coordinates}}]")
    coordinates = split_group(operand.items[1])
    if len(coordinates) < count:
        raise make_count_error(instruction, "it", len(coordinates), "coordinate", count)
    return operand.items[0], coordinates[:count]


def _iter_bound(chunk: Chunk, handles: Array, kind: type[Surface], geometry: str) -> Iterator[tuple[Any, int, Array]]:
    """Yield each texture or surface that active threads use, its address, and the mask of the threads that use it."""
    rows, active = spread(handles, chunk.shape), spread(chunk.active, chunk.shape)
    object_name, instruction = kind.__name__.lower(), chunk.instruction
    count, layered = GEOMETRIES[geometry]
    needed = f"{count_noun(count, 'dimension')}{' and layers' if layered else ''}"
    for handle in np.unique(rows[active]).tolist():
        mask = active & (rows == handle)
        bound = chunk.context.descriptors.get(handle)
        if bound is None or type(bound.descriptor) is not kind:
            remedy = f"pass a ptxcount.{kind.__name__} ({object_name}: on the command line)"
            raise LaunchError(f"{instruction.source}: the operand {handle:#x} is not a {object_name}; {remedy}")
        if len(bound.descriptor.extents) != count + (1 if layered else 0):
            problem = f"the {object_name} has the shape {bound.descriptor.extents}; {instruction.name} needs {needed}"
            raise LaunchError(f"{instruction.source}: {problem}")
        yield bound.descriptor, bound.base, mask


class _LaneGroup(NamedTuple):
    """Lanes that the texture unit serves together (measured on an H200)."""

    #: Lanes per request.
    requesting: int
    #: Lanes whose sectors are counted together.
    served: int
    #: Times that each sector counts.
    repeats: int = 1


_OCTET = _LaneGroup(8, 8)
_QUAD = _LaneGroup(4, 4)


def _select_lane_group(texture: Texture, taps: int, *, gather: bool) -> _LaneGroup:
    """Select the lane group of a fetch with float coordinates, by taps and element size; for ``gather``, by taps."""
    if texture.element == 16 and taps > 1 and not gather:
        return _LaneGroup(4, 2, repeats=2)
    return _LaneGroup(4, 2) if taps == 8 else _QUAD


def _record_requests(
    chunk: Chunk, access: Access, lanes: _LaneGroup, mask: Array, places: list[Array], read_masks: Sequence[Array] = ()
) -> None:
    """Add the requests, sectors and bytes of one instruction to ``access``, for the threads in ``mask``.

    Each group of ``lanes.requesting`` lanes is one request if a lane is active. ``places`` has an array of offsets in
    GPU memory for each element of a fetch, and ``read_masks`` the mask of the threads that read the element; by default
    all threads. Requests and sectors are ``l1tex__t_requests_pipe_tex`` and ``l1tex__t_sectors_pipe_tex`` of Nsight
    Compute.
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
    """Bind ``tex{.base,.level,.grad}.geometry.v4.dtype.ctype d, [t, c]{, level}`` and ``tld4.channel.2d.v4.dtype.f32``.

    Textures have one level here, so a fetch from any level reads the first.
    """
    gather = instruction.opcode == "tld4"
    geometry = choose_modifier(instruction, GEOMETRIES)
    names, (result_type, coordinate_type) = split_name(instruction, 2)
    expect_modifiers(instruction, names, {"v4", "2d", *"rgba"} if gather else {"v4", geometry, "level", "grad", "base"})
    if (result_type.size, coordinate_type.size) != (4, 4):
        given = f".{result_type.name}, .{coordinate_type.name}"
        raise unsupported(instruction, f"its types are {given}; texels and coordinates need 32 bits each")
    channel = "rgba".index(choose_modifier(instruction, [*"rgba"])) if gather else None
    expect_count(instruction, 2, 3, 4)
    count, layered = GEOMETRIES[geometry]
    handle, coordinates = _split_handle(instruction, instruction.operands[1], count + (1 if layered else 0))
    targets = split_vector(instruction, instruction.operands[0], 4)
    types = [*([_U32] if layered else []), *[coordinate_type] * count]
    fetch = _Fetch(make_address_reader(instruction, handle, None), geometry, channel)
    writes = [(target, result_type) for target in targets]
    return make_step(instruction, writes, list(zip(coordinates, types, strict=True)), fetch.load)


@dataclass(frozen=True)
class _Fetch:
    """A fetch from textures: ``tex``, or ``tld4``, which gathers one channel of four texels."""

    read_handle: Reader
    geometry: str
    #: Channel of ``tld4``; None for ``tex``.
    channel: int | None

    def load(self, chunk: Chunk, *arguments: Array) -> list[Array]:
        """Load four values per thread, as u32. ``arguments`` are x, y and z; a layer comes before them."""
        layered = GEOMETRIES[self.geometry][1]
        layer, coordinates = (arguments[0], arguments[1:]) if layered else (None, arguments)
        results = [np.zeros(chunk.shape, np.uint32) for _ in range(4)]
        handles = as_array(self.read_handle(chunk), _U64)
        for texture, base, mask in _iter_bound(chunk, handles, Texture, self.geometry):
            taps = texture.find_taps(coordinates, layer, gather=self.channel is not None)
            texels = [_load_texel(chunk, base, texture, tap, mask) for tap in taps]
            by_integers = coordinates[0].dtype.kind != "f"
            self._count_requests(chunk, texture, taps, mask, by_integers=by_integers)
            for result, value in zip(results, self._combine_texels(taps, texels), strict=True):
                result[mask] = value[mask].view(np.uint32)
        return results

    def _count_requests(
        self, chunk: Chunk, texture: Texture, taps: list[Tap], mask: Array, *, by_integers: bool
    ) -> None:
        layered = GEOMETRIES[self.geometry][1]
        offsets = [texture.find_offset(tap.place * texture.element, layered=layered) for tap in taps]
        access = chunk.find_counters("texture", "load", texture.element)
        if by_integers:  # no request out of bounds
            _record_requests(chunk, access, _OCTET, mask & taps[0].inside, offsets)
        else:
            lanes = _select_lane_group(texture, len(taps), gather=self.channel is not None)
            _record_requests(chunk, access, lanes, mask, offsets, [tap.read for tap in taps])

    def _combine_texels(self, taps: list[Tap], texels: list[list[Array]]) -> list[Array]:
        """Return the four values of a fetch, from the channels of the texel of each tap."""
        if self.channel is not None:
            values = [texel[min(self.channel, len(texel) - 1)] for texel in texels]
        elif len(taps) == 1:
            values = texels[0]
        else:
            values = [
                sum(tap.weight * part for tap, part in zip(taps, parts, strict=True)).astype(np.float32)
                for parts in zip(*texels, strict=True)
            ]
        # Missing channels are 0, except for alpha, which is 1.
        missing = [np.zeros_like(values[0])] * 2 + [np.ones_like(values[0])]
        return [*values, *missing[len(values) - 1 :]]


def _load_texel(chunk: Chunk, base: int, texture: Texture, tap: Tap, mask: Array) -> list[Array]:
    """Load one array per channel of the texel of each thread in ``mask``; zeros outside of `Tap.inside`."""
    report, inside = chunk.make_reporter(), mask & tap.inside
    inside = ALL_THREADS if inside.all() else inside
    place = spread(np.asarray(base + tap.place * texture.element), chunk.shape)
    channels = chunk.context.memory.load(place, texture.array.dtype.itemsize, texture.channels, inside, report)
    return [np.where(inside, texture.decode_texels(spread(channel, chunk.shape)), 0) for channel in channels]


@binds("suld", "sust")
def _bind_surface(instruction: Instruction) -> Step:
    """Bind ``suld.b.geometry{.vec}.type.clamp d, [s, c]`` and ``sust.b`` (``[s, c], d``); x is in bytes."""
    names, (kind,) = split_name(instruction, 1)
    loads, geometry = instruction.opcode == "suld", choose_modifier(instruction, GEOMETRIES)
    vector, clamp_mode = (find_modifier(instruction, allowed) for allowed in (_VECTORS, _CLAMP_MODES))
    expect_modifiers(instruction, names, {"b", geometry, *_VECTORS, *_CLAMP_MODES}, {"b"})
    if kind.kind != "b":
        raise unsupported(instruction, f"its type is .{kind.name}; allowed are .b8, .b16, .b32, .b64")
    count, layered = GEOMETRIES[geometry]
    expect_count(instruction, 2)
    registers, place = instruction.operands if loads else instruction.operands[::-1]
    handle, coordinates = _split_handle(instruction, place, count + (1 if layered else 0))
    element_count = _VECTORS[vector] if vector else 1
    access = _SurfaceAccess(
        "load" if loads else "store",
        geometry,
        kind,
        element_count,
        clamp_mode or "trap",
        make_address_reader(instruction, handle, None),
        [make_reader(instruction, coordinate, _S32) for coordinate in coordinates],
    )
    operands = [(element, kind) for element in split_vector(instruction, registers, element_count)]
    if loads:
        return make_step(instruction, operands, [], access.load, wider=True)
    return make_step(instruction, [], operands, access.store, wider=True)


@dataclass(frozen=True)
class _SurfaceAccess:
    """A load or store of surfaces, which takes x in bytes."""

    action: str
    geometry: str
    #: Type of an element, and elements per thread.
    kind: Type
    count: int
    #: Action out of bounds, one of `_CLAMP_MODES`.
    clamp_mode: str
    read_handle: Reader
    #: Readers of the layer, if the geometry has layers, then x, y, z.
    coordinate_readers: list[Reader]

    def load(self, chunk: Chunk) -> list[Array]:
        results = [np.zeros(chunk.shape, self.kind.dtype) for _ in range(self.count)]
        for address, mask in self._iter_accesses(chunk):
            report = chunk.make_reporter()
            loaded = chunk.context.memory.load(address, self.kind.size, self.count, mask, report)
            for result, value in zip(results, loaded, strict=True):
                result[mask] = spread(value, chunk.shape)[mask]
        return results

    def store(self, chunk: Chunk, *elements: Array) -> list[Array]:
        for address, mask in self._iter_accesses(chunk):
            values = [spread(element, chunk.shape) for element in elements]
            chunk.context.memory.store(address, self.kind.size, values, mask, chunk.make_reporter())
        return []

    def _iter_accesses(self, chunk: Chunk) -> Iterator[tuple[Array, Array]]:
        """Count the accesses to each surface; yield the addresses in memory, and the mask of the accessing threads."""
        layered, width = GEOMETRIES[self.geometry][1], self.kind.size * self.count
        axes = [as_array(read(chunk), _S32).astype(np.int64) for read in self.coordinate_readers]
        if layered:
            axes = [*axes[1:], axes[0]]  # x first, the layer last
        handles = as_array(self.read_handle(chunk), _U64)
        for surface, base, mask in _iter_bound(chunk, handles, Surface, self.geometry):
            lengths = [surface.extents[-1] * surface.element, *surface.extents[-2::-1]]
            limits = [lengths[0] - width, *(length - 1 for length in lengths[1:])]
            outside, offset, stride = np.zeros((1, 1), bool), np.zeros((1, 1), np.int64), 1
            for axis, limit, length in zip(axes, limits, lengths, strict=True):
                outside = outside | (axis < 0) | (axis > limit)
                offset = offset + np.clip(axis, 0, limit) * stride
                stride *= length
            if self.clamp_mode == "trap":
                self._check_bounds(chunk, surface, axes, mask & outside)
            access = chunk.find_counters("surface", self.action, width)
            _record_requests(chunk, access, _OCTET, mask, [surface.find_offset(offset, layered=layered)])
            accessing = mask & ~outside if self.clamp_mode == "zero" else mask
            yield spread(base + offset, chunk.shape), accessing

    def _check_bounds(self, chunk: Chunk, surface: Surface, axes: list[Array], faulting: Array) -> None:
        if not faulting.any():
            return
        row, thread = find_first(faulting)
        position = [int(spread(axis, chunk.shape)[row, thread]) for axis in axes]
        text = f"{count_noun(self.kind.size * self.count, 'byte')} at [x in bytes, y, ...] = {position}"
        pitch = surface.extents[-1] * surface.element
        text += f" of a surface of shape {surface.extents}, with {count_noun(pitch, 'byte')} per row"
        raise chunk.make_fault(OutOfBoundsError, text, position=(row, thread))
