"""Loads, stores and address conversions (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .chunk import Chunk
from .errors import OutOfBoundsError
from .flow import STACK
from .lowering import GIVEN
from .operands import (
    Binder,
    Reader,
    Step,
    address,
    as_array,
    elements,
    expect_count,
    reader,
    split_name,
    step_of,
    unsupported,
)
from .program import TYPES, Address, Immediate, Instruction, Register, Symbol, Type
from .values import Value, dense
from .warps import spread, unsigned

Array = npt.NDArray[Any]

#: The windows of the state spaces in generic addresses, by the bits from here on; global memory is the first.
WINDOW_BITS = 56
WINDOWS = ("global", "shared", "local", "constant", "parameter")


def window(space: str) -> int:
    """What a generic address has more than one in a state space, by its name in PTX."""
    return WINDOWS.index(SPACES[space]) << WINDOW_BITS


SPACES = {
    "global": "global", "const": "constant", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared",
    "local": "local",
    "param": "parameter", GIVEN: "local",
}  # fmt: skip
#: Spaces that are only read.
_READ = ("constant", "parameter")
#: Modifiers that say how to cache or order an access, which changes neither its result nor its transactions here.
_HINTS = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire", "release", "acq_rel",
    "sc", "cta", "cluster", "gpu", "sys", "mmio",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def decode(instruction: Instruction) -> tuple[str | None, int, Type, list[str]]:
    """State space (None for generic), elements, type, and what else the modifiers say."""
    names, types = split_name(instruction)
    spaces = [SPACES[name] for name in names if name in SPACES]
    vectors = [_VECTORS[name] for name in names if name in _VECTORS]
    rest = [name for name in names if name not in _HINTS and name not in SPACES and name not in _VECTORS]
    if len(types) != 1 or len(spaces) > 1 or len(vectors) > 1 or types[0].kind in "p?":
        raise unsupported(instruction)
    count = vectors[0] if vectors else 1
    if count * types[0].size > 32:
        raise unsupported(instruction, "more than 32 bytes a thread")
    return spaces[0] if spaces else None, count, types[0], rest


def resolver(instruction: Instruction, space: str | None, read: Reader) -> Callable[[Chunk], tuple[str, Value]]:
    """A function that gives the state space and the address within it, if the active threads are in one."""
    if space is not None:
        return lambda chunk: (space, read(chunk))

    def generic(chunk: Chunk) -> tuple[str, Value]:
        (found,) = [*_windows(chunk, read(chunk))][:1]
        if (found[2] != chunk.active).any():
            raise unsupported(instruction, "addresses in more than one state space at once")
        return found[:2]

    return generic


def _windows(chunk: Chunk, value: Value) -> Iterator[tuple[str, Value, Array]]:
    """The state spaces of generic addresses, the addresses there, and the active threads that have one."""
    whole, on = spread(dense(value).view(np.int64), chunk.shape), spread(chunk.active, chunk.shape)
    windows = whole >> WINDOW_BITS
    known = np.where((windows >= 0) & (windows < len(WINDOWS)), windows, 0)
    first = int(known[on][0])
    for window in [first] if (known[on] == first).all() else np.unique(known[on]).tolist():
        mine = chunk.active if (known[on] == window).all() else on & (known == window)
        yield WINDOWS[window], whole - (window << WINDOW_BITS) if window else value, mine


def in_each_space(
    space: str | None, read: Reader, access: Callable[[Chunk, str, Value], list[Array]]
) -> Callable[[Chunk], list[Array]]:
    """An access to a state space, or to each that the active threads have generic addresses of."""
    if space is not None:
        return lambda chunk: access(chunk, space, read(chunk))

    def generic(chunk: Chunk) -> list[Array]:
        active, results = chunk.active, None
        for where, place, mine in [*_windows(chunk, read(chunk))]:
            chunk.active = mine
            found = access(chunk, where, place)
            results = [np.where(mine, new, old) for new, old in zip(found, results, strict=True)] if results else found
        chunk.active = active
        return results or []

    return generic


def memory_of(chunk: Chunk, space: str) -> Any:
    """The memory of a state space."""
    context = chunk.context
    return {
        "global": context.memory,
        "constant": context.constants,
        "parameter": context.arguments,
        "shared": chunk.shared,
        "local": chunk.local,
    }[space]


def _bind_load(instruction: Instruction) -> Step:
    """``ld{.hints}{.space}{.vec}.type d, [a]``; ``d`` may be wider than the type."""
    where = instruction.operands[1] if len(instruction.operands) == 2 else None
    if "param" in instruction.modifiers and isinstance(where, Address) and isinstance(where.base, Symbol):
        return _bind_parameter(instruction, where.base.name, where.offset)
    space, count, kind, rest = decode(instruction)
    expect_count(instruction, 2)
    if rest:
        raise unsupported(instruction)
    places = elements(instruction.operands[0], count, instruction)
    polls = not {"volatile", "relaxed", "acquire"}.isdisjoint(instruction.modifiers)

    def load(chunk: Chunk, where: str, place: Value) -> list[Array]:
        chunk.spins += polls
        if polls:
            chunk.order(chunk.active)
        report = chunk.reporter(instruction.source, plain=not polls)
        values = memory_of(chunk, where).load(place, kind.size, count, chunk.active, report)
        record(chunk, instruction, where, "load", place, kind.size * count)
        return [value.view(kind.dtype) for value in values]

    loaded = in_each_space(space, address(instruction, instruction.operands[1], space), load)
    return step_of(instruction, [(each, kind) for each in places], [], loaded, wider=True)


def record(chunk: Chunk, instruction: Instruction, space: str, kind: str, place: Value, width: int) -> None:
    """Count an access, unless the chip has none: what calls are given, and most parameters, lie in registers."""
    if space == "parameter" or GIVEN in instruction.modifiers:
        return
    access = chunk.context.access(instruction, space, kind, width)
    access.record(place, chunk.active, chunk.shape)
    merged = chunk.context.merged.get(id(instruction))
    if merged is not None:
        merged.record(chunk, place)


def _bind_parameter(instruction: Instruction, symbol: str, offset: int) -> Step:
    """``ld.param.type d, [name + offset]``, from the bytes of the kernel's arguments."""
    _, count, kind, rest = decode(instruction)
    if rest:
        raise unsupported(instruction)
    places = elements(instruction.operands[0], count, instruction)

    def load(chunk: Chunk) -> list[Array]:
        content = chunk.context.parameters.get(symbol)
        if content is None:
            raise unsupported(instruction, f"{symbol}: it is not a parameter")
        if offset < 0 or offset + count * kind.size > len(content):
            text = f"{count * kind.size} bytes at {symbol}{offset:+d} of {len(content)} bytes"
            raise chunk.fault(OutOfBoundsError, instruction.source, chunk.first_active(), text)
        return [np.full((1, 1), value) for value in np.frombuffer(content, kind.dtype, count, offset)]

    return step_of(instruction, [(each, kind) for each in places], [], load, wider=True)


