"""Handles of tensor maps, which the bytes of a map contain, and the fields of each handle."""

from __future__ import annotations

import numpy as np

from ...lanes.warps import Array
from ...machine.argument_layout import FIRST_HANDLE
from ...machine.chunk import Chunk
from ...machine.global_memory import Report
from ...util.errors import LaunchError
from .map_fields import MapFields
from .tensor_maps import EncodedMap


def load_handles(chunk: Chunk, space: str, place: Array, mask: Array, report: Report) -> Array:
    """Load the handles at addresses of a state space."""
    (handles,) = chunk.memory(space).load(place, 8, 1, mask, report)
    return np.asarray(handles)


def find_fields(chunk: Chunk, handle: int) -> MapFields:
    """Return the fields of the map with a handle. Raises LaunchError for an unknown handle."""
    if handle in chunk.context.maps:
        changed: MapFields = chunk.context.maps[handle]
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
