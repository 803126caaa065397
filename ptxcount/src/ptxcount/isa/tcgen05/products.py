"""``tcgen05.mma``: matrix products with the result in tensor memory, issued by one thread.

Products of floats are summed in float64 and rounded once. Reads of factors in shared memory are not counted: their
wavefronts are unknown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...machine.address_map import Report
from ...machine.chunk import Chunk
from ...machine.tensor_memory import LANE_COUNT, split_address
from ...ptx.program import TYPES, Instruction
from ...util.errors import TensorMemoryError
from ...util.grammar import join_choices
from ..opcode_registry import Step, binds
from ..operands import Reader, make_address_reader, make_array_reader, make_reader, split_group, unsupported
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
from .issuing_warps import find_cta_group, note_uncounted, report_descriptors
from .layouts import DATA_PATHS
from .product_forms import ProductForm

_U32, _PRED = TYPES["u32"], TYPES["pred"]
#: First of two bits in an address of scales. They repeat the first byte of the scales, which the instruction descriptor
#: has, in code of CUTLASS 4 (``mma_sm100_desc.hpp``, ``make_runtime_instr_desc``) and of cuTile.
_BYTE_SHIFT = 30


class _Issue(NamedTuple):
    """Values of the operands of an issued instruction."""

    #: Address of the result.
    result: int
    #: Memory descriptor of A, or its address in tensor memory.
    a: int
    #: Memory descriptor of B.
    b: int
    #: Instruction descriptor.
    idesc: int
    #: 1 to add to the old result, 0 to replace it.
    accumulates: int
    #: Addresses of the scales of A and B, or words of the mask of lanes, or the column mask.
    extra: tuple[int, ...]
    #: Address of the metadata of a sparse A; otherwise 0.
    metadata: int


@binds("tcgen05", having={"mma"})
def _bind_product(instruction: Instruction) -> Step:
    """Bind ``tcgen05.mma{.ws}{.sp}.cta_group.kind [d], a, b{, [metadata]}, idesc ...`` (see `ProductForm.parse`)."""
    operands = list(instruction.operands)
    metadata = [operands.pop(3)] if "sp" in instruction.modifiers and len(operands) > 3 else []
    form = ProductForm.parse(instruction, operands)
    result, first, second, descriptor, *rest = operands

    def read_tensor_address(operand: Any) -> Reader:
        return make_address_reader(instruction, operand, "tensor")

    def read_descriptor(operand: Any) -> Reader:
        return make_array_reader(instruction, operand, TYPES["u64"])

    read_a = read_tensor_address(first) if form.from_tensor_memory else read_descriptor(first)
    if form.scales:  # [scales of a], [scales of b], p
        predicate, extra_readers = rest[2], [read_tensor_address(operand) for operand in rest[:2]]
    elif form.masks:  # {mask words}, p{, scale-input-d}
        predicate, extra_readers = rest[1], [make_reader(instruction, word, _U32) for word in split_group(rest[0])]
    else:  # p{, scale-input-d}, or p{, column mask}
        column_mask = rest[1:] if form.is_stationary else []
        predicate, extra_readers = rest[0], [read_descriptor(operand) for operand in column_mask]
    readers = [read_tensor_address(result), read_a]
    readers += [read_descriptor(second), make_reader(instruction, descriptor, _U32)]
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
                issue.idesc, form.kind, form.group_size, is_stationary=form.is_stationary, is_sparse=form.is_sparse
            )
            mask = ColumnMask.decode(issue.extra[0], idesc.rows) if form.is_stationary and issue.extra else None
        self._idesc, self._column_mask, self._stored_k = idesc, mask, idesc.k // (2 if form.is_sparse else 1)
        self._path = DATA_PATHS[idesc.rows, form.group_size, form.is_stationary]
        if form.is_sparse and self._path.rows != 128 and not form.is_stationary:
            given = f"it is a sparse product with {self._path.rows} rows in a block"
            problem = "the PTX ISA does not specify where its metadata lies; use 128 rows"
            raise unsupported(chunk.instruction, f"{given}; {problem}")
        if idesc.k == LONG and not form.block:
            text = "K is 96 (bit 31 of the instruction descriptor); use .block16 or .block32 instead of .scale_vec"
            raise unsupported(chunk.instruction, text)
        self._check_lanes()

    def _check_lanes(self) -> None:
        """Raise `TensorMemoryError` unless all operands in tensor memory begin at one lane that the layout allows."""
        addresses = {"the result": self._issue.result}
        if self._form.from_tensor_memory:
            addresses["A"] = self._issue.a
        if self._form.is_sparse:
            addresses["the metadata"] = self._issue.metadata
        lanes = {name: split_address(address)[0] for name, address in addresses.items()}
        first_lane = lanes["the result"]
        if first_lane not in self._path.bases or {*lanes.values()} != {first_lane}:
            given = ", ".join(f"{name} begins at lane {lane}" for name, lane in lanes.items())
            allowed = join_choices(self._path.bases)
            needed = f"with {self._idesc.rows} rows, all operands in tensor memory must begin at lane {allowed}"
            raise self._chunk.make_fault(TensorMemoryError, f"{given}; {needed}")

    def execute(self) -> None:
        groups = [find_cta_group(self._chunk, row, self._form.group_size) for row in self._rows]
        # The first block of each group, and for pairs the second of each.
        blocks_by_place = [np.array(blocks) for blocks in zip(*groups, strict=True)]
        b = np.concatenate([self._load_b(blocks) for blocks in blocks_by_place], axis=1)
        # Each part of the columns is a separate product, (groups, parts, K, N).
        b = b.reshape(len(b), self._path.parts, -1, b.shape[2]).swapaxes(2, 3)
        if self._column_mask:
            b = np.where(self._column_mask.find_zeros(*b.shape[1::2])[:, None], 0, b)
        for place, blocks in enumerate(blocks_by_place):
            self._compute_rows(blocks, place, b)

    def _compute_rows(self, blocks: Array, place: int, b: Array) -> None:
        """Compute and store the rows of the result in ``blocks``: the first (``place`` 0) or second of each group."""
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
        kept = self._find_kept_lanes(place)
        for part, part_lanes in enumerate(lanes):
            updated = np.flatnonzero(~kept[part_lanes])
            places = blocks[:, None, None], part_lanes[updated, None], columns
            tensor.store(*places, words[:, part, updated], self._report, is_asynchronous=True)

    def _find_kept_lanes(self, place: int) -> Array:
        """Return the mask of lanes that the product leaves unchanged, in the block at ``place`` of a CTA group."""
        if not self._form.masks:
            return np.zeros(LANE_COUNT, bool)
        words = np.array(self._issue.extra[4 * place : 4 * place + 4], np.uint32)
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def _load_a(self, blocks: Array) -> Array:
        """Load A as stored, without zeros of a sparse A: (blocks, parts, rows, K), or one part from shared memory."""
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
        return self._load_shared("A", blocks, (self._path.rows, self._stored_k))[:, None]

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
        """Load the columns of B in ``blocks``, one block of each CTA group: (blocks, N / blocks of a group, K)."""
        skipped = self._column_mask.shift if self._column_mask else 0
        columns = skipped + self._idesc.columns // self._form.group_size
        return self._load_shared("B", blocks, (columns, self._idesc.k))[:, skipped:]

    def _load_shared(self, factor: str, blocks: Array, extent: tuple[int, int]) -> Array:
        """Load the factor ``A`` or ``B`` from the shared memory of each block, (blocks, *extent)."""
        idesc, kind, instruction = self._idesc, self._form.kind, self._chunk.instruction
        if factor == "A":
            bits, name, transposed = self._issue.a, idesc.a_type, idesc.transposed[0]
        else:
            bits, name, transposed = self._issue.b, idesc.b_type, idesc.transposed[1]
        with report_descriptors(self._chunk):
            descriptor = decode_shared(bits)
        source = f"the shared memory descriptor {bits:#x} of {factor}"
        has_32_byte_atoms = descriptor.lines != 8
        if has_32_byte_atoms and not transposed:
            problem = f"bits 61 to 63 of {source} are 1: a swizzle with 32-byte atoms, only for MN-major factors"
            order_bit = 15 if factor == "A" else 16
            raise unsupported(instruction, f"{problem}; set bit {order_bit} of the instruction descriptor")
        width = extent[1] * find_stored_bits(name, padded=kind.padded) // 8
        first = descriptor.start % descriptor.span
        if not transposed and descriptor.span > 16 and first + width > descriptor.span:
            line = f"a {descriptor.span}-byte swizzle line"
            problem = f"by {source}, a row begins at byte {first} of {line} and has {width} bytes"
            raise unsupported(instruction, f"{problem}; ptxcount supports only rows within one line")
        options = {"transposed": transposed, "padded": kind.padded}
        return np.stack(
            [
                load_shared_factor(self._chunk, block, descriptor, extent, name, self._report, **options)
                for block in blocks.tolist()
            ]
        )

    def _apply_scales(self, blocks: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """Multiply A, (blocks, parts, rows, K), and B, (blocks, parts, K, columns), by their scales."""
        idesc, parts = self._idesc, self._path.parts
        (a_address, b_address), (a_byte, b_byte) = self._issue.extra, idesc.scale_bytes
        a_scales = self._load_scales("A", blocks, a_address, a_byte, self._path.rows, parts=1)
        b_scales = self._load_scales("B", blocks, b_address, b_byte, idesc.columns, parts)
        return a * a_scales[:, None], b * b_scales.reshape(len(blocks), parts, -1, idesc.k).swapaxes(2, 3)

    def _load_scales(self, factor: str, blocks: Array, address: int, first_byte: int, count: int, parts: int) -> Array:
        """Load the scales of ``count`` rows of A or columns of B, repeated for each element: (blocks, count, K)."""
        idesc = self._idesc
        byte = address >> _BYTE_SHIFT & 3
        if byte not in (0, first_byte):
            problem = f"bits 30 and 31 of the address of {factor}'s scales are {byte}; they must be 0, or equal"
            descriptor = f"the scale factor ID in the instruction descriptor, {first_byte}"
            raise unsupported(self._chunk.instruction, f"{problem} {descriptor}")
        block = self._form.block if idesc.k == LONG else idesc.k // self._form.scales
        scale, base = ScaleBytes(idesc.scale, first_byte, idesc.k // block), split_address(address % (1 << _BYTE_SHIFT))
        scales = load_scales(self._chunk, blocks, base, count, parts, scale, self._report)
        return np.repeat(scales, block, axis=2)
