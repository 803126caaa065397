"""Asynchronous copies: ``cp.async.bulk`` of bytes and of boxes of tensors.

They are done at once here (PTX ISA, "Data Movement: Non-tensor copies", "Tensor copies"). Lanes of a warp that ask for
the same store get one. Those that ask for the same load, reduction or copy within shared memory get one each. So it is
on an H200 (driver 580.159.04, nvcc 13.0.88, 2026-11), whose machine code loops over different operands or over lanes.
Global memory is counted by copies and their sectors; shared memory is not, as no load or store reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...counting.transactions import LINE, count_piece_sectors
from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, Array, spread
from ...machine.argument_layout import BoundDescriptor
from ...machine.chunk import ALL_THREADS, Chunk
from ...machine.global_memory import Report
from ...ptx.program import TYPES, Address, Group, Instruction, Operand
from ...util.errors import LaunchError, MisalignedError, OutOfBoundsError
from ..atomic_operations import AtomicOperation, find_operation
from ..operands import Reader, address, as_array, items, reader, unsupported
from ..registry import Step, binds
from ..spaces import make_resolver
from .mbarriers import complete_bytes
from .tensor_maps import TensorMap

_COMPLETION = "mbarrier::complete_tx::bytes"
#: Modes that copy four rows of a matrix, each of a coordinate of its own.
_OF_ROWS = {"tile::gather4", "tile::scatter4"}
_KNOWN = {"async", "bulk", "tensor", "tile", "reduce", "bulk_group", _COMPLETION, "multicast::cluster",
          "cta_group::1", "cta_group::2", "noftz", "global", "shared::cta", "shared::cluster", *_OF_ROWS}  # fmt: skip


def _read_signed(read: Reader) -> Reader:
    return lambda chunk: as_array(read(chunk), TYPES["s32"])


@binds("cp")
def _bind_bulk_copy(instruction: Instruction) -> Step | None:
    """``cp{.reduce}.async.bulk{.tensor.dim}.to.from{...} [to], [from]{, size}{, [barrier]}{, mask}{, policy}``."""
    if "bulk" not in instruction.modifiers:
        return None
    names = [name for name in instruction.modifiers if not re.fullmatch(r"[1-5]d", name) and name not in TYPES]
    spaces = [name for name in names if name in ("global", "shared::cta", "shared::cluster")]
    operations = [name for name in names if name not in _KNOWN]
    reduces = "reduce" in names
    if len(spaces) != 2 or len(operations) != reduces or (reduces and spaces[0] != "global" and "tensor" in names):
        raise unsupported(instruction)
    operands = list(instruction.operands)
    readers: dict[str, Reader] = {}
    is_tensor = "tensor" in names
    coordinates: list[str] = []
    for side, space, operand in zip(("to", "from"), spaces, operands[:2], strict=True):
        address_operand: Operand = operand
        if is_tensor and space == "global":
            if not isinstance(operand, Group) or not isinstance(operand.items[0], Address):
                raise unsupported(instruction, "a tensor map and coordinates are needed")
            address_operand = operand.items[0]
            for place, coordinate in enumerate(items(operand.items[1])):
                coordinates.append(f"x{place}")
                readers[coordinates[-1]] = _read_signed(reader(instruction, coordinate, TYPES["s32"]))
        readers[side] = address(instruction, address_operand, None if space == "global" else "shared")
    remaining = operands[2:]
    if not is_tensor:
        readers["size"] = reader(instruction, remaining.pop(0), TYPES["u32"])
    if _COMPLETION in names:
        readers["barrier"] = address(instruction, remaining.pop(0), "shared")
    if "multicast::cluster" in names:
        readers["ranks"] = reader(instruction, remaining.pop(0), TYPES["u16"])
    is_merged = spaces[0] == "global" and not reduces
    reduction = _make_reduction(instruction, operations[0]) if reduces else None

    def step(chunk: Chunk) -> None:
        active_threads = np.nonzero(spread(chunk.active, chunk.shape))
        columns = {name: dense(read(chunk)).astype(np.int64) for name, read in readers.items()}
        columns = {name: spread(column, chunk.shape)[active_threads] for name, column in columns.items()}
        places = _find_first_threads(active_threads, columns) if is_merged else range(len(active_threads[0]))
        for index in places:
            row, thread = (int(axis[index]) for axis in active_threads)
            numbers = {name: int(column[index]) for name, column in columns.items()}
            copy = _BulkCopy(chunk, (row, thread), numbers, reduction, is_store=spaces[0] == "global")
            start = [numbers[name] for name in coordinates] if is_tensor else None
            if spaces[0] == "global":
                copy.store_global(numbers["to"], numbers["from"], start)
            elif spaces[1] == "global":
                copy.store_shared(copy.load_global(numbers["from"], start))
            else:
                _require_clusters(chunk)
                copy.store_shared(copy.load_shared(numbers["from"]))

    return step


def _require_clusters(chunk: Chunk) -> None:
    """Refuse a copy within shared memory in a launch without clusters: an H200 ends it (`docs/evidence/memory.md`)."""
    if not chunk.context.has_clusters:
        text = "a copy within shared memory, where the launch has no clusters; give cluster=1 or __cluster_dims__"
        raise LaunchError(f"{chunk.instruction.source}: {text}")


def _find_first_threads(threads: tuple[Array, ...], columns: dict[str, Array]) -> list[int]:
    """Find the first thread of each store: lanes of a warp with equal operands ask for one."""
    keys = np.stack([threads[0], threads[1] // LANES, *columns.values()], axis=1)
    return sorted(np.unique(keys, axis=0, return_index=True)[1].tolist())


def _make_reduction(instruction: Instruction, name: str) -> Callable[[Array, Array, Any], Array]:
    """Make a function of the old and the new bytes that returns the bytes to store."""
    types = [TYPES[modifier] for modifier in instruction.modifiers if modifier in TYPES]

    def reduce(old: Array, new: Array, dtype: Any) -> Array:
        kind = types[0] if types else TYPES[{"f": "f", "i": "s", "u": "u"}[dtype.kind] + str(dtype.itemsize * 8)]
        if name in ("and", "or", "xor"):
            kind = TYPES[f"b{kind.bits}"]
        operation: AtomicOperation | None = find_operation([name, *(["noftz"] if kind.size == 2 else [])], kind)
        if operation is None:
            raise unsupported(instruction)
        result = operation.update(old.view(kind.dtype), new.view(kind.dtype))
        return np.ascontiguousarray(result).astype(kind.dtype).view(np.uint8)

    return reduce


class _BulkCopy:
    """One copy: the place in the chunk of the thread that asks for it, and the numbers that it gives."""

    def __init__(
        self, chunk: Chunk, thread: tuple[int, int], numbers: dict[str, int], reduction: Any, *, is_store: bool
    ) -> None:
        self._chunk, self._source, self._reduction = chunk, chunk.instruction.source, reduction
        self._row, self._numbers, self._is_store = thread[0], numbers, is_store
        self._swizzled: Callable[[Array], Array] = lambda offsets: offsets
        report = chunk.make_reporter()

        def report_for_thread(error: Any, position: tuple[int, int], text: str, place: int) -> None:
            report(error, thread, text, place)

        self._report: Report = report_for_thread
        size = numbers.get("size", 0)
        if size % 16:
            report_for_thread(MisalignedError, (0, 0), f"{size} bytes: no multiple of 16", size)
        self._shared = chunk.shared.find_owner(self._row, numbers["from" if is_store else "to"])[1]
        alignment = 16 if "size" in numbers else 128
        if self._shared % alignment:
            text = f"shared address {self._shared}: no multiple of {alignment}"
            report_for_thread(MisalignedError, (0, 0), text, self._shared)

    def _find_tensor(self, place: int) -> BoundDescriptor:
        chunk = self._chunk
        space, offset = make_resolver(None, lambda _: np.full((1, 1), place, np.uint64))(chunk)
        mask = np.ones((1, 1), bool)
        (handles,) = chunk.memory(space).load(dense(offset)[:1, :1], 8, 1, mask, self._report)
        bound: BoundDescriptor | None = chunk.context.descriptors.get(int(handles[0, 0]))
        if bound is None or not isinstance(bound.descriptor, TensorMap):
            raise LaunchError(f"{self._source}: no tensor map lies there; give one with ptxcount.TensorMap")
        self._swizzled = bound.descriptor.swizzle_offsets
        return bound

    def _resolve_addresses(self, place: int, start: Sequence[int] | None) -> tuple[Array, Array, int, Any]:
        """Return global addresses, the mask of those within the tensor, bytes of each element, and the dtype."""
        if start is None:
            return place + 16 * np.arange(self._numbers["size"] // 16)[None, :], ALL_THREADS, 16, None
        bound = self._find_tensor(place)
        of_rows = not _OF_ROWS.isdisjoint(self._chunk.instruction.modifiers)
        starts = [(start[0], row) for row in start[1:]] if of_rows else [start]
        if len(starts[0]) != bound.descriptor.array.ndim or len(starts) != 1 + 3 * of_rows:
            raise LaunchError(f"{self._source}: {len(start)} coordinates for {bound.descriptor.array.shape}")
        if of_rows and bound.descriptor.box[0] != 1:  # type: ignore[attr-defined]
            raise LaunchError(f"{self._source}: four rows of a tensor map; its box must have one row")
        width = bound.descriptor.array.dtype.itemsize
        if start[0] * width % 16:
            text = f"a tile whose first coordinate is {start[0]}, {start[0] * width} bytes: no multiple of 16"
            self._report(MisalignedError, (0, 0), text, bound.base)
        if self._is_store and min(start) < 0:
            text = f"a tile that is stored at {tuple(start)}: no coordinate may be below 0"
            self._report(OutOfBoundsError, (0, 0), text, bound.base)
        parts = [bound.descriptor.elements(first) for first in starts]  # type: ignore[attr-defined]
        places, inside = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._columns = bound.descriptor.box[-1]  # type: ignore[attr-defined]
        return bound.base + places[None, :] * width, inside[None, :], width, bound.descriptor.array.dtype

    def _record_access(self, kind: str, places: Array, inside: Array, width: int) -> None:
        offsets = self._shared + width * np.arange(places.size).reshape(places.shape)
        access = self._chunk.find_counters("bulk", kind, 16)
        is_multicast = "ranks" in self._numbers
        blocks = self._numbers["ranks"].bit_count() if is_multicast else 1  # each reads by itself
        if "size" in self._numbers:
            sectors = [
                blocks * count_piece_sectors(places, offsets, shift, is_multicast=is_multicast)
                for shift in range(0, LINE, 16)
            ]
            access.add(1, sectors[0], places.size * width)
            access.add_shifted(sectors)
            return
        parts = (places, offsets, spread(inside, places.shape))
        rows, row_offsets, within = (np.asarray(part).reshape(-1, self._columns) for part in parts)
        count = count_piece_sectors(
            rows, row_offsets, inside=within, is_store=kind == "store", is_multicast=is_multicast
        )
        access.add(1, blocks * count, int(within.sum()) * width)

    def _read_global(self, places: Array, inside: Array, width: int) -> Array:
        if not inside.any():
            return np.zeros(places.size * width, np.uint8)
        unit = min(width, 4)
        parts = self._chunk.context.memory.load(places, unit, width // unit, inside, self._report)
        return np.stack([spread(part, places.shape) for part in parts], axis=-1).reshape(-1).view(np.uint8)

    def load_global(self, place: int, start: Sequence[int] | None) -> Array:
        """Load the bytes of a copy; zeros beyond the tensor."""
        places, inside, width, _ = self._resolve_addresses(place, start)
        self._record_access("load", places, inside, width)
        return self._read_global(places, inside, width)

    def load_shared(self, place: int) -> Array:
        """Return the bytes of a copy within shared memory."""
        row, offset = self._chunk.shared.find_owner(self._row, place)
        return self._chunk.shared.view_bytes(row, offset, self._numbers["size"], self._report, is_written=False).copy()

    def store_shared(self, data: Array) -> None:
        """Store in each block of a multicast, and complete the bytes on its barrier."""
        shared, numbers = self._chunk.shared, self._numbers
        rows = [shared.find_owner(self._row, numbers["to"])[0]]
        if "ranks" in numbers:
            rows = [shared.find_first_block(rows[0]) + rank for rank in range(16) if numbers["ranks"] >> rank & 1]
        offset = shared.find_owner(0, numbers["to"])[1]
        for row in rows:
            target = shared.view_bytes(row, offset, len(data), self._report, is_written=True)
            order = self._swizzled(offset + np.arange(len(data))) - offset
            target[order] = self._reduce(target[order], data, None)
            if "barrier" in numbers:
                owner, owner_offset = shared.find_owner(self._row, numbers["barrier"])
                complete_bytes(self._chunk, self._find_signalled(row, owner), owner_offset, len(data), self._report)

    def _find_signalled(self, row: int, owner: int) -> int:
        """Return the block whose barrier learns of bytes in a block; ``owner`` has the one that the copy names.

        A multicast tells each destination's; with ``.cta_group::2``, in the pair of blocks the one that is even or odd
        as the owner is (PTX ISA, ``cp.async.bulk.tensor``).
        """
        if "ranks" not in self._numbers:
            return owner
        if "cta_group::2" not in self._chunk.instruction.modifiers:
            return row
        first = self._chunk.shared.find_first_block(row)
        return first + (row - first) // 2 * 2 + (owner - first) % 2

    def store_global(self, target: int, source: int, start: Sequence[int] | None) -> None:
        """Store bytes of shared memory in an array; bytes beyond the tensor are dropped."""
        places, inside, width, dtype = self._resolve_addresses(target, start)
        count = places.size * width
        row, offset = self._chunk.shared.find_owner(self._row, source)
        content = self._chunk.shared.view_bytes(row, offset, count, self._report, is_written=False)
        data = content[self._swizzled(offset + np.arange(count)) - offset]
        if self._reduction is not None:
            data = self._reduce(self._read_global(places, inside, width), data, dtype)
        unit = min(width, 4)
        parts = np.ascontiguousarray(data).view(f"u{unit}").reshape(*places.shape, width // unit)
        values = [parts[..., k] for k in range(parts.shape[-1])]
        if inside.any():
            self._chunk.context.memory.store(places, unit, values, inside, self._report)
        self._record_access("store", places, inside, width)

    def _reduce(self, old: Array, new: Array, dtype: Any) -> Array:
        return new if self._reduction is None else self._reduction(old, new, dtype)
