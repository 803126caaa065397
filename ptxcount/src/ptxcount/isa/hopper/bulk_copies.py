"""Asynchronous copies and reductions: ``cp.async.bulk`` of bytes and of parts of tensors.

They complete immediately here (PTX ISA, "Data Movement: Non-tensor copies", "Tensor copies"). Lanes of a warp with
equal operands share one store. Each lane makes its own load, reduction or copy within shared memory. This was measured
on an H200, whose machine code loops over distinct operands, or over lanes. For global memory, copies and their sectors
are counted. Shared memory is not counted, because no load or store instruction accesses it.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, Array, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Address, Group, Instruction, Operand, format_operand
from ..atomic_operations import find_operation
from ..opcode_registry import Step, binds
from ..operands import (
    Reader,
    expect_count,
    join_modifiers,
    make_address_reader,
    make_array_reader,
    make_count_error,
    make_reader,
    split_group,
    unsupported,
)
from . import require_clusters
from .single_copy import OF_ROWS, BulkCopy

#: Type letters of PTX, by dtype kind.
_LETTERS = {"f": "f", "i": "s", "u": "u"}
_COMPLETION = "mbarrier::complete_tx::bytes"
_KNOWN = {"async", "bulk", "tensor", "tile", "im2col", "im2col_no_offs", "reduce", "bulk_group", _COMPLETION,
          "multicast::cluster", "cta_group::1", "cta_group::2", "noftz", "global", "shared::cta",
          "shared::cluster", *OF_ROWS}  # fmt: skip


def _make_operand_readers(instruction: Instruction, names: list[str], spaces: list[str]) -> dict[str, Reader]:
    """Return the readers of "to", "from", "size", "barrier" and "ranks", if the form has them.

    Coordinates are "coordinate 0" and so on, x first; offsets of ``im2col`` mode are "offset 0" and so on. ``names``
    are the modifiers, ``spaces`` the state spaces of the target and of the source.
    """
    readers: dict[str, Reader] = {}
    for side, space, operand in zip(("to", "from"), spaces, instruction.operands[:2], strict=True):
        address_operand: Operand = operand
        if "tensor" in names and space == "global":
            if not isinstance(operand, Group) or not isinstance(operand.items[0], Address):
                problem = f"{format_operand(operand)} must be [tensor map, {{coordinates}}]"
                raise unsupported(instruction, problem)
            address_operand = operand.items[0]
            for axis, coordinate in enumerate(split_group(operand.items[1])):  # may be negative
                readers[f"coordinate {axis}"] = make_array_reader(instruction, coordinate, TYPES["s32"])
        readers[side] = make_address_reader(instruction, address_operand, None if space == "global" else "shared")
    remaining = list(instruction.operands[2:])
    if "tensor" not in names:
        readers["size"] = make_reader(instruction, remaining.pop(0), TYPES["u32"])
    if _COMPLETION in names:
        readers["barrier"] = make_address_reader(instruction, remaining.pop(0), "shared")
    if "im2col" in names and remaining and isinstance(remaining[0], Group):
        for axis, offset in enumerate(split_group(remaining.pop(0))):
            readers[f"offset {axis}"] = make_reader(instruction, offset, TYPES["u16"])
    if "multicast::cluster" in names:
        readers["ranks"] = make_reader(instruction, remaining.pop(0), TYPES["u16"])
    return readers


def _check_form(instruction: Instruction, names: list[str], spaces: list[str], operations: list[str]) -> None:
    if len(spaces) != 2:
        given = f"its state spaces are {join_modifiers(spaces)}"
        raise unsupported(instruction, f"{given}; those of the target and of the source are needed")
    if operations and "reduce" not in names:
        raise unsupported(instruction, f".{operations[0]} is no modifier of a copy without .reduce")
    if "reduce" in names and len(operations) != 1:
        raise make_count_error(instruction, "it", len(operations), "operation", 1)
    if "reduce" in names and "tensor" in names and spaces[0] != "global":
        raise unsupported(instruction, f"a reduction of a tensor needs the target .global, not .{spaces[0]}")


@binds("cp")
def _bind_bulk_copy(instruction: Instruction) -> Step | None:
    """Bind ``cp{.reduce}.async.bulk{.tensor}.to.from{...} [to], [from]{, size}{, [barrier]}{, offsets}{, mask}``."""
    modifiers = {*instruction.modifiers}
    if "bulk" not in modifiers or modifiers & {"prefetch", "commit_group", "wait_group"}:
        return None
    names = [name for name in instruction.modifiers if not re.fullmatch(r"[1-5]d", name) and name not in TYPES]
    spaces = [name for name in names if name in ("global", "shared::cta", "shared::cluster")]
    operations = [name for name in names if name not in _KNOWN]
    reduces = "reduce" in names
    _check_form(instruction, names, spaces, operations)
    # The target and the source; then a size, an mbarrier and a mask, if the form has them; offsets are optional.
    needed = 2 + sum(["tensor" not in names, _COMPLETION in names, "multicast::cluster" in names])
    expect_count(instruction, *([needed, needed + 1] if "im2col" in names else [needed]))
    readers, is_store = _make_operand_readers(instruction, names, spaces), spaces[0] == "global"
    reduction = _make_reduction(instruction, operations[0]) if reduces else None

    def step(chunk: Chunk) -> None:
        active_threads = np.nonzero(spread(chunk.active, chunk.shape))
        columns = {name: dense(read(chunk)).astype(np.int64) for name, read in readers.items()}
        columns = {name: spread(column, chunk.shape)[active_threads] for name, column in columns.items()}
        issuers = [*range(len(active_threads[0]))]
        if is_store and not reduces:  # equal operands in a warp make one store
            keys = np.stack([active_threads[0], active_threads[1] // LANES, *columns.values()], axis=1)
            issuers = sorted(np.unique(keys, axis=0, return_index=True)[1].tolist())
        for index in issuers:
            row, thread = (int(indices[index]) for indices in active_threads)
            numbers = {name: int(column[index]) for name, column in columns.items()}
            start = [number for name, number in numbers.items() if name.startswith("coordinate")] or None
            shifts = [number for name, number in numbers.items() if name.startswith("offset")]
            copy = BulkCopy(chunk, (row, thread), numbers, reduction, is_store=is_store, start=start, shifts=shifts)
            if is_store:
                copy.copy_shared_to_global()
            elif spaces[1] == "global":
                copy.store_shared(copy.load_global())
            else:
                require_clusters(chunk, "a copy within shared memory")
                copy.store_shared(copy.load_shared())

    return step


def _make_reduction(instruction: Instruction, name: str) -> Callable[[Array, Array, Any], Array]:
    """Return a function of old bytes, new bytes and the tensor map's dtype that returns the bytes to store.

    ``name`` is the operation, such as "add". A type in the modifiers takes precedence over the dtype.
    """
    types = [TYPES[modifier] for modifier in instruction.modifiers if modifier in TYPES]

    def reduce(old: Array, new: Array, dtype: Any) -> Array:
        if types:
            kind = types[0]
        elif dtype.kind in _LETTERS:
            kind = TYPES[f"{_LETTERS[dtype.kind]}{dtype.itemsize * 8}"]
        else:
            problem = f"the elements of the tensor map are {dtype}; a reduction needs integers or floats of NumPy"
            raise unsupported(instruction, problem)
        if name in ("and", "or", "xor"):
            kind = TYPES[f"b{kind.bits}"]
        operation = find_operation(instruction, [name, *(["noftz"] if kind.size == 2 else [])], kind)
        result = operation.update(old.view(kind.dtype), new.view(kind.dtype))
        return np.ascontiguousarray(result).astype(kind.dtype).view(np.uint8)

    return reduce