def _bind_store(instruction: Instruction) -> Step:
    """``st{.hints}{.space}{.vec}.type [a], b``; ``b`` may be wider than the type."""
    space, count, kind, rest = decode(instruction)
    expect_count(instruction, 2)
    if rest or space in _READ:
        raise unsupported(instruction, f"{space} memory is not written" if space in _READ else "")
    sources = elements(instruction.operands[1], count, instruction)
    dtype, read = unsigned(kind.size), address(instruction, instruction.operands[0], space)
    plain = {"volatile", "relaxed", "release"}.isdisjoint(instruction.modifiers)

    def store(chunk: Chunk, *values: Array) -> list[Array]:
        chunk.wrote, chunk.spins = True, 0
        parts = [value.view(dtype) for value in values]

        def stored(chunk: Chunk, where: str, place: Value) -> list[Array]:
            report = chunk.reporter(instruction.source, plain=plain)
            memory_of(chunk, where).store(place, kind.size, parts, chunk.active, report)
            record(chunk, instruction, where, "store", place, kind.size * count)
            return []

        return in_each_space(space, read, stored)(chunk)

    return step_of(instruction, [], [(each, kind) for each in sources], store, wider=True)


#: Of asynchronous copies what only orders them.
_WAITS = {"async", "bulk", "commit_group", "wait_group", "wait_all", "read"}


