"""Handles and changes of tensor maps: ``tensormap.replace`` and ``tensormap.cp_fenceproxy`` (PTX ISA).

The bytes of a map contain a handle, so a copy of the bytes is the same map. A change creates a new handle. Accesses to
the bytes are not counted: it is unknown how a GPU makes them.
"""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, spread
from ...machine.argument_layout import FIRST_HANDLE
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Instruction
from ...util.errors import LaunchError
from ..opcode_registry import Step, binds
from ..operands import (
    choose_modifier,
    expect_count,
    expect_modifiers,
    make_address_reader,
    make_reader,
    parse_integer,
    unsupported,
)
from ..spaces import SPACES, find_space, make_resolver
from .map_fields import SWIZZLES, MapFields
from .tensor_maps import EncodedMap

#: Element types, by the value of the field ``elemtype``. For bfloat16, only the size matters.
_ELEMENTS = [np.dtype(name) for name in ["u1", "u2", "u4", "i4", "u8", "i8", "f2", "f4", "f4", "f8", "V2", "f4", "f4"]]
#: Field of the instruction -> field of a map, and the field's values in the order of their codes.
_CHOICES: dict[str, tuple[str, list[Any]]] = {
    "elemtype": ("dtype", _ELEMENTS), "interleave_layout": ("interleave", [0, 16, 32]),
    "swizzle_mode": ("swizzle", [*SWIZZLES]), "fill_mode": ("fills_nan", [False, True]),
}  # fmt: skip
#: Field of the instruction with an ordinal -> the field of a map.
_AXES = {"box_dim": "box", "global_dim": "extents", "global_stride": "pitches", "element_stride": "steps"}
_FIELDS = {*_CHOICES, *_AXES, "global_address", "rank"}
_COPY = "cp_fenceproxy.global.shared::cta.tensormap::generic.release.(cta|cluster|gpu|sys).sync.aligned"


def find_fields(chunk: Chunk, handle: int) -> MapFields:
    """Return the fields of the map with a handle; raise `LaunchError` for an unknown handle."""
    changed: MapFields | None = chunk.context.maps.get(handle)
    if changed is not None:
        return changed
    bound = chunk.context.descriptors.get(handle)
    if bound is None or not isinstance(bound.descriptor, EncodedMap):
        text = f"the operand {handle:#x} is not a tensor map; pass a ptxcount.TensorMap or ptxcount.Im2colMap"
        raise LaunchError(f"{chunk.instruction.source}: {text}")
    return bound.descriptor.make_fields(bound.base)


def make_handle(chunk: Chunk, fields: MapFields) -> int:
    """Return the handle of a changed map; maps with equal fields share one."""
    context = chunk.context
    if fields not in context.map_handles:
        handle = FIRST_HANDLE + len(context.descriptors) + len(context.maps)
        context.maps[handle], context.map_handles[fields] = fields, handle
    return context.map_handles[fields]


def _change_field(fields: MapFields, name: str, axis: int, value: int) -> MapFields:
    """Return the fields with ``name`` of PTX replaced, at the ordinal ``axis``; raise ValueError if it cannot be."""
    if fields.column:
        raise ValueError("the tensor map is for im2col mode; pass a ptxcount.TensorMap to tensormap.replace")
    changes: dict[str, Any]
    if name == "global_address":
        changes = {"address": value}
    elif name == "rank":
        if value > 4:
            raise ValueError(f"rank is {value}; allowed are 0 to 4, the number of dimensions minus 1")
        sizes = {attribute: value if attribute == "pitches" else value + 1 for attribute in _AXES.values()}
        padded = {attribute: (*getattr(fields, attribute), *(0,) * 5) for attribute in sizes}  # new axes have zeros
        changes = {attribute: padded[attribute][:size] for attribute, size in sizes.items()}
    elif name in _CHOICES:
        attribute, choices = _CHOICES[name]
        if value >= len(choices):
            raise ValueError(f"{name} is {value}; allowed are 0 to {len(choices) - 1}")
        changes = {attribute: choices[value]}
    else:
        numbers = [*getattr(fields, _AXES[name])]
        if axis >= len(numbers):
            raise ValueError(f"{name} has the ordinal {axis}; allowed are 0 to {len(numbers) - 1} for this tensor")
        numbers[axis] = value
        changes = {_AXES[name]: (*numbers,)}
    return replace(fields, **changes)


@binds("tensormap", having={"replace"})
def _bind_replacement(instruction: Instruction) -> Step:
    """Bind ``tensormap.replace.tile.field{.ss}.b1024.type [addr]{, ord}, value``."""
    known = {"replace", "tile", *_FIELDS, *SPACES, "b1024", "b32", "b64"}
    expect_modifiers(instruction, instruction.modifiers, known, {"tile"})
    name = choose_modifier(instruction, sorted(_FIELDS))
    expect_count(instruction, 3 if name in _AXES else 2)
    axis = parse_integer(instruction, instruction.operands[1], "the ordinal") if name in _AXES else 0
    kind = TYPES["b64" if name in ("global_address", "global_stride") else "b32"]
    read = make_reader(instruction, instruction.operands[-1], kind)
    space = find_space(instruction)
    resolve = make_resolver(space, make_address_reader(instruction, instruction.operands[0], space))
    instruction.units.add(8)

    def step(chunk: Chunk) -> None:
        report = chunk.make_reporter()
        where, place = resolve(chunk)
        places, values = (spread(dense(value), chunk.shape) for value in (place, read(chunk)))
        active = spread(chunk.active, chunk.shape)
        for row, thread in zip(*np.nonzero(active), strict=True):
            mask = np.zeros(chunk.shape, bool)
            mask[row, thread] = True
            (handles,) = chunk.find_memory(where).load(places, 8, 1, mask, report)
            handle = int(handles[row, thread])
            fields = find_fields(chunk, handle) if handle else MapFields()  # zeros are a map of one dimension
            try:
                changed = _change_field(fields, name, axis, int(values[row, thread]))
            except ValueError as error:
                raise LaunchError(f"{instruction.source}: {error}") from None
            stored = np.full(chunk.shape, make_handle(chunk, changed), np.uint64)
            chunk.find_memory(where).store(places, 8, [stored], mask, report)

    return step


@binds("tensormap", having={"cp_fenceproxy"})
def _bind_copy(instruction: Instruction) -> Step:
    """Bind ``tensormap.cp_fenceproxy.global.shared::cta...sync.aligned [to], [from], 128``, executed once per warp."""
    if not re.fullmatch(_COPY.replace(".", r"\."), ".".join(instruction.modifiers)):
        raise unsupported(instruction, f"only the form tensormap.{_COPY} exists")
    expect_count(instruction, 3)
    read_target = make_address_reader(instruction, instruction.operands[0], None)
    read_source = make_address_reader(instruction, instruction.operands[1], "shared")
    instruction.units.add(8)

    def step(chunk: Chunk) -> None:
        report = chunk.make_reporter()
        targets, sources = dense(read_target(chunk)), dense(read_source(chunk))
        mask = spread(chunk.active, chunk.shape) & (np.arange(chunk.shape[1]) % LANES == 0)
        for offset in range(0, 128, 8):
            (values,) = chunk.shared.load(sources + sources.dtype.type(offset), 8, 1, mask, report)
            chunk.find_memory("global").store(targets + targets.dtype.type(offset), 8, [values], mask, report)

    return step
