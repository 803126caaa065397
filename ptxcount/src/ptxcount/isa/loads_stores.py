"""Loads, stores, copies and the stack (PTX ISA, "Data Movement and Conversion Instructions")."""

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread, unsigned
from ..machine.chunk import ALL_THREADS, Chunk
from ..ptx.program import TYPES, Address, Immediate, Instruction, Register
from ..util.errors import MisalignedError
from .opcode_registry import Step, binds, step_of
from .operands import STACK, address, as_array, elements, expect_count, plus, reader, split_name, unsupported
from .spaces import HINTS, decode_access, fetch_options, make_access

#: Read-only spaces.
_READ = ("constant", "parameter")


@binds("ld", "ldu")
def _load(instruction: Instruction) -> Step:
    """Bind ``ld{.hints}{.space}{.vec}.type d, [a]``; ``d`` may be wider than the type."""
    space, count, kind, _ = decode_access(instruction)
    expect_count(instruction, 2)
    places = elements(instruction.operands[0], count, instruction)
    source = instruction.operands[1]
    # A constant load from a compile-time address becomes an instruction operand, and issues no request.
    indexed = isinstance(source, Address) and isinstance(source.base, Register)
    fetch = fetch_options(instruction)
    polls = not {"volatile", "relaxed", "acquire"}.isdisjoint(instruction.modifiers)

    def load(chunk: Chunk, resolved_space: str, byte_address: Value) -> list[Array]:
        if resolved_space == "parameter" and isinstance(byte_address, np.ndarray) and byte_address.size == 1:
            values = chunk.context.parameters.load(byte_address, kind.size, count, ALL_THREADS, chunk.make_reporter())
            return [value.view(kind.dtype) for value in values]  # one value for all threads
        if polls:
            chunk.spins += 1
            chunk.order_blocks(chunk.active)
            chunk.shared.order_blocks(chunk.active)
        options = fetch if resolved_space == "global" else {}
        report = chunk.make_reporter(is_weak=not polls)
        values = chunk.find_memory(resolved_space).load(byte_address, kind.size, count, chunk.active, report, **options)
        if indexed or resolved_space not in _READ:
            chunk.record_polling(resolved_space, "load", kind.size * count, byte_address)
        return [value.view(kind.dtype) for value in values]

    load_step = make_access(space, address(instruction, source, space), load)
    return step_of(instruction, [(each, kind) for each in places], [], load_step, wider=True)


@binds("st")
def _store(instruction: Instruction) -> Step | None:
    """Bind ``st{.hints}{.space}{.vec}.type [a], b``; ``b`` may be wider than the type."""
    if {"async", "bulk"} & {*instruction.modifiers}:
        return None
    space, count, kind, _ = decode_access(instruction)
    expect_count(instruction, 2)
    if space in _READ:
        raise unsupported(instruction, f"{space} memory is read-only")
    sources = elements(instruction.operands[1], count, instruction)
    dtype, read = unsigned(kind.size), address(instruction, instruction.operands[0], space)
    plain = {"volatile", "relaxed", "release"}.isdisjoint(instruction.modifiers)

    def store(chunk: Chunk, *values: Array) -> list[Array]:
        chunk.has_written, chunk.spins = True, 0  # a store is progress: a loop that polls may end by it
        parts = [value.view(dtype) for value in values]

        def store_parts(chunk: Chunk, resolved_space: str, byte_address: Value) -> list[Array]:
            report = chunk.make_reporter(is_weak=plain)
            chunk.find_memory(resolved_space).store(byte_address, kind.size, parts, chunk.active, report)
            chunk.record(resolved_space, "store", kind.size * count, byte_address)
            return []

        return make_access(space, read, store_parts)(chunk)

    return step_of(instruction, [], [(source, kind) for source in sources], store, wider=True)


