"""Asynchronous copies and reductions: ``cp.async.bulk`` of bytes and of parts of tensors.

They complete immediately here (PTX ISA, "Data Movement: Non-tensor copies", "Tensor copies"). Lanes of a warp with
equal operands share one store. Each lane makes its own load, reduction or copy within shared memory. This was measured
on an H200, whose machine code loops over distinct operands, or over lanes. For global memory, copies and their sectors
are counted. Shared memory is not counted, because no load or store instruction accesses it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, Array, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Address, Group, Instruction, Operand, Type, format_operand
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
                problem = f"an operand is {format_operand(operand)}; it must be [tensor map, {{coordinates}}]"
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


def _parse_form(instruction: Instruction) -> tuple[list[str], list[str], str]:
    """Return the modifiers without types and dimensions, the two state spaces, and the operation; "" for a copy."""
    names = [name for name in instruction.modifiers if not re.fullmatch(r"[1-5]d", name) and name not in TYPES]
    spaces = [name for name in names if name in ("global", "shared::cta", "shared::cluster")]
    operations = [name for name in names if name not in _KNOWN]
    if len(spaces) != 2:
        given = f"its state spaces are {join_modifiers(spaces)}"
        raise unsupported(instruction, f"{given}; they must be those of the target and of the source")
    if operations and "reduce" not in names:
        raise unsupported(instruction, f".{operations[0]} is no modifier of a copy without .reduce")
    if "reduce" in names and len(operations) != 1:
        raise make_count_error(instruction, "it", len(operations), "operation", 1)
    if "reduce" in names and "tensor" in names and spaces[0] != "global":
        raise unsupported(instruction, f"a reduction of a tensor needs the target .global, not .{spaces[0]}")
    # The target and the source; then a size, an mbarrier and a mask, if the form has them; offsets are optional.
    needed = 2 + sum(["tensor" not in names, _COMPLETION in names, "multicast::cluster" in names])
    expect_count(instruction, *([needed, needed + 1] if "im2col" in names else [needed]))
    return names, spaces, "".join(operations)


@binds("cp")
def _bind_bulk_copy(instruction: Instruction) -> Step | None:
    """Bind ``cp{.reduce}.async.bulk{.tensor}.to.from{...} [to], [from]{, size}{, [barrier]}{, offsets}{, mask}``."""
    modifiers = {*instruction.modifiers}
    if "bulk" not in modifiers or modifiers & {"prefetch", "commit_group", "wait_group"}:
        return None
    names, spaces, operation = _parse_form(instruction)
    readers, is_store = _make_operand_readers(instruction, names, spaces), spaces[0] == "global"
    reduction = _make_reduction(instruction, operation) if operation else None

    def step(chunk: Chunk) -> None:
        rows, threads = np.nonzero(spread(chunk.active, chunk.shape))
        columns = {
            name: spread(dense(read(chunk)).astype(np.int64), chunk.shape)[rows, threads]
            for name, read in readers.items()
        }
        issuers: Sequence[int] = range(len(rows))
        if is_store and not reduction:
            issuers = _find_first_lanes(rows, threads, [*columns.values()])
        for index in issuers:
            numbers = {name: int(column[index]) for name, column in columns.items()}
            copy = BulkCopy(chunk, (int(rows[index]), int(threads[index])), numbers, reduction, is_store=is_store)
            if is_store:
                copy.copy_shared_to_global()
            elif spaces[1] == "global":
                copy.store_shared(copy.load_global())
            else:
                require_clusters(chunk, "a copy within shared memory")
                copy.store_shared(copy.load_shared())

    return step


def _find_first_lanes(rows: Array, threads: Array, columns: list[Array]) -> list[int]:
    """Return the place of the first lane of each warp with the same operands: these lanes make one store."""
    keys = np.stack([rows, threads // LANES, *columns], axis=1)
    return sorted(np.unique(keys, axis=0, return_index=True)[1].tolist())


def _make_reduction(instruction: Instruction, name: str) -> Callable[[Array, Array, Any], Array]:
    """Return a function of old bytes, new bytes and the tensor map's dtype that returns the bytes to store.

    ``name`` is the operation, such as "add". A type in the modifiers takes precedence over the dtype.
    """

    def reduce_as(kind: Type) -> Callable[[Array, Array, Any], Array]:
        if name in ("and", "or", "xor"):
            kind = TYPES[f"b{kind.bits}"]
        operation = find_operation(instruction, [name, *(["noftz"] if kind.size == 2 else [])], kind)

        def reduce(old: Array, new: Array, dtype: Any) -> Array:
            result = operation.update(old.view(kind.dtype), new.view(kind.dtype))
            return np.ascontiguousarray(result).astype(kind.dtype).view(np.uint8)

        return reduce

    def reduce_tensor(old: Array, new: Array, dtype: Any) -> Array:
        if dtype.kind not in _LETTERS:
            problem = f"the elements of the tensor map are {dtype}; a reduction needs integers or floats of NumPy"
            raise unsupported(instruction, problem)
        return reduce_as(TYPES[f"{_LETTERS[dtype.kind]}{dtype.itemsize * 8}"])(old, new, dtype)

    types = [TYPES[modifier] for modifier in instruction.modifiers if modifier in TYPES]
    return reduce_as(types[0]) if types else reduce_tensor
