"""Loads, stores, copies and the stack (PTX ISA, "Data Movement and Conversion Instructions")."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import ALL_THREADS, Array, find_first, spread, unsigned
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Address, Instruction, LoadPart, Operand, Register, Type
from ..util.errors import MisalignedError
from .opcode_registry import Step, binds, make_step
from .operands import (
    STACK,
    Reader,
    add_offset,
    expect_count,
    expect_modifiers,
    join_modifiers,
    make_address_reader,
    make_array_reader,
    make_reader,
    parse_integer,
    split_name,
    split_vector,
    unsupported,
)
from .spaces import CACHE_AND_ORDER, decode_access, dispatch_by_space, find_fetch_options

_READ_ONLY = ("constant", "parameter")


@binds("ld", "ldu")
def _bind_load(instruction: Instruction) -> Step:
    """Bind ``ld{.hints}{.space}{.vec}.type d, [a]``; ``d`` may be wider than the type."""
    space, count, kind, _ = decode_access(instruction)
    expect_count(instruction, 2)
    places = split_vector(instruction, instruction.operands[0], count)
    source = instruction.operands[1]
    # A constant load from a compile-time address becomes an instruction operand, and issues no request.
    has_variable_address = isinstance(source, Address) and isinstance(source.base, Register)
    fetch = {"fetch": 0} if instruction.is_removed else find_fetch_options(instruction)
    is_strong = not {"volatile", "relaxed", "acquire"}.isdisjoint(instruction.modifiers)
    parts = instruction.parts or (LoadPart(0, kind.size * count),)

    def load(chunk: Chunk, resolved_space: str, byte_address: Value) -> list[Array]:
        if resolved_space == "parameter" and isinstance(byte_address, np.ndarray) and byte_address.size == 1:
            values = chunk.context.parameters.load(byte_address, kind.size, count, ALL_THREADS, chunk.make_reporter())
            return [value.view(kind.dtype) for value in values]  # one value for all threads
        if is_strong:
            chunk.spins += 1
            chunk.order_blocks(chunk.active)
            chunk.shared.order_blocks(chunk.active)
        options = fetch if resolved_space == "global" else {}
        report = chunk.make_reporter(is_weak=not is_strong)
        values = chunk.find_memory(resolved_space).load(byte_address, kind.size, count, chunk.active, report, **options)
        if not instruction.is_removed and (has_variable_address or resolved_space not in _READ_ONLY):
            for offset, width in parts:
                place = add_offset(TYPES["u64"], byte_address, np.full((1, 1), offset)) if offset else byte_address
                chunk.record_polling(resolved_space, "load", width, place)
        return [value.view(kind.dtype) for value in values]

    load_step = dispatch_by_space(space, make_address_reader(instruction, source, space), load)
    return make_step(instruction, [(place, kind) for place in places], [], load_step, wider=True)


@binds("st")
def _bind_store(instruction: Instruction) -> Step | None:
    """Bind ``st{.hints}{.space}{.vec}.type [a], b``; ``b`` may be wider than the type."""
    if {"async", "bulk"} & {*instruction.modifiers}:
        return None
    space, count, kind, _ = decode_access(instruction)
    expect_count(instruction, 2)
    if space in _READ_ONLY:
        raise unsupported(instruction, f"{space} memory is read-only; store to .global")
    sources = split_vector(instruction, instruction.operands[1], count)
    dtype, read = unsigned(kind.size), make_address_reader(instruction, instruction.operands[0], space)
    is_weak = {"volatile", "relaxed", "release"}.isdisjoint(instruction.modifiers)

    def store(chunk: Chunk, *values: Array) -> list[Array]:
        chunk.has_written, chunk.spins = True, 0  # a store is progress: a loop that polls may end by it
        parts = [value.view(dtype) for value in values]

        def store_parts(chunk: Chunk, resolved_space: str, byte_address: Value) -> list[Array]:
            report = chunk.make_reporter(is_weak=is_weak)
            chunk.find_memory(resolved_space).store(byte_address, kind.size, parts, chunk.active, report)
            chunk.record(resolved_space, "store", kind.size * count, byte_address)
            return []

        return dispatch_by_space(space, read, store_parts)(chunk)

    return make_step(instruction, [], [(source, kind) for source in sources], store, wider=True)


@binds("cp")
def _bind_bulk_prefetch(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.bulk.prefetch.L2.global [a], size``: only check the address's alignment.

    Prefetches of tensors do nothing.
    """
    if not {"bulk", "prefetch"} <= {*instruction.modifiers}:
        return None
    if "tensor" in instruction.modifiers:
        return _bind_no_operation(instruction)
    expect_count(instruction, 2, 3)
    read = make_address_reader(instruction, instruction.operands[0], "global")
    return lambda chunk: _check_alignment(chunk, "a prefetch", read(chunk), 16)