@binds("cp")
def _prefetch_bulk(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.bulk.prefetch.L2.global [a], size``. Only the address is checked, as on the GPU."""
    if not {"bulk", "prefetch"} <= {*instruction.modifiers} or "tensor" in instruction.modifiers:
        return None
    expect_count(instruction, 2, 3)
    read = address(instruction, instruction.operands[0], "global")

    return lambda chunk: _check_alignment(chunk, "a prefetch", read(chunk), 16)


def _check_alignment(chunk: Chunk, access: str, place: Value, width: int) -> None:
    """Report the first active thread whose address is not a multiple of ``width`` bytes."""
    addresses = spread(dense(place), chunk.shape)
    wrong = spread(chunk.active, chunk.shape) & (addresses % width != 0)
    for row, thread in np.argwhere(wrong)[:1].tolist():
        address = int(addresses[row, thread])
        text = f"{access} at {address:#x}: a multiple of {width} is needed"
        chunk.make_reporter()(MisalignedError, (row, thread), text, address)


#: Forms of ``cp.async`` that only order copies.
_WAITS = {"async", "bulk", "commit_group", "wait_group", "wait_all", "read"}


@binds("cp")
def _async_copy(instruction: Instruction) -> Step | None:
    """Bind ``cp.async.{ca,cg}.shared.global [to], [from], size{, bytes}``, which copies immediately.

    Zeros follow the ``bytes``. A true predicate in place of ``bytes`` stores only zeros. In shared memory, these copies
    have their own kind: counters of shared stores on an H200 do not include them.
    """
    names = [name for name in instruction.modifiers if name not in HINTS]
    if {*names} <= _WAITS or {"prefetch", "tensor"} <= {*names}:
        return _wait_for_copies(instruction, names[-1]) if "bulk" not in names else _nothing(instruction)
    if {"bulk", "mbarrier"} & {*names}:
        return None
    expect_count(instruction, 3, 4)
    to, source, size, *byte_count = instruction.operands
    width = int(size.value) if isinstance(size, Immediate) else 0
    if names not in (["async", "shared", "global"], ["async", "shared::cta", "global"]) or width not in (4, 8, 16):
        raise unsupported(instruction)
    count = width // 4
    read_to, read_from = address(instruction, to, "shared"), address(instruction, source, "global")
    skips = bool(byte_count) and isinstance(byte_count[0], Register) and byte_count[0].type.kind == "p"
    kind = TYPES["pred" if skips else "u32"]
    read_count = reader(instruction, byte_count[0], kind) if byte_count else None
    instruction.units.add(4)
    fetch = fetch_options(instruction)

    def load_bytes(chunk: Chunk, place: Value, copied: Array) -> list[Array]:
        """Load words, of which each thread reads only the first ``copied`` bytes; the others are zeros."""
        _check_alignment(chunk, f"a copy of {width} bytes", place, width)
        lacking = spread(np.where(chunk.active, width - copied, 0), chunk.shape)
        chunk.find_counters("global", "load", width).useful_bytes -= int(lacking.sum())
        content = np.zeros((*chunk.shape, width), np.uint8)
        for byte in range(int(copied.max())):
            active, source = chunk.active & (copied > byte), plus(TYPES["u64"], place, np.array([[byte]]))
            (value,) = chunk.context.memory.load(source, 1, 1, active, chunk.make_reporter(), **fetch)
            content[..., byte] = np.where(active, value, 0)
        return [content.view(np.uint32)[..., word] for word in range(count)]

    def step(chunk: Chunk) -> None:
        shared, place, active = read_to(chunk), read_from(chunk), chunk.active
        copied = np.full((1, 1), width) if read_count is None else as_array(read_count(chunk), kind)
        copied = np.where(active, np.where(copied, 0, width) if skips else copied, 0)
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


def _wait_for_copies(instruction: Instruction, name: str) -> Step:
    """Bind ``cp.async.commit_group``, ``cp.async.wait_all``, and ``cp.async.wait_group n``."""
    newest = [int(operand.value) for operand in instruction.operands if isinstance(operand, Immediate)]
    if name == "commit_group":
        return lambda chunk: chunk.shared.commit_copies(chunk.active)
    return lambda chunk: chunk.shared.wait_copies(chunk.active, *newest)


@binds("alloca", "stacksave", "stackrestore")
def _stack(instruction: Instruction) -> Step:
    """Bind ``alloca.type d, size{, align}``, ``stacksave.type d``, ``stackrestore.type a``; the stack grows upwards."""
    (kind,), operands = split_name(instruction)[1] or [TYPES["u64"]], instruction.operands
    used = (STACK, STACK.type)
    if kind.name not in ("u32", "u64") or not operands:
        raise unsupported(instruction)
    if instruction.opcode == "stackrestore":
        return step_of(instruction, [used], [(operands[0], kind)], lambda chunk, place: [place.astype(np.uint64)])
    align = int(operands[2].value) if len(operands) > 2 and isinstance(operands[2], Immediate) else 8

    def allocate(chunk: Chunk, used: Array, *size: Array) -> list[Array]:
        if not size:
            return [used.astype(kind.dtype)]
        start = (used.astype(np.int64) + align - 1) // align * align
        place = chunk.context.symbols[STACK.name] + start
        return [place.astype(kind.dtype), (start + size[0].astype(np.int64)).astype(np.uint64)]

    writes = [(operands[0], kind), used][: len(operands[:2])]
    return step_of(instruction, writes, [used, *((operand, kind) for operand in operands[1:2])], allocate)


@binds(
    "membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "griddepcontrol", "pmevent",
    "setmaxnreg",
)  # fmt: skip
def _nothing(instruction: Instruction) -> Step:
    """Bind fences to the race check of shared memory, and cache hints and waits to no operation.

    Memory is always consistent here.
    """
    if instruction.opcode in ("fence", "membar"):
        return lambda chunk: chunk.shared.order_fences(chunk.active)
    return lambda chunk: None
