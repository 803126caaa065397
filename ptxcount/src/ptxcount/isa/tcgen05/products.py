"""``tcgen05.mma``: matrix products with the result in tensor memory, issued by one thread.

Products of floats are summed in float64 and rounded once. Reads of factors in shared memory are not counted: their
wavefronts are unknown.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...machine.address_map import Report
from ...machine.chunk import Chunk
from ...machine.tensor_memory import LANE_COUNT, split_address
from ...ptx.program import TYPES, Instruction
from ...util.errors import TensorMemoryError
from ..opcode_registry import Step, binds
from ..operands import Reader, make_address_reader, make_reader, split_group, unsupported
from ..single_threads import iter_threads, make_row_reporter
from ..tensor_cores.elements import ELEMENTS, encode
from ..tensor_cores.sparse import count_elements_per_index, expand_groups, explain_undefined, find_undefined
from .descriptors import LONG, ColumnMask, InstructionDescriptor, decode_shared
from .factors import (
    FACTOR_ELEMENTS,
    ScaleBytes,
    find_stored_bits,
    load_metadata,
    load_scales,
    load_shared_factor,
    load_tensor_factor,
)
from .issuing_warps import find_pair, note_uncounted, report_descriptors
from .layouts import DATA_PATHS
from .product_forms import ProductForm

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
#: First of two bits in an address of scales that repeat their byte from the instruction descriptor, in code of CUTLASS
#: 4 (``mma_sm100_desc.hpp``, ``make_runtime_instr_desc``) and of cuTile.
_BYTE_SHIFT = 30


class _Issue(NamedTuple):
    """Operands of an issued instruction: addresses, or descriptors of factors in shared memory."""

    result: int
    a: int
    b: int
    idesc: int
    #: 1 to add to the old result, 0 to replace it.
    accumulates: int
    #: Addresses of scales, words of the mask of lanes, or the column mask.
    extra: tuple[int, ...]
    metadata: int


@binds("tcgen05", having={"mma"})
def _bind_product(instruction: Instruction) -> Step:
    """Bind ``tcgen05.mma{.ws}.cta_group.kind [d], a, b, idesc, {lanes,} p{, shift}``, also with ``.block_scale``."""
    operands = list(instruction.operands)
    metadata = [operands.pop(3)] if "sp" in instruction.modifiers and len(operands) > 3 else []
    form = ProductForm.parse(instruction, operands)
    result, first, second, descriptor, *rest = operands

    def read_tensor_address(operand: Any) -> Reader:
        return make_address_reader(instruction, operand, "tensor")

    read_a = read_tensor_address(first) if form.from_tensor_memory else make_reader(instruction, first, _U64)
    readers = [read_tensor_address(result), read_a]
    readers += [make_reader(instruction, second, _U64), make_reader(instruction, descriptor, _U32)]
    extra_readers = [read_tensor_address(operand) for operand in rest[:2]] if form.scales else []
    extra_readers += [make_reader(instruction, word, _U32) for word in (split_group(rest[0]) if form.masks else ())]
    extra_readers += [make_reader(instruction, mask, _U64) for mask in (rest[1:] if form.is_stationary else ())]
    predicate = rest[2 if form.scales else 1 if form.masks else 0]  # after the scales or the mask
    readers += [make_reader(instruction, predicate, _PRED), *extra_readers]
    readers += [read_tensor_address(operand) for operand in metadata]

    def multiply(chunk: Chunk) -> None:
        for numbers, rows in iter_threads(chunk, readers):
            d, a, b, idesc, accumulates, *extra = numbers
            metadata_address = extra.pop() if form.is_sparse else 0
            issue = _Issue(d, a, b, idesc, accumulates, tuple(extra), metadata_address)
            _Product(chunk, form, issue, rows).execute()
            note_uncounted(chunk, len(rows))
        chunk.has_written, chunk.spins = True, 0

    return multiply


class _Product:
    """One product, issued with equal operands in the blocks ``rows``."""

    def __init__(self, chunk: Chunk, form: ProductForm, issue: _Issue, rows: list[int]) -> None:
        self._chunk, self._form, self._issue, self._rows = chunk, form, issue, rows
        self._report: Report = make_row_reporter(chunk)
        with report_descriptors(chunk):
            idesc = InstructionDescriptor.decode(
                issue.idesc, form.kind, form.group, is_stationary=form.is_stationary, is_sparse=form.is_sparse
            )
            mask = ColumnMask.decode(issue.extra[0], idesc.rows) if form.is_stationary and issue.extra else None
        self._idesc, self._column_mask, self._stored_k = idesc, mask, idesc.k // (2 if form.is_sparse else 1)
        self._path = DATA_PATHS[idesc.rows, form.group, form.is_stationary]
        if form.is_sparse and self._path.rows != 128 and not form.is_stationary:
            problem = "the text of the PTX ISA does not specify where its metadata lies"
            raise unsupported(chunk.instruction, f"a sparse product with {self._path.rows} rows in a block: {problem}")
        if idesc.k == LONG and not form.block:
            text = "K is 96 (bit 31 of the instruction descriptor); use .block16 or .block32 instead of .scale_vec"
            raise unsupported(chunk.instruction, text)
        addresses = [issue.result, *([issue.a] if form.from_tensor_memory else [])]
        addresses += [issue.metadata] if form.is_sparse else []
        bases = [split_address(place)[0] for place in addresses]
        if bases[0] not in self._path.bases or len({*bases}) > 1:
            allowed = " or ".join(map(str, self._path.bases))
            lanes = ", ".join(map(str, bases))
            text = f"addresses with the lanes {lanes}; for {idesc.rows} rows, all must have lane {allowed}"
            raise chunk.make_fault(TensorMemoryError, text)

    def execute(self) -> None:
        pairs = [find_pair(self._chunk, row, self._form.group) for row in self._rows]
        members = [np.array(blocks) for blocks in zip(*pairs, strict=True)]
        b = np.concatenate([self._load_b(blocks) for blocks in members], axis=1)
        # Each part of the columns is a separate product, (blocks, parts, K, N).
        b = b.reshape(len(b), self._path.parts, -1, b.shape[2]).swapaxes(2, 3)
        if self._column_mask:
            b = np.where(self._column_mask.find_zeros(*b.shape[1::2])[:, None], 0, b)
        for member, blocks in enumerate(members):
            self._multiply_block(blocks, member, b)

    def _multiply_block(self, blocks: Array, member: int, b: Array) -> None:
        """Compute and store the rows of the result that ``blocks`` hold: block number ``member`` of each CTA group."""
        idesc, form = self._idesc, self._form
        a = self._load_a(blocks)
        if form.is_sparse:
            a = self._expand_a(blocks, a)
        if form.scales:
            a, b = self._apply_scales(blocks, a, b)
        sums = idesc.signs[0] * idesc.signs[1] * (a @ b)
        base, column = split_address(self._issue.result)
        lanes, columns = base + self._path.find_lanes(), column + np.arange(sums.shape[3])
        tensor = self._chunk.tensor
        if self._issue.accumulates:
            places = blocks[:, None, None, None], lanes[:, :, None], columns
            old = tensor.load(*places, self._report, is_asynchronous=True)
            sums = sums + ELEMENTS[idesc.result].decode(old) * 2.0**-form.shift
        words = encode(sums, idesc.result, saturate=idesc.saturates).astype(np.uint32)
        kept = self._find_kept_lanes(member)
        for part, part_lanes in enumerate(lanes):
            updated = np.flatnonzero(~kept[part_lanes])
            places = blocks[:, None, None], part_lanes[updated, None], columns
            tensor.store(*places, words[:, part, updated], self._report, is_asynchronous=True)

    def _find_kept_lanes(self, member: int) -> Array:
        """Return the mask of the 128 lanes that the product leaves unchanged, from the block's four mask words."""
        if not self._form.masks:
            return np.zeros(LANE_COUNT, bool)
        words = np.array(self._issue.extra[4 * member : 4 * member + 4], np.uint32)
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def _load_a(self, blocks: Array) -> Array:
        """Load the stored elements of A in each block, (blocks, parts or 1, rows, stored K)."""
        form, idesc = self._form, self._idesc
        if form.from_tensor_memory:
            if idesc.transposed[0]:
                problem = "A in tensor memory cannot be transposed; bit 15 of the instruction descriptor must be 0"
                raise unsupported(self._chunk.instruction, problem)
            if form.kind.padded and FACTOR_ELEMENTS[idesc.a_type].bits < 8:
                problem = f"A is {idesc.a_type} in tensor memory; ptxcount supports it only in shared memory"
                raise unsupported(self._chunk.instruction, problem)
            base = split_address(self._issue.a)
            return load_tensor_factor(self._chunk, blocks, self._path, base, self._stored_k, idesc.a_type, self._report)
        extent = (self._path.rows, self._stored_k)
        return self._load_shared(self._issue.a, blocks, extent, idesc.a_type, transposed=idesc.transposed[0])[:, None]

    def _expand_a(self, blocks: Array, stored: Array) -> Array:
        """Expand sparse rows by their metadata in tensor memory; return (blocks, parts, rows, K)."""
        bits = find_stored_bits(self._idesc.a_type, padded=self._form.kind.padded)
        base, selector = split_address(self._issue.metadata), self._idesc.selector
        codes = load_metadata(self._chunk, blocks, self._path, base, bits, selector, self._report)
        unit = count_elements_per_index(bits)
        undefined = codes[find_undefined(codes, unit, ordered=True)]
        if undefined.size:
            raise unsupported(self._chunk.instruction, explain_undefined(int(undefined[0]), unit, ordered=True))
        return expand_groups(np.broadcast_to(stored, (*codes.shape[:3], stored.shape[3])), codes, unit)

    def _load_b(self, blocks: Array) -> Array:
        """Load the columns of B that ``blocks``, one block of each group, hold: (blocks, N / group size, K)."""
        skipped = self._column_mask.shift if self._column_mask else 0
        extent = (skipped + self._idesc.columns // self._form.group, self._idesc.k)
        transposed = self._idesc.transposed[1]
        return self._load_shared(self._issue.b, blocks, extent, self._idesc.b_type, transposed=transposed)[:, skipped:]

    def _load_shared(self, code: int, blocks: Array, extent: tuple[int, int], name: str, *, transposed: bool) -> Array:
        """Load a factor of type ``name`` from each block, (blocks, *extent), by its memory descriptor ``code``."""
        with report_descriptors(self._chunk):
            descriptor = decode_shared(code)
        has_32_byte_atoms = descriptor.lines != 8
        if has_32_byte_atoms and not transposed:
            problem = f"the shared memory descriptor {code:#x} has swizzle 1 (32-byte atoms)"
            raise unsupported(
                self._chunk.instruction,
                f"{problem}, which needs an MN-major factor: set bit 15 (A) or 16 (B) of the instruction descriptor",
            )
        kind = self._form.kind
        width = extent[1] * find_stored_bits(name, padded=kind.padded) // 8
        if not transposed and descriptor.span > 16 and descriptor.start % descriptor.span + width > descriptor.span:
            row = f"a row of {width} bytes begins at byte {descriptor.start % descriptor.span}"
            problem = f"of a {descriptor.span}-byte swizzle line and crosses its end; a row must lie within one line"
            raise unsupported(self._chunk.instruction, f"{row} {problem} (shared memory descriptor {code:#x})")
        load = partial(load_shared_factor, transposed=transposed, padded=kind.padded)
        return np.stack([load(self._chunk, block, descriptor, extent, name, self._report) for block in blocks.tolist()])

    def _apply_scales(self, blocks: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """Multiply each factor by its scales, which are in the tensor memory of each block of a group."""
        form, idesc, parts = self._form, self._idesc, self._path.parts
        scales_of_factors = []
        block = form.block if idesc.k == LONG else idesc.k // form.scales
        sides = zip((self._path.rows, idesc.columns), (1, parts), self._issue.extra[:2], idesc.scale_bytes, strict=True)
        for count, part_count, base, first in sides:
            byte = base >> _BYTE_SHIFT & 3
            if byte not in (0, first):
                problem = f"the address of scales has byte {byte}, the instruction descriptor has {first}"
                raise unsupported(self._chunk.instruction, f"{problem}; they must be equal, or the address must have 0")
            scale, place = ScaleBytes(idesc.scale, first, idesc.k // block), split_address(base % (1 << _BYTE_SHIFT))
            scales = load_scales(self._chunk, blocks, place, count, part_count, scale, self._report)
            scales_of_factors.append(np.repeat(scales, block, axis=2))
        rows, columns = scales_of_factors
        return a * rows[:, None], b * columns.reshape(len(blocks), parts, -1, idesc.k).swapaxes(2, 3)