def _check_alignment(chunk: Chunk, access: str, place: Value, width: int) -> None:
    addresses = spread(dense(place), chunk.shape)
    wrong = spread(chunk.active, chunk.shape) & (addresses % width != 0)
    if wrong.any():
        row, thread = find_first(wrong)
        address = int(addresses[row, thread])
        text = f"{access} at {address:#x}; the address must be a multiple of {width}"
        chunk.make_reporter()(MisalignedError, (row, thread), text, address)


#: Modifiers of ``cp.async`` in the forms that only order copies.
_COPY_ORDERING = {"commit_group", "wait_group", "wait_all"}


@binds("cp", having=_COPY_ORDERING)
def _bind_copy_ordering(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.commit_group``, ``wait_all``, and ``wait_group n``, which waits for all but the ``n`` newest.

    The forms for bulk copies do nothing.
    """
    expect_modifiers(instruction, instruction.modifiers, CACHE_AND_ORDER | _COPY_ORDERING | {"async", "bulk", "read"})
    if "bulk" in instruction.modifiers:
        return _bind_no_operation(instruction)
    if "commit_group" in instruction.modifiers:
        return lambda chunk: chunk.shared.commit_copies(chunk.active)
    kept_groups = [parse_integer(instruction, operand, "the number of groups") for operand in instruction.operands]
    return lambda chunk: chunk.shared.wait_copies(chunk.active, *kept_groups)


@binds("cp")
def _bind_async_copy(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.{ca,cg}.shared.global [to], [from], size{, bytes}``, which copies immediately.

    Only ``bytes`` bytes are copied, and zeros follow. In place of ``bytes``, a predicate may stand: if it is true, only
    zeros are stored.
    """
    names = [name for name in instruction.modifiers if name not in CACHE_AND_ORDER]
    if not {"bulk", "mbarrier", *_COPY_ORDERING}.isdisjoint(names):
        return None
    expect_count(instruction, 3, 4)
    target, source, size, *byte_count = instruction.operands
    width = parse_integer(instruction, size, "the copied size")
    if names not in (["async", "shared", "global"], ["async", "shared::cta", "global"]):
        raise unsupported(instruction, "its state spaces must be .shared or .shared::cta, then .global")
    if width not in (4, 8, 16):
        raise unsupported(instruction, f"the copied size is {width}; allowed are 4, 8, 16")
    instruction.units.add(4)  # copies words: see `decode_access`
    return _AsyncCopy(
        width,
        make_address_reader(instruction, target, "shared"),
        make_address_reader(instruction, source, "global"),
        _make_count_reader(instruction, byte_count, width),
        find_fetch_options(instruction),
    ).execute


def _make_count_reader(instruction: Instruction, operands: list[Operand], width: int) -> Callable[[Chunk], Array]:
    """Return a function that reads the number of copied bytes; ``operands`` has the operand for them, if any."""
    if not operands:
        return lambda chunk: np.full((1, 1), width)
    (operand,) = operands
    if isinstance(operand, Register) and operand.type.kind == "pred":
        read_predicate = make_reader(instruction, operand, operand.type)
        return lambda chunk: np.where(dense(read_predicate(chunk)), 0, width)
    return make_array_reader(instruction, operand, TYPES["u32"])


@dataclass(frozen=True)
class _AsyncCopy:
    #: Bytes per thread that are stored: 4, 8 or 16.
    width: int
    read_target: Reader
    read_source: Reader
    #: Function that reads the number of bytes that are copied; zeros follow.
    read_count: Callable[[Chunk], Array]
    fetch: dict[str, int]

    def execute(self, chunk: Chunk) -> None:
        """Copy, and count the load, and the store in shared memory.

        The store has its own kind: counters of shared stores on an H200 do not include such copies.
        """
        target, source, active, width = self.read_target(chunk), self.read_source(chunk), chunk.active, self.width
        copied = np.where(active, self.read_count(chunk), 0)
        if copied.max() > width:
            problem = f"the source size is {copied.max()}; at most {width} bytes are allowed"
            raise unsupported(chunk.instruction, problem)
        words = [np.zeros((1, 1), np.uint32)] * (width // 4)
        chunk.active = active & (copied > 0)
        if chunk.active.any():
            if (chunk.active & (copied < width)).any():
                words = self._load_bytes(chunk, source, copied)
            else:
                memory, report = chunk.context.memory, chunk.make_reporter()
                words = memory.load(source, 4, len(words), chunk.active, report, **self.fetch)
                words = [np.where(chunk.active, word, 0).astype(np.uint32) for word in words]
            chunk.record("global", "load", width, source)
        chunk.active = active
        chunk.shared.store(target, 4, words, active, chunk.make_reporter())
        chunk.shared.start_copies(target, width, active)
        chunk.record("shared", "copy", width, target)

    def _load_bytes(self, chunk: Chunk, source: Value, copied: Array) -> list[Array]:
        """Load ``copied`` bytes of each thread one by one; return them and the zeros after them as words."""
        _check_alignment(chunk, f"a copy of {self.width} bytes", source, self.width)
        lacking = spread(np.where(chunk.active, self.width - copied, 0), chunk.shape)
        chunk.find_counters("global", "load", self.width).useful_bytes -= int(lacking.sum())
        content = np.zeros((*chunk.shape, self.width), np.uint8)
        for offset in range(int(copied.max())):
            active, address = chunk.active & (copied > offset), add_offset(TYPES["u64"], source, np.array([[offset]]))
            (byte,) = chunk.context.memory.load(address, 1, 1, active, chunk.make_reporter(), **self.fetch)
            content[..., offset] = np.where(active, byte, 0)
        return [content.view(np.uint32)[..., word] for word in range(self.width // 4)]


@binds("alloca", "stacksave", "stackrestore")
def _bind_stack(instruction: Instruction) -> Step:
    """Bind ``alloca.type d, size{, align}``, ``stacksave.type d``, ``stackrestore.type a``; the stack grows upwards.

    The register `STACK` has the number of used bytes, which is also the value that ``stacksave`` returns.
    """
    types = [kind.name for kind in split_name(instruction)[1]] or ["u64"]
    if types not in (["u32"], ["u64"]):
        raise unsupported(instruction, f"its type is {join_modifiers(types)}; allowed are .u32, .u64")
    kind, stack = TYPES[types[0]], (STACK, STACK.type)
    if instruction.opcode == "alloca":
        return _bind_allocation(instruction, kind)
    expect_count(instruction, 1)
    register = (instruction.operands[0], kind)
    if instruction.opcode == "stacksave":
        return make_step(instruction, [register], [stack], lambda chunk, used: [used.astype(kind.dtype)])
    return make_step(instruction, [stack], [register], lambda chunk, saved: [saved.astype(np.uint64)])


def _bind_allocation(instruction: Instruction, kind: Type) -> Step:
    expect_count(instruction, 2, 3)
    target, size, *alignment = instruction.operands
    align = parse_integer(instruction, alignment[0], "the alignment") if alignment else 8

    def allocate(chunk: Chunk, used: Array, size: Array) -> list[Array]:
        start = (used.astype(np.int64) + align - 1) // align * align
        address = chunk.context.symbols[STACK.name] + start
        return [address.astype(kind.dtype), (start + size.astype(np.int64)).astype(np.uint64)]

    stack = (STACK, STACK.type)
    return make_step(instruction, [(target, kind), stack], [stack, (size, kind)], allocate)


@binds(
    "membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "griddepcontrol", "pmevent",
    "setmaxnreg",
)  # fmt: skip
def _bind_no_operation(instruction: Instruction) -> Step:
    """Bind fences, which only matter for the race check of shared memory, and hints and waits, which do nothing.

    Results need no fences: threads see all earlier stores here.
    """
    if instruction.opcode in ("fence", "membar"):
        return lambda chunk: chunk.shared.order_fences(chunk.active)
    return lambda chunk: None
