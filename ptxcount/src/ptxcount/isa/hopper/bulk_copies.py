"""Copies that the chip does by itself: ``cp.async.bulk``, of bytes and of boxes of tensors, and ``st.async``.

They are done at once here (PTX ISA, "Data Movement: Non-tensor copies", "Tensor copies"). Lanes of a warp that ask for
the same store get one: so it is on an H200 (driver 580.159.04, nvcc 13.0.88, 2026-11), where loads and reductions are
done for each lane. Global memory is counted by copies and their sectors; shared memory is not, as no load or store of
the kernel reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...counting.transactions import LINE, piece_sectors
from ...lanes.symbolic_values import dense
from ...lanes.warps import LANES, Array, spread
from ...machine.argument_layout import Bound
from ...machine.chunk import EVERYONE, Chunk
from ...machine.global_memory import Report
from ...ptx.program import TYPES, Address, Group, Instruction, Operand
from ...util.errors import LaunchError, MisalignedError, OutOfBoundsError
from ..atomic_operations import Atomic, find
from ..operands import Reader, address, as_array, elements, expect_count, items, reader, unsupported
from ..registry import Step, binds, step_of
from ..spaces import decode, resolver
from .mbarriers import change, complete
from .tensor_maps import TensorMap

_COMPLETION = "mbarrier::complete_tx::bytes"
_KNOWN = {"async", "bulk", "tensor", "tile", "reduce", "bulk_group", _COMPLETION, "multicast::cluster",
          "noftz", "global", "shared::cta", "shared::cluster"}  # fmt: skip


def _signed(read: Reader) -> Reader:
    return lambda chunk: as_array(read(chunk), TYPES["s32"])


@binds("cp")
def _bulk(instruction: Instruction) -> Step | None:
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
    given: dict[str, Reader] = {}
    tensor = "tensor" in names
    coordinates: list[str] = []
    for side, space, operand in zip(("to", "from"), spaces, operands[:2], strict=True):
        one: Operand = operand
        if tensor and space == "global":
            if not isinstance(operand, Group) or not isinstance(operand.items[0], Address):
                raise unsupported(instruction, "a tensor map and coordinates are needed")
            one = operand.items[0]
            for place, each in enumerate(items(operand.items[1])):
                coordinates.append(f"x{place}")
                given[coordinates[-1]] = _signed(reader(instruction, each, TYPES["s32"]))
        given[side] = address(instruction, one, None if space == "global" else "shared")
    rest = operands[2:]
    if not tensor:
        given["size"] = reader(instruction, rest.pop(0), TYPES["u32"])
    if _COMPLETION in names:
        given["barrier"] = address(instruction, rest.pop(0), "shared")
    if "multicast::cluster" in names:
        given["ranks"] = reader(instruction, rest.pop(0), TYPES["u16"])
    reduction = _reduction(instruction, operations[0]) if reduces else None
    is_merged = spaces[0] == "global" and not reduces

    def step(chunk: Chunk) -> None:
        who = np.nonzero(spread(chunk.active, chunk.shape))
        columns = {name: dense(read(chunk)).astype(np.int64) for name, read in given.items()}
        columns = {name: spread(column, chunk.shape)[who] for name, column in columns.items()}
        places = _find_copies(who, columns) if is_merged else range(len(who[0]))
        for place in places:
            row, thread = (int(axis[place]) for axis in who)
            numbers = {name: int(column[place]) for name, column in columns.items()}
            copy = _Copy(chunk, (row, thread), numbers, reduction, is_store=spaces[0] == "global")
            start = [numbers[name] for name in coordinates] if tensor else None
            if spaces[0] == "global":
                copy.to_global(numbers["to"], numbers["from"], start)
            elif spaces[1] == "global":
                copy.to_shared(copy.from_global(numbers["from"], start))
            else:
                copy.to_shared(copy.from_shared(numbers["from"]))

    return step


def _find_copies(who: tuple[Array, ...], columns: dict[str, Array]) -> list[int]:
    """Return the first thread of each store: lanes of a warp whose operands are the same ask for one.

    ptxas makes a loop of it, with a turn for each set of operands. Loads, which a barrier counts, and reductions have a
    turn for each lane.
    """
    keys = np.stack([who[0], who[1] // LANES, *columns.values()], axis=1)
    return sorted(np.unique(keys, axis=0, return_index=True)[1].tolist())


def _reduction(instruction: Instruction, name: str) -> Callable[[Array, Array, Any], Array]:
    """From what is there and what comes, as bytes, what is stored."""
    types = [TYPES[each] for each in instruction.modifiers if each in TYPES]

    def reduce(old: Array, new: Array, dtype: Any) -> Array:
        kind = types[0] if types else TYPES[{"f": "f", "i": "s", "u": "u"}[dtype.kind] + str(dtype.itemsize * 8)]
        if name in ("and", "or", "xor"):
            kind = TYPES[f"b{kind.bits}"]
        operation: Atomic | None = find([name, *(["noftz"] if kind.size == 2 and name == "add" else [])], kind)
        if operation is None:
            raise unsupported(instruction)
        result = operation.update(old.view(kind.dtype), new.view(kind.dtype))
        return np.ascontiguousarray(result).astype(kind.dtype).view(np.uint8)

    return reduce


class _Copy:
    """One copy: the place in the chunk of the thread that asks for it, and the numbers that it gives."""

    def __init__(
        self, chunk: Chunk, who: tuple[int, int], numbers: dict[str, int], reduction: Any, *, is_store: bool
    ) -> None:
        self._chunk, self._source, self._reduction = chunk, chunk.instruction.source, reduction
        self._row, self._numbers, self._is_store = who[0], numbers, is_store
        self._swizzled: Callable[[Array], Array] = lambda offsets: offsets
        report = chunk.reporter()

        def mine(error: Any, position: tuple[int, int], text: str, place: int) -> None:
            report(error, who, text, place)

        self._report: Report = mine
        size = numbers.get("size", 0)
        if size % 16:
            mine(MisalignedError, (0, 0), f"{size} bytes: no multiple of 16", size)
        self._shared = chunk.shared.owner(self._row, numbers["from" if is_store else "to"])[1]
        least = 16 if "size" in numbers else 128
        if self._shared % least:
            mine(MisalignedError, (0, 0), f"shared address {self._shared}: no multiple of {least}", self._shared)

    def _tensor(self, place: int) -> Bound:
        chunk = self._chunk
        space, at = resolver(None, lambda _: np.full((1, 1), place, np.uint64))(chunk)
        only = np.ones((1, 1), bool)
        (found,) = chunk.memory(space).load(dense(at)[:1, :1], 8, 1, only, self._report)
        bound: Bound | None = chunk.context.bound.get(int(found[0, 0]))
        if bound is None or not isinstance(bound.what, TensorMap):
            raise LaunchError(f"{self._source}: no tensor map lies there; give one with ptxcount.TensorMap")
        self._swizzled = bound.what.swizzled
        return bound

    def _places(self, place: int, start: Sequence[int] | None) -> tuple[Array, Array, int, Any]:
        """Addresses in global memory, which of them there are, the bytes of each, and the dtype."""
        if start is None:
            return place + 16 * np.arange(self._numbers["size"] // 16)[None, :], EVERYONE, 16, None
        bound = self._tensor(place)
        if len(start) != bound.what.array.ndim:
            raise LaunchError(f"{self._source}: {len(start)} coordinates for {bound.what.array.shape}")
        width = bound.what.array.dtype.itemsize
        if start[0] * width % 16:
            text = f"a tile whose first coordinate is {start[0]}, {start[0] * width} bytes: no multiple of 16"
            self._report(MisalignedError, (0, 0), text, bound.base)
        if self._is_store and min(start) < 0:
            text = f"a tile that is stored at {tuple(start)}: no coordinate may be below 0"
            self._report(OutOfBoundsError, (0, 0), text, bound.base)
        places, inside = bound.what.elements(start)  # type: ignore[attr-defined]
        self._columns = bound.what.box[-1]  # type: ignore[attr-defined]
        return bound.base + places[None, :] * width, inside[None, :], width, bound.what.array.dtype

    def _record(self, kind: str, places: Array, inside: Array, width: int) -> None:
        offsets = self._shared + width * np.arange(places.size).reshape(places.shape)
        access = self._chunk.access("bulk", kind, 16)
        if "size" in self._numbers:
            sectors = [piece_sectors(places, offsets, shift) for shift in range(0, LINE, 16)]
            access.add(1, sectors[0], places.size * width)
            access.add_shifted(sectors)
            return
        parts = (places, offsets, spread(inside, places.shape))
        rows, at, on = (np.asarray(part).reshape(-1, self._columns) for part in parts)
        access.add(1, piece_sectors(rows, at, on=on), int(on.sum()) * width)

    def _read(self, places: Array, inside: Array, width: int) -> Array:
        if not inside.any():
            return np.zeros(places.size * width, np.uint8)
        unit = min(width, 4)
        parts = self._chunk.context.memory.load(places, unit, width // unit, inside, self._report)
        return np.stack([spread(part, places.shape) for part in parts], axis=-1).reshape(-1).view(np.uint8)

    def from_global(self, place: int, start: Sequence[int] | None) -> Array:
        """The bytes of a copy, zeros where the tensor has none."""
        places, inside, width, _ = self._places(place, start)
        self._record("load", places, inside, width)
        return self._read(places, inside, width)

    def from_shared(self, place: int) -> Array:
        """The bytes of a copy within shared memory."""
        row, offset = self._chunk.shared.owner(self._row, place)
        return self._chunk.shared.reach(row, offset, self._numbers["size"], self._report, written=False).copy()

    def to_shared(self, data: Array) -> None:
        """Store, in each block of a multicast, and tell its barrier."""
        shared, numbers = self._chunk.shared, self._numbers
        rows = [shared.owner(self._row, numbers["to"])[0]]
        if "ranks" in numbers:
            rows = [shared.first_of_cluster(rows[0]) + rank for rank in range(16) if numbers["ranks"] >> rank & 1]
        offset = shared.owner(0, numbers["to"])[1]
        for row in rows:
            held = shared.reach(row, offset, len(data), self._report, written=True)
            order = self._swizzled(offset + np.arange(len(data))) - offset
            held[order] = self._reduced(held[order], data, None)
            if "barrier" in numbers:
                owner, at = shared.owner(self._row, numbers["barrier"])
                complete(self._chunk, row if "ranks" in numbers else owner, at, len(data), self._report)

    def to_global(self, to: int, from_: int, start: Sequence[int] | None) -> None:
        """Store the bytes of shared memory in an array; those beyond a tensor nowhere."""
        places, inside, width, dtype = self._places(to, start)
        count = places.size * width
        row, offset = self._chunk.shared.owner(self._row, from_)
        held = self._chunk.shared.reach(row, offset, count, self._report, written=False)
        data = held[self._swizzled(offset + np.arange(count)) - offset]
        if self._reduction is not None:
            data = self._reduced(self._read(places, inside, width), data, dtype)
        unit = min(width, 4)
        parts = np.ascontiguousarray(data).view(f"u{unit}").reshape(*places.shape, -1)
        values = [parts[..., k] for k in range(parts.shape[-1])]
        if inside.any():
            self._chunk.context.memory.store(places, unit, values, inside, self._report)
        self._record("store", places, inside, width)

    def _reduced(self, old: Array, new: Array, dtype: Any) -> Array:
        return new if self._reduction is None else self._reduction(old, new, dtype)


@binds("st")
def _async_store(instruction: Instruction) -> Step:
    """``st.async{...}.shared::cluster.mbarrier::complete_tx::bytes{.vec}.type [a], b, [barrier]``."""
    space, count, kind, _ = decode(instruction, "async", _COMPLETION)
    expect_count(instruction, 3)
    if space != "shared":
        raise unsupported(instruction)
    where, data, barrier = instruction.operands
    read, read_barrier = (address(instruction, each, "shared") for each in (where, barrier))
    width = kind.size * count

    def store(chunk: Chunk, *values: Array) -> list[Array]:
        place = read(chunk)
        parts = [each.view(f"u{kind.size}") for each in values]
        chunk.shared.store(place, kind.size, parts, chunk.active, chunk.reporter())
        chunk.record("shared", "store", width, place, remote_kind="atomic")  # by their rule, on the chip
        change(chunk, "complete_tx", read_barrier(chunk), np.full((1, 1), width, np.uint32))
        return []

    stored = [(each, kind) for each in elements(data, count, instruction)]
    return step_of(instruction, [], stored, store, wider=True)
