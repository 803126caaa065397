"""Loads, stores, copies and the stack (PTX ISA, "Data Movement and Conversion Instructions")."""

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread, unsigned
from ..machine.chunk import ALL_THREADS, Chunk
from ..ptx.program import TYPES, Address, Immediate, Instruction, Register, format_operand
from ..util.errors import MisalignedError
from .opcode_registry import Step, binds, make_step
from .operands import (
    STACK,
    add_offset,
    as_array,
    expect_count,
    join_modifiers,
    make_address_reader,
    make_reader,
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
    fetch = find_fetch_options(instruction)
    may_poll = not {"volatile", "relaxed", "acquire"}.isdisjoint(instruction.modifiers)

    def load(chunk: Chunk, resolved_space: str, byte_address: Value) -> list[Array]:
        if resolved_space == "parameter" and isinstance(byte_address, np.ndarray) and byte_address.size == 1:
            values = chunk.context.parameters.load(byte_address, kind.size, count, ALL_THREADS, chunk.make_reporter())
            return [value.view(kind.dtype) for value in values]  # one value for all threads
        if may_poll:
            chunk.spins += 1
            chunk.order_blocks(chunk.active)
            chunk.shared.order_blocks(chunk.active)
        options = fetch if resolved_space == "global" else {}
        report = chunk.make_reporter(is_weak=not may_poll)
        values = chunk.find_memory(resolved_space).load(byte_address, kind.size, count, chunk.active, report, **options)
        if has_variable_address or resolved_space not in _READ_ONLY:
            chunk.record_polling(resolved_space, "load", kind.size * count, byte_address)
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
        raise unsupported(instruction, f"{space} memory is read-only")
    sources = split_vector(instruction, instruction.operands[1], count)
    dtype, read = unsigned(kind.size), make_address_reader(instruction, instruction.operands[0], space)
    is_plain = {"volatile", "relaxed", "release"}.isdisjoint(instruction.modifiers)

    def store(chunk: Chunk, *values: Array) -> list[Array]:
        chunk.has_written, chunk.spins = True, 0  # a store is progress: a loop that polls may end by it
        parts = [value.view(dtype) for value in values]

        def store_parts(chunk: Chunk, resolved_space: str, byte_address: Value) -> list[Array]:
            report = chunk.make_reporter(is_weak=is_plain)
            chunk.find_memory(resolved_space).store(byte_address, kind.size, parts, chunk.active, report)
            chunk.record(resolved_space, "store", kind.size * count, byte_address)
            return []

        return dispatch_by_space(space, read, store_parts)(chunk)

    return make_step(instruction, [], [(source, kind) for source in sources], store, wider=True)


@binds("cp")
def _bind_bulk_prefetch(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.bulk.prefetch.L2.global [a], size``. Only the address is checked, as on the GPU."""
    if not {"bulk", "prefetch"} <= {*instruction.modifiers} or "tensor" in instruction.modifiers:
        return None
    expect_count(instruction, 2, 3)
    read = make_address_reader(instruction, instruction.operands[0], "global")

    return lambda chunk: _check_alignment(chunk, "a prefetch", read(chunk), 16)


def _check_alignment(chunk: Chunk, access: str, place: Value, width: int) -> None:
    addresses = spread(dense(place), chunk.shape)
    wrong = spread(chunk.active, chunk.shape) & (addresses % width != 0)
    for row, thread in np.argwhere(wrong)[:1].tolist():
        address = int(addresses[row, thread])
        text = f"{access} at {address:#x}: a multiple of {width} is needed"
        chunk.make_reporter()(MisalignedError, (row, thread), text, address)


#: Modifiers of ``cp.async`` in the forms that only order copies.
_COPY_ORDERING = {"commit_group", "wait_group", "wait_all"}


@binds("cp")
def _bind_async_copy(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.{ca,cg}.shared.global [to], [from], size{, bytes}``, which copies immediately.

    Zeros follow the ``bytes``. A true predicate in place of ``bytes`` stores only zeros. In shared memory, these copies
    have their own kind: counters of shared stores on an H200 do not include such copies.

    Also bind the forms that only order copies, and prefetches of tensors, which do nothing.
    """
    names = [name for name in instruction.modifiers if name not in CACHE_AND_ORDER]
    only_orders = not _COPY_ORDERING.isdisjoint(names) and {*names} <= _COPY_ORDERING | {"async", "bulk", "read"}
    if only_orders and "bulk" not in names:
        return _make_copy_wait(instruction, names[-1])
    if only_orders or {"bulk", "prefetch", "tensor"} <= {*names}:
        return _bind_no_operation(instruction)
    if {"bulk", "mbarrier"} & {*names}:
        return None
    expect_count(instruction, 3, 4)
    target, source, size, *byte_count = instruction.operands
    width = int(size.value) if isinstance(size, Immediate) else 0
    if names not in (["async", "shared", "global"], ["async", "shared::cta", "global"]):
        raise unsupported(instruction, "its state spaces must be .shared or .shared::cta, then .global")
    if width not in (4, 8, 16):
        raise unsupported(instruction, f"the copied size is {format_operand(size)}; the number 4, 8 or 16 is needed")
    count = width // 4
    read_target = make_address_reader(instruction, target, "shared")
    read_source = make_address_reader(instruction, source, "global")
    is_skippable = bool(byte_count) and isinstance(byte_count[0], Register) and byte_count[0].type.kind == "pred"
    kind = TYPES["pred" if is_skippable else "u32"]
    read_count = make_reader(instruction, byte_count[0], kind) if byte_count else None
    instruction.units.add(4)
    fetch = find_fetch_options(instruction)

    def load_bytes(chunk: Chunk, place: Value, copied: Array) -> list[Array]:
        """Load ``count`` words for each thread: ``copied`` bytes of memory, then zeros."""
        _check_alignment(chunk, f"a copy of {width} bytes", place, width)
        lacking = spread(np.where(chunk.active, width - copied, 0), chunk.shape)
        chunk.find_counters("global", "load", width).useful_bytes -= int(lacking.sum())
        content = np.zeros((*chunk.shape, width), np.uint8)
        for byte in range(int(copied.max())):
            active, source = chunk.active & (copied > byte), add_offset(TYPES["u64"], place, np.array([[byte]]))
            (value,) = chunk.context.memory.load(source, 1, 1, active, chunk.make_reporter(), **fetch)
            content[..., byte] = np.where(active, value, 0)
        return [content.view(np.uint32)[..., word] for word in range(count)]

    def step(chunk: Chunk) -> None:
        shared, place, active = read_target(chunk), read_source(chunk), chunk.active
        operand = np.full((1, 1), width) if read_count is None else as_array(read_count(chunk), kind)
        copied = np.where(active, np.where(operand, 0, width) if is_skippable else operand, 0)
        if copied.max() > width:
            raise unsupported(instruction, f"the source size is {copied.max()}; at most {width} bytes are allowed")
        values = [np.zeros((1, 1), np.uint32)] * count
        chunk.active = active & (copied > 0)
        if chunk.active.any():
            if (chunk.active & (copied < width)).any():
                values = load_bytes(chunk, place, copied)
            else:
                values = chunk.context.memory.load(place, 4, count, chunk.active, chunk.make_reporter(), **fetch)
                values = [np.where(chunk.active, value, 0).astype(np.uint32) for value in values]
            chunk.record("global", "load", width, place)
        chunk.active = active
        chunk.shared.store(shared, 4, values, active, chunk.make_reporter())
        chunk.shared.start_copies(shared, width, active)
        chunk.record("shared", "copy", width, shared)

    return step


def _make_copy_wait(instruction: Instruction, name: str) -> Step:
    """Bind ``cp.async.commit_group``, ``wait_all``, or ``wait_group n``, which waits for all but the ``n`` newest."""
    newest = [int(operand.value) for operand in instruction.operands if isinstance(operand, Immediate)]
    if name == "commit_group":
        return lambda chunk: chunk.shared.commit_copies(chunk.active)
    return lambda chunk: chunk.shared.wait_copies(chunk.active, *newest)


@binds("alloca", "stacksave", "stackrestore")
def _bind_stack(instruction: Instruction) -> Step:
    """Bind ``alloca.type d, size{, align}``, ``stacksave.type d``, ``stackrestore.type a``; the stack grows upwards.

    The register `STACK` has the number of used bytes, which is also the value that ``stacksave`` returns.
    """
    types = [kind.name for kind in split_name(instruction)[1]] or ["u64"]
    if types not in (["u32"], ["u64"]):
        raise unsupported(instruction, f"its type must be .u32 or .u64, not {join_modifiers(types)}")
    kind, stack, operands = TYPES[types[0]], (STACK, STACK.type), instruction.operands
    expect_count(instruction, *((2, 3) if instruction.opcode == "alloca" else (1,)))
    if instruction.opcode == "stackrestore":
        return make_step(instruction, [stack], [(operands[0], kind)], lambda chunk, saved: [saved.astype(np.uint64)])
    align = int(operands[2].value) if len(operands) > 2 and isinstance(operands[2], Immediate) else 8

    def allocate(chunk: Chunk, used: Array, *size: Array) -> list[Array]:
        if not size:
            return [used.astype(kind.dtype)]
        start = (used.astype(np.int64) + align - 1) // align * align
        place = chunk.context.symbols[STACK.name] + start
        return [place.astype(kind.dtype), (start + size[0].astype(np.int64)).astype(np.uint64)]

    sizes = operands[1:2]  # none for stacksave, which only reads the stack
    writes = [(operands[0], kind), *[stack] * len(sizes)]
    return make_step(instruction, writes, [stack, *((size, kind) for size in sizes)], allocate)


@binds(
    "membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "griddepcontrol", "pmevent",
    "setmaxnreg",
)  # fmt: skip
def _bind_no_operation(instruction: Instruction) -> Step:
    """Bind fences, which only matter for the race check of shared memory, and hints and waits, which do nothing.

    Results need none of them: threads see all earlier stores here.
    """
    if instruction.opcode in ("fence", "membar"):
        return lambda chunk: chunk.shared.order_fences(chunk.active)
    return lambda chunk: None
