"""Changes of tensor maps by a kernel: ``tensormap.replace`` and ``tensormap.cp_fenceproxy`` (PTX ISA).

The bytes of a map hold a handle, so that it stays a map where a kernel copies it. A change makes another handle. The
chip's accesses to the bytes of a map are not known, so none are counted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, Array, spread
from ...machine.argument_layout import FIRST_HANDLE
from ...machine.chunk import Chunk
from ...machine.global_memory import Report
from ...ptx.program import TYPES, Immediate, Instruction
from ...util.errors import LaunchError
from ..operands import Reader, address, expect_count, reader, unsupported
from ..registry import Step, binds
from ..spaces import find_space, make_resolver
from .map_fields import SWIZZLES, MapFields
from .tensor_maps import is_map

#: Element types by the numbers of the field ``elemtype``. Of bfloat16 only the size matters here.
_ELEMENTS = [np.dtype(name) for name in ["u1", "u2", "u4", "i4", "u8", "i8", "f2", "f4", "f4", "f8", "V2", "f4", "f4"]]
#: Field of the instruction -> the field of a map, and values by their numbers.
_CHOICES: dict[str, tuple[str, list[Any]]] = {
    "elemtype": ("dtype", _ELEMENTS), "interleave_layout": ("interleave", [0, 16, 32]),
    "swizzle_mode": ("swizzle", [*SWIZZLES]), "fill_mode": ("fills_nan", [False, True]),
}  # fmt: skip
#: Field of the instruction with an ordinal -> the field of a map.
_AXES = {"box_dim": "box", "global_dim": "extents", "global_stride": "pitches", "element_stride": "steps"}
_FIELDS = {*_CHOICES, *_AXES, "global_address", "rank"}
_COPY = r"cp_fenceproxy\.global\.shared::cta\.tensormap::generic\.release\.(cta|cluster|gpu|sys)\.sync\.aligned"


def load_handles(chunk: Chunk, space: str, place: Array, mask: Array, report: Report) -> Array:
    """Return the handles that lie at addresses of a state space."""
    (handles,) = chunk.memory(space).load(place, 8, 1, mask, report)
    return np.asarray(handles)


def find_fields(chunk: Chunk, handle: int) -> MapFields:
    """Return the fields of the map of a handle. Raises LaunchError if it is none."""
    bound = chunk.context.descriptors.get(handle)
    if isinstance(bound, MapFields):
        return bound
    if bound is None or not is_map(bound.descriptor):
        text = "no tensor map lies there; give one with ptxcount.TensorMap or ptxcount.Im2colMap"
        raise LaunchError(f"{chunk.instruction.source}: {text}")
    fields: MapFields = bound.descriptor.make_fields(bound.base)
    return fields


def _make_handle(chunk: Chunk, fields: MapFields) -> int:
    context = chunk.context
    if fields not in context.map_handles:
        handle = FIRST_HANDLE + len(context.descriptors)
        context.descriptors[handle], context.map_handles[fields] = fields, handle
    return context.map_handles[fields]


def _change_field(fields: MapFields, name: str, axis: int, value: int) -> MapFields:
    """Return the fields with one replaced. Raises ValueError, which says why it cannot be."""
    if fields.column:
        raise ValueError("a map of im2col cannot be changed")
    if name == "global_address":
        return replace(fields, address=value)
    if name == "rank":
        if value > 4:
            raise ValueError(f"rank {value}, one less than the dimensions: 0 to 4 are allowed")
        sizes = {attribute: value + (attribute != "pitches") for attribute in _AXES.values()}
        parts: dict[str, Any] = {
            attribute: (*getattr(fields, attribute), *(0,) * 5)[:size] for attribute, size in sizes.items()
        }
        return replace(fields, **parts)
    if name in _CHOICES:
        attribute, choices = _CHOICES[name]
        if value >= len(choices):
            raise ValueError(f"{name} {value}: 0 to {len(choices) - 1} are supported")
        choice: dict[str, Any] = {attribute: choices[value]}
        return replace(fields, **choice)
    numbers = [*getattr(fields, _AXES[name])]
    if axis >= len(numbers):
        raise ValueError(f"{name} {axis} of a tensor of {len(fields.extents)} dimensions")
    numbers[axis] = value
    part: dict[str, Any] = {_AXES[name]: (*numbers,)}
    return replace(fields, **part)


@binds("tensormap")
def _bind_replacement(instruction: Instruction) -> Step | None:
    """``tensormap.replace.tile.field{.ss}.b1024.type [addr]{, ord}, value``."""
    names = [name for name in instruction.modifiers if name in _FIELDS]
    if "replace" not in instruction.modifiers or "tile" not in instruction.modifiers or len(names) != 1:
        return None
    name = names[0]
    expect_count(instruction, 3 if name in _AXES else 2)
    axis = instruction.operands[1] if name in _AXES else Immediate(0)
    if not isinstance(axis, Immediate):
        raise unsupported(instruction, "the ordinal is a number")
    kind = TYPES["b64" if name in ("global_address", "global_stride") else "b32"]
    read = reader(instruction, instruction.operands[-1], kind)
    resolve = _make_resolver(instruction, 0)
    instruction.units.add(8)

    def step(chunk: Chunk) -> None:
        report = chunk.make_reporter()
        space, place = resolve(chunk)
        places, values = (spread(dense(value), chunk.shape) for value in (place, read(chunk)))
        active = spread(chunk.active, chunk.shape)
        for row, thread in zip(*np.nonzero(active), strict=True):
            mask = np.zeros(chunk.shape, bool)
            mask[row, thread] = True
            handle = int(load_handles(chunk, space, places, mask, report)[row, thread])
            fields = find_fields(chunk, handle) if handle else MapFields()  # zeros are a map of one dimension
            try:
                changed = _change_field(fields, name, int(axis.value), int(values[row, thread]))
            except ValueError as error:
                raise LaunchError(f"{instruction.source}: {error}") from None
            stored = np.full(chunk.shape, _make_handle(chunk, changed), np.uint64)
            chunk.memory(space).store(places, 8, [stored], mask, report)

    return step


@binds("tensormap")
def _bind_copy(instruction: Instruction) -> Step | None:
    """``tensormap.cp_fenceproxy.global.shared::cta...sync.aligned [to], [from], 128``: once for each warp."""
    if not re.fullmatch(_COPY, ".".join(instruction.modifiers)):
        return None
    expect_count(instruction, 3)
    to, source = (address(instruction, operand, space) for operand, space in zip(
        instruction.operands[:2], (None, "shared"), strict=True))  # fmt: skip
    instruction.units.add(8)

    def step(chunk: Chunk) -> None:
        report = chunk.make_reporter()
        targets, sources = (dense(read(chunk)) for read in (to, source))
        mask = spread(chunk.active, chunk.shape) & (np.arange(chunk.shape[1]) % LANES == 0)
        for offset in range(0, 128, 8):
            (values,) = chunk.shared.load(sources + sources.dtype.type(offset), 8, 1, mask, report)
            chunk.memory("global").store(targets + targets.dtype.type(offset), 8, [values], mask, report)

    return step


def _make_resolver(instruction: Instruction, operand: int) -> Any:
    """Make a function that returns the state space of a map, and the addresses within it."""
    space = find_space(instruction)
    read: Reader = address(instruction, instruction.operands[operand], space)
    return make_resolver(space, read)
