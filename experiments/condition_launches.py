"""The conditions in ptxcount: arguments of launches, ptxcount's verdicts, and the bytes that the kernels copied."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.condition_cases import RUNS, Condition, MapRequest
from ptxcount import Im2colMap, TensorMap
from ptxcount.engine.execute import execute_kernel
from ptxcount.isa.hopper.map_fields import Column, MapFields
from ptxcount.util.errors import PtxError

SOURCE = Path(__file__).with_name("conditions.cu")
ARCH = "sm_90a"
#: Number of words of a tile. The word after the tile is 1 if all bytes have arrived.
WORDS = 4096
#: Maximum seconds of a launch.
LIMIT = 20.0


@dataclass(frozen=True, eq=False)
class RequestedMap(TensorMap):
    """An array with the parameters of its tensor map, without checks: the driver may refuse them."""

    request: MapRequest = field(default_factory=MapRequest)

    def __post_init__(self) -> None:
        """Skip the checks of `TensorMap`."""

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map, valid or not."""
        return make_fields(self.request, address)


def make_fields(request: MapRequest, address: int = 0) -> MapFields:
    """Return the fields of a requested map, valid or not, for an array at this address plus the request's offset."""
    dtype = np.dtype(request.dtype)
    extents = request.shape[::-1] if request.extents is None else request.extents
    pitches = [dtype.itemsize * int(np.prod(extents[:axis], dtype=object)) for axis in range(1, len(extents))]
    pitches = pitches if request.pitches is None else [*request.pitches]
    steps = request.steps or (1,) * len(extents)
    column = Column(*request.corners, request.channels, request.pixels) if request.corners is not None else None
    box, modes = request.box, (request.swizzle, request.interleave, bool(request.fill))
    return MapFields(address + request.offset, dtype, extents, (*pitches,), box, steps, *modes, column)


def make_arguments(condition: Condition) -> list[Any]:
    """Return the kernel's arguments. The elements of the array count up from 1."""
    request = condition.request or MapRequest()
    count = int(np.prod(request.shape))
    array = (np.arange(count) + 1).astype(request.dtype).reshape(request.shape)
    first = RequestedMap(array, request=request) if condition.request else array
    arguments = [first, np.zeros(WORDS + 34, np.uint32), np.array(condition.numbers, np.int32)]
    if condition.kernel == "replace_2d":
        arguments += [(np.arange(count + 64) + 100001).astype(request.dtype), np.zeros(16, np.uint64)]
    return arguments


def count_launch(condition: Condition, ptx: str) -> tuple[str, list[Any]]:
    """Return ptxcount's verdict on a condition, `RUNS` or the error, and the arrays after a launch that ran."""
    try:
        if not condition.kernel and condition.request:
            return make_fields(condition.request).find_problem() or RUNS, []
        arguments = make_arguments(condition)
        if condition.request:
            arguments[0] = describe_map(arguments[0].array, condition.request)
        if condition.kernel:
            grid, block = (1, 1, 1), (32, 1, 1)
            execute_kernel(ptx, condition.kernel, grid, block, arguments, unwritten="off", time_limit=LIMIT)
        first = arguments[0].array if condition.request else arguments[0]
    except PtxError as error:
        return f"{type(error).__name__}: {error}", []
    return RUNS, [arguments[1], first]


def describe_map(array: Any, request: MapRequest) -> TensorMap | Im2colMap:
    """Return the requested tensor map as ptxcount's `TensorMap` or `Im2colMap`."""
    options: dict[str, Any] = {
        "swizzle": request.swizzle,
        "steps": request.steps[::-1],
        "fills_nan": bool(request.fill),
    }
    if request.corners is None:
        return TensorMap(array, request.box[::-1], **options)
    lower, upper = (corner[::-1] for corner in request.corners)
    return Im2colMap(array, lower, upper, request.channels, request.pixels, **options)


def list_bytes(arrays: Sequence[Any]) -> list[Any]:
    """Return the tile with the word after it, and the array, as bytes. The replaced map is left out."""
    tile, array = (array.view(np.uint8).ravel() for array in arrays)
    return [tile[: 4 * WORDS + 4], array]


def digest_arrays(arrays: Sequence[Any]) -> str:
    """Return 12 hexadecimal digits of a hash of `list_bytes`; empty without arrays."""
    return hashlib.sha256(b"".join(part.tobytes() for part in list_bytes(arrays))).hexdigest()[:12] if arrays else ""
