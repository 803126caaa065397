"""``tcgen05.mma``: matrix products with the result in tensor memory, issued by one thread.

Products of floats are summed in float64 and rounded once. Reads of factors in shared memory are not counted: their
wavefronts are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...machine.chunk import Chunk
from ...machine.global_memory import Report
from ...machine.tensor_memory import LANE_COUNT, split_address
from ...ptx.program import TYPES, Address, Group, Immediate, Instruction, Operand
from ...util.errors import TensorMemoryError
from ..opcode_registry import Step, binds
from ..operands import Reader, address, items, reader, unsupported
from ..single_threads import iter_threads, make_row_reporter
from ..tensor_cores.elements import ELEMENTS, encode
from ..tensor_cores.sparse import expand_groups, find_undefined, find_unit
from .descriptors import KINDS, ColumnMask, Kind, ProductShape, decode_shared
from .factors import (
    FACTOR_ELEMENTS,
    find_stored_bits,
    load_metadata,
    load_scales,
    load_shared_factor,
    load_tensor_factor,
)
from .issuing_warps import find_pair, note_uncounted, read_group, report_descriptors
from .layouts import DATA_PATHS

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
_OPTIONS = {"mma", "ws", "sp", "cta_group::1", "cta_group::2", "block_scale", *KINDS}
#: Scales per row, by qualifier; and the defaults by kind.
_SCALE_COUNTS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
_BLOCK32 = {"kind::mxf8f6f4": 1, "kind::mxf4": 2, "kind::mxf4nvf4": 2}
#: Maximum power of two by which the old result is divided (``scale-input-d``).
_MAX_SHIFT = 15


class _Form(NamedTuple):
    """An instruction, from its modifiers and operands."""

    kind: Kind
    group: int
    is_stationary: bool
    from_tensor_memory: bool
    #: Scales per row of a factor; 0 without scales.
    scales: int
    #: Words of the mask of unchanged lanes (``disable-output-lane``).
    masks: int
    shift: int
    is_sparse: bool

    @property
    def products(self) -> int:
        """The products per element (K); a sparse left factor stores half of them."""
        return self.kind.products * (1 + self.is_sparse)


class _Issue(NamedTuple):
    """An issued instruction: addresses and descriptors, as numbers."""

    result: int
    left: int
    right: int
    shape: int
    accumulates: int
    rest: tuple[int, ...]
    metadata: int


def _parse_mma_form(instruction: Instruction, operands: Sequence[Operand]) -> _Form:
    """Parse the modifiers and operands of a product; raises `UnsupportedInstructionError` for unsupported ones."""
    names = {*instruction.modifiers}
    if "ashift" in names:
        raise unsupported(instruction, "shift down is not supported")
    kinds = [name for name in instruction.modifiers if name in KINDS]
    collectors = {name for name in names if name.startswith("collector::")}
    counts = [_SCALE_COUNTS[name] for name in names if name in _SCALE_COUNTS]
    if len(kinds) != 1 or not names - collectors <= _OPTIONS | {*_SCALE_COUNTS, "block32"} or len(counts) > 1:
        raise unsupported(instruction)
    kind, scaled = KINDS[kinds[0]], "block_scale" in names
    if kind.is_scaled != scaled or not 5 + 2 * scaled <= len(operands) <= 7:
        raise unsupported(instruction)
    masks = items(operands[4]) if isinstance(operands[4], Group) and not scaled else ()
    is_stationary = "ws" in names
    rest = operands[5 + bool(masks) :] if not scaled else ()
    shift = rest[0].value if rest and isinstance(rest[0], Immediate) and not is_stationary else 0
    if (is_stationary and (masks or scaled)) or (rest and not is_stationary and not isinstance(rest[0], Immediate)):
        raise unsupported(instruction)
    if not 0 <= shift <= _MAX_SHIFT:
        raise unsupported(instruction, f"scale-input-d is {shift}; 0 to {_MAX_SHIFT} are allowed")
    group = read_group(instruction)
    if masks and len(masks) != 4 * group:
        raise unsupported(instruction, f"disable-output-lane has {len(masks)} words; {4 * group} are needed")
    scales = (counts[0] if counts else _BLOCK32[kinds[0]]) if scaled else 0
    return _Form(
        kind, group, is_stationary, isinstance(operands[1], Address), scales, len(masks), int(shift), "sp" in names
    )


@binds("tcgen05", having={"mma"})
def _bind_product(instruction: Instruction) -> Step:
    """Bind ``tcgen05.mma{.ws}.cta_group.kind [d], a, b, idesc, {lanes,} p{, shift}``, also with ``.block_scale``."""
    operands = list(instruction.operands)
    metadata = [operands.pop(3)] if "sp" in instruction.modifiers and len(operands) > 3 else []
    form = _parse_mma_form(instruction, operands)
    result, left, right, shape, *rest = operands

    def read_tensor_address(operand: Any) -> Reader:
        return address(instruction, operand, "tensor")

    read_left = read_tensor_address(left) if form.from_tensor_memory else reader(instruction, left, _U64)
    readers = [read_tensor_address(result), read_left, reader(instruction, right, _U64)]
    readers.append(reader(instruction, shape, _U32))
    extra = [read_tensor_address(operand) for operand in rest[:2]] if form.scales else []
    extra += [reader(instruction, word, _U32) for word in (items(rest[0]) if form.masks else ())]
    extra += [reader(instruction, mask, _U64) for mask in (rest[1:] if form.is_stationary else ())]
    readers += [reader(instruction, rest[2 if form.scales else bool(form.masks)], _PRED), *extra]
    readers += [read_tensor_address(operand) for operand in metadata]

    def multiply(chunk: Chunk) -> None:
        for numbers, rows in iter_threads(chunk, readers):
            d, a, b, idesc, accumulates, *others = numbers
            place = others.pop() if form.is_sparse else 0
            issue = _Issue(d, a, b, idesc, accumulates, tuple(others), place)
            _Product(chunk, form, issue, rows).execute()
            note_uncounted(chunk, len(rows))
        chunk.has_written, chunk.spins = True, 0

    return multiply


class _Product:
    """One product, issued with equal operands in some blocks."""

    def __init__(self, chunk: Chunk, form: _Form, issue: _Issue, rows: list[int]) -> None:
        self._chunk, self._form, self._issue, self._rows = chunk, form, issue, rows
        self._report: Report = make_row_reporter(chunk)
        with report_descriptors(chunk):
            shape = ProductShape.decode(
                issue.shape, form.kind, form.group, is_stationary=form.is_stationary, is_sparse=form.is_sparse
            )
            mask = ColumnMask.decode(issue.rest[0]) if form.is_stationary and issue.rest else None
        self._shape, self._column_mask = shape, mask
        self._path = DATA_PATHS[shape.rows, form.group, form.is_stationary]
        if form.is_sparse and (self._path.rows, form.is_stationary) != (128, False):
            raise unsupported(chunk.instruction, f"{shape.rows} rows of a sparse factor are not supported")
        addresses = [issue.result, *([issue.left] if form.from_tensor_memory else [])]
        bases = [split_address(place)[0] for place in addresses]
        if bases[0] not in self._path.bases or len({*bases}) > 1:
            allowed = " or ".join(map(str, self._path.bases))
            text = (
                f"addresses with the lanes {', '.join(map(str, bases))}; all have lane {allowed} for {shape.rows} rows"
            )
            raise chunk.make_fault(TensorMemoryError, text)

    def execute(self) -> None:
        """Multiply, add, and store the result of each block of the group."""
        pairs = [find_pair(self._chunk, row, self._form.group) for row in self._rows]
        members = [np.array(blocks) for blocks in zip(*pairs, strict=True)]
        right = np.concatenate([self._load_right(blocks) for blocks in members], axis=1)
        # Each part of the columns is a separate product, (blocks, parts, products, columns).
        right = right.reshape(len(right), self._path.parts, -1, right.shape[2]).swapaxes(2, 3)
        if self._column_mask:
            right = np.where(self._column_mask.find_zeros(*right.shape[1::2])[:, None], 0, right)
        for member, blocks in enumerate(members):
            self._multiply_block(blocks, member, right)

    def _multiply_block(self, blocks: Array, member: int, right: Array) -> None:
        shape, form = self._shape, self._form
        left = self._load_left(blocks)
        if form.is_sparse:
            left = self._expand_left(blocks, left)
        if form.scales:
            left, right = self._apply_scales(blocks, left, right)
        sums = shape.signs[0] * shape.signs[1] * (left @ right)
        base, column = split_address(self._issue.result)
        lanes, columns = base + self._path.find_lanes(), column + np.arange(sums.shape[3])
        tensor = self._chunk.tensor
        if self._issue.accumulates:
            places = blocks[:, None, None, None], lanes[:, :, None], columns
            old = tensor.load(*places, self._report, is_product=True)
            sums = sums + ELEMENTS[shape.result].decode(old) * 2.0**-form.shift
        words = encode(sums, shape.result, saturate=shape.saturates).astype(np.uint32)
        kept = self._find_kept_lanes(member)
        for part, part_lanes in enumerate(lanes):
            updated = np.flatnonzero(~kept[part_lanes])
            places = blocks[:, None, None], part_lanes[updated, None], columns
            tensor.store(*places, words[:, part, updated], self._report, is_product=True)

    def _find_kept_lanes(self, member: int) -> Array:
        """Return the mask of lanes that the product leaves unchanged, from the block's four mask words."""
        if not self._form.masks:
            return np.zeros(LANE_COUNT, bool)
        words = np.array(self._issue.rest[4 * member : 4 * member + 4], np.uint32)
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def _load_left(self, blocks: Array) -> Array:
        """Load the rows of each block, (blocks, parts or 1, rows, products)."""
        form, shape = self._form, self._shape
        if form.from_tensor_memory:
            if shape.turned[0] or (form.kind.padded and FACTOR_ELEMENTS[shape.left].bits < 8):
                problem = f"{shape.left} in tensor memory, or transposed there, is not supported"
                raise unsupported(self._chunk.instruction, problem)
            base = split_address(self._issue.left)
            return load_tensor_factor(
                self._chunk, blocks, self._path, base, form.kind.products, shape.left, self._report
            )
        extent = (self._path.rows, form.kind.products)
        return self._load_shared(self._issue.left, blocks, extent, shape.left, turned=shape.turned[0])[:, None]

    def _expand_left(self, blocks: Array, stored: Array) -> Array:
        """Expand sparse rows by their metadata in tensor memory."""
        bits = find_stored_bits(self._shape.left, padded=self._form.kind.padded)
        base, selector = split_address(self._issue.metadata), self._shape.selector
        codes = load_metadata(self._chunk, blocks, base, bits, selector, self._report)[:, None]
        unit = find_unit(bits)
        undefined = codes[find_undefined(codes, unit, ordered=True)]
        if undefined.size:
            raise unsupported(self._chunk.instruction, f"the metadata {int(undefined[0]):#06b} of a group is undefined")
        return expand_groups(stored, codes, unit)

    def _load_right(self, blocks: Array) -> Array:
        """Load the columns in each block of a group, (blocks, columns, products)."""
        count = self._shape.columns // self._form.group
        extent = (count, self._form.products)
        return self._load_shared(self._issue.right, blocks, extent, self._shape.right, turned=self._shape.turned[1])

    def _load_shared(self, bits: int, blocks: Array, extent: tuple[int, int], name: str, *, turned: bool) -> Array:
        with report_descriptors(self._chunk):
            descriptor = decode_shared(bits)
        if descriptor.lines != 8 and not turned:
            raise unsupported(self._chunk.instruction, "swizzles with 32-byte atoms need transposed factors")
        kind = self._form.kind
        width = extent[1] * find_stored_bits(name, padded=kind.padded) // 8
        if not turned and descriptor.span > 16 and width > descriptor.span:
            raise unsupported(
                self._chunk.instruction, f"rows have {width} bytes; a swizzle of {descriptor.span} does not fit"
            )
        return np.stack(
            [
                load_shared_factor(
                    self._chunk, block, descriptor, extent, name, self._report,
                    turned=turned, padded=kind.padded,
                )
                for block in blocks.tolist()
            ]
        )  # fmt: skip

    def _apply_scales(self, blocks: Array, left: Array, right: Array) -> tuple[Array, Array]:
        """Multiply each factor by its scales, which are in the tensor memory of each block of a group."""
        form, shape, parts = self._form, self._shape, self._path.parts
        counts, both = (self._path.rows, shape.columns), []
        for count, halves, base, first in zip(counts, (1, parts), self._issue.rest[:2], shape.scale_bytes, strict=True):
            scale = (shape.scale, first, form.scales)
            scales = load_scales(self._chunk, blocks, split_address(base), count, halves, scale, self._report)
            both.append(np.repeat(scales, form.products // form.scales, axis=2))
        columns = both[1].reshape(len(blocks), parts, -1, form.products).swapaxes(2, 3)
        return left * both[0][:, None], right * columns