def _bind_async_copy(instruction: Instruction) -> Step:
    """``cp.async.{ca,cg}.shared.global [to], [from], size{, bytes}``: done at once; ``bytes`` of 0 stores zeros.

    An H200's counters of shared stores leave these copies out, so that they are a kind of their own here.
    """
    names = [name for name in instruction.modifiers if name not in _HINTS]
    if {*names} <= _WAITS or "prefetch" in names:
        return _bind_nothing(instruction)
    expect_count(instruction, 3, 4)
    to, source, size, *some = instruction.operands
    width = size.value if isinstance(size, Immediate) else 0
    if names not in (["async", "shared", "global"], ["async", "shared::cta", "global"]) or width not in (4, 8, 16):
        raise unsupported(instruction)
    count = int(width) // 4
    read_to, read_from = address(instruction, to, "shared"), address(instruction, source, "global")
    given = reader(instruction, some[0], TYPES["u32"]) if some else None

    def step(chunk: Chunk) -> None:
        shared, place, active = read_to(chunk), read_from(chunk), chunk.active
        report = chunk.reporter(instruction.source)
        if given is not None:
            wanted = as_array(given(chunk), TYPES["u32"])
            if (active & (wanted != 0) & (wanted != width)).any():
                raise unsupported(instruction, f"0 or {width} bytes")
            chunk.active = active & (wanted == width)
        values = [np.zeros((1, 1), np.uint32)] * count
        if chunk.active.any():
            values = chunk.context.memory.load(place, 4, count, chunk.active, report)
            values = [np.where(chunk.active, value, 0).astype(np.uint32) for value in values]
            record(chunk, instruction, "global", "load", place, int(width))
        chunk.active = active
        chunk.shared.store(shared, 4, values, active, report)
        record(chunk, instruction, "shared", "copy", shared, int(width))

    return step


def _bind_stack(instruction: Instruction) -> Step:
    """``alloca.type d, size{, align}``, ``stacksave.type d``, ``stackrestore.type a``: a stack that grows upwards."""
    (kind,), operands = split_name(instruction)[1] or [TYPES["u64"]], instruction.operands
    stack = Register(STACK, TYPES["u64"])
    if kind.name not in ("u32", "u64") or not operands:
        raise unsupported(instruction)
    if instruction.opcode == "stackrestore":
        return step_of(instruction, [(stack, stack.type)], [(operands[0], kind)], lambda c, a: [a.astype(np.uint64)])
    align = int(operands[2].value) if len(operands) > 2 and isinstance(operands[2], Immediate) else 8

    def allocated(chunk: Chunk, used: Array, *size: Array) -> list[Array]:
        if not size:
            return [used.astype(kind.dtype)]
        start = (used.astype(np.int64) + align - 1) // align * align
        place = chunk.context.symbols[STACK] + start
        return [place.astype(kind.dtype), (start + size[0].astype(np.int64)).astype(np.uint64)]

    writes = [(operands[0], kind), (stack, stack.type)][: len(operands[:2])]
    return step_of(instruction, writes, [(stack, stack.type), *((each, kind) for each in operands[1:2])], allocated)


def _bind_nothing(instruction: Instruction) -> Step:
    """Fences, hints to the caches, and waits for the kernel before: memory is always up to date here."""
    return lambda chunk: None


_NOTHING = (
    "membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "griddepcontrol", "pmevent",
    "setmaxnreg",
)  # fmt: skip
MEMORY_BINDERS: dict[str, Binder] = {
    "ld": _bind_load,
    "ldu": _bind_load,
    "st": _bind_store,
    "cp": _bind_async_copy,
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), _bind_stack),
    **dict.fromkeys(_NOTHING, _bind_nothing),
}
