"""Operands of instructions: functions that read them from a chunk, and the registers that an instruction writes.

Each function that makes a reader adds the operand's registers to ``instruction.reads``.
"""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from ..lanes.symbolic_values import SUM_RULES, Value, dense
from ..lanes.warps import Array
from ..machine.chunk import Chunk
from ..ptx.program import (
    SINK,
    TYPES,
    Address,
    Group,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
    Symbol,
    Type,
    format_operand,
    iter_leaves,
)
from ..util.errors import UnsupportedInstructionError
from ..util.grammar import count_noun, join_choices

Reader = Callable[[Chunk], Value]
#: Internal registers: the condition code, and the used bytes of a thread's stack.
CARRY, STACK = Register("CC.CF", TYPES["pred"]), Register("%STACK", TYPES["u64"])


def unsupported(instruction: Instruction, why: str) -> UnsupportedInstructionError:
    """Return the error for an instruction, with the reason ``why``."""
    return UnsupportedInstructionError(instruction.source, instruction.name, why)


def join_modifiers(names: Iterable[str]) -> str:
    """Join modifiers for a message: ``.down, .shift``; "none" without any."""
    return ", ".join(f".{name}" for name in names) or "none"


def expect_modifiers(
    instruction: Instruction, names: Iterable[str], allowed: Collection[str], required: Collection[str] = ()
) -> None:
    """Raise `UnsupportedInstructionError` unless all ``names`` are allowed, and all ``required`` are modifiers."""
    for name in names:
        if name not in allowed:
            problem = f"the modifier .{name} is not allowed"
            raise unsupported(instruction, f"{problem}; allowed are {join_modifiers(sorted(allowed))}")
    if missing := {*required}.difference(instruction.modifiers):
        raise unsupported(instruction, f"it needs {join_modifiers(sorted(missing))}")


def find_modifier(instruction: Instruction, allowed: Collection[str]) -> str | None:
    """Return the modifier that is in ``allowed``, or None; raise `UnsupportedInstructionError` for several."""
    names = [name for name in instruction.modifiers if name in allowed]
    if len(names) > 1:
        raise unsupported(instruction, f"it has {join_modifiers(names)}; at most one of these is allowed")
    return names[0] if names else None


def choose_modifier(instruction: Instruction, allowed: Collection[str]) -> str:
    """Return the modifier that is in ``allowed``; raise `UnsupportedInstructionError` for none or several."""
    name = find_modifier(instruction, allowed)
    if name is None:
        raise unsupported(instruction, f"it needs one of {join_modifiers(allowed)}")
    return name


def expect_count(instruction: Instruction, *counts: int) -> None:
    """Raise `UnsupportedInstructionError` unless the number of operands is one of ``counts``."""
    if len(instruction.operands) not in counts:
        given = f"it has {count_noun(len(instruction.operands), 'operand')}"
        raise unsupported(instruction, f"{given}; it needs {join_choices(counts)}")


def make_count_error(
    instruction: Instruction, owner: str, found: int, noun: str, needed: int
) -> UnsupportedInstructionError:
    """Return the error for a wrong number, such as "the vector has 1 element; it needs 2" (``owner``, ``noun``)."""
    return unsupported(instruction, f"{owner} has {count_noun(found, noun)}; it needs {needed}")


def split_name(instruction: Instruction, count: int | None = None) -> tuple[list[str], list[Type]]:
    """Return the modifiers that are not types, and the types: ``cvt.rn.f32.s32`` -> ["rn"], [f32, s32].

    Raises `UnsupportedInstructionError` unless there are ``count`` types.
    """
    types = [TYPES[name] for name in instruction.modifiers if name in TYPES]
    if count is not None and len(types) != count:
        given = join_modifiers(kind.name for kind in types)
        raise unsupported(instruction, f"its types are {given}; it needs {count_noun(count, 'type')}")
    return [name for name in instruction.modifiers if name not in TYPES], types


def parse_integer(instruction: Instruction, operand: Operand, name: str) -> int:
    """Return the value of an operand that must be an integer literal, such as ``name`` = "the copied size".

    Raises `UnsupportedInstructionError` for other operands.
    """
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        return operand.value
    raise unsupported(instruction, f"{name} is {format_operand(operand)}; it must be a whole number")


def as_array(value: Value, kind: Type) -> Array:
    """Add up a `Sum`, and view the bits of the value as the dtype of ``kind``."""
    return dense(value).view(kind.dtype)


def make_reader(instruction: Instruction, operand: Operand, kind: Type, wider: bool = False) -> Reader:
    """Return a function that reads an operand from a chunk, one value of ``kind`` per thread.

    With ``wider``, a register may have more bits, of which the lowest are read. Raises `UnsupportedInstructionError` if
    the operand cannot have a value of ``kind``; for an unknown name, the returned function raises this error.
    """
    if isinstance(operand, Register):
        return _make_register_reader(instruction, operand, kind, wider)
    if kind.size > 8:
        raise unsupported(
            instruction, f"an operand of .{kind.name} is {_describe_operand(operand)}; it must be a register"
        )
    if isinstance(operand, Special):
        return _make_special_reader(operand.name, np.dtype(f"u{kind.size}"))
    if isinstance(operand, Immediate):
        constant = encode_immediate(instruction, operand, kind)
        return lambda chunk: constant
    if isinstance(operand, Symbol) and operand is not SINK:
        if kind.size < 4 or kind.kind == "f":
            problem = f"{operand.name} is the address of a variable, which .{kind.name} cannot hold"
            raise unsupported(instruction, f"{problem}; use an integer type of 32 or 64 bits")
        return _make_symbol_reader(operand.name, kind, 0)
    raise unsupported(instruction, f"an operand is {format_operand(operand)}; it must be one value of .{kind.name}")


def make_array_reader(instruction: Instruction, operand: Operand, kind: Type) -> Callable[[Chunk], Array]:
    """Return a function that reads an operand as `make_reader` does, but as an array of the dtype of ``kind``."""
    read = make_reader(instruction, operand, kind)
    return lambda chunk: as_array(read(chunk), kind)


def _make_symbol_reader(name: str, kind: Type, offset: int) -> Reader:
    dtype = np.dtype(f"u{kind.size}")

    def read(chunk: Chunk) -> Value:
        address = chunk.context.symbols.get(name)
        if address is None:
            problem = chunk.context.unavailable.get(name)
            text = (
                f": {problem}"
                if problem
                else " is not declared as a variable of this PTX; ptxcount does not link files"
            )
            raise unsupported(chunk.instruction, name + text)
        if name in chunk.context.shared_names and address + offset >= 0:
            return chunk.make_shared_address(address + offset).astype(dtype)
        return np.array([[(address + offset) % 2**kind.bits]], dtype)  # the sum wraps around

    return read


def _make_special_reader(name: str, dtype: np.dtype[Any]) -> Reader:
    def read(chunk: Chunk) -> Value:
        value = chunk.read_special(name)
        if value is None:
            text = f"{name} is neither a declared register nor a supported special register"
            if re.fullmatch(r".*\.(b[0-3]|h[01])", name):
                text = f"{name}: selectors of video instructions (.b0, .h1) are not supported"
            raise unsupported(chunk.instruction, text)
        return value if dtype.itemsize == value.itemsize else value.astype(dtype)

    return read


def _expect_fit(instruction: Instruction, operand: Register, kind: Type, wider: bool) -> None:
    declared = operand.type
    is_predicate = declared.kind == "pred"
    fits = declared.size == kind.size or (wider and kind.size < declared.size <= 8)
    if not fits or is_predicate != (kind.kind == "pred"):
        text = f"register {operand.name} is .{declared.name}, which does not match .{kind.name}"
        raise unsupported(instruction, text)


def _make_register_reader(instruction: Instruction, operand: Register, kind: Type, wider: bool) -> Reader:
    register_type, name = operand.type, operand.name
    _expect_fit(instruction, operand, kind, wider)
    instruction.reads.add(name)
    if operand.negated:
        return lambda chunk: ~dense(chunk.read(name, register_type))
    if register_type.size > kind.size:
        cut, register_bits = np.dtype(f"u{kind.size}"), np.dtype(f"u{register_type.size}")
        return lambda chunk: dense(chunk.read(name, register_type)).view(register_bits).astype(cut)
    return lambda chunk: chunk.read(name, register_type)


def encode_immediate(instruction: Instruction, operand: Immediate, kind: Type) -> Array:
    """Return a literal as a (1, 1) array of ``kind``. An integer loses the bits that ``kind`` lacks.

    Raises `UnsupportedInstructionError` for an integer beyond 64 bits, or a float that ``kind`` cannot hold.
    """
    if kind.kind == "pred":
        if isinstance(operand.value, int):
            return np.full((1, 1), operand.value != 0)
    elif kind.kind == "f":
        with np.errstate(over="ignore"):
            return np.full((1, 1), operand.value, np.float64).astype(kind.dtype)
    elif isinstance(operand.value, float):  # float literal as bits, as in mov.b32 %r1, 0f3F800000
        if kind.size in (4, 8) and kind.kind == "b":
            return np.full((1, 1), operand.value, f"f{kind.size}").view(f"u{kind.size}")
    elif -(2**63) <= operand.value < 2**64:
        return np.full((1, 1), operand.value % 2**kind.bits, f"u{kind.size}").view(kind.dtype)
    needed = ".b32, .b64 or a float type" if isinstance(operand.value, float) else "an integer of at most 64 bits"
    raise unsupported(instruction, f"{operand.value} does not fit .{kind.name}; it needs {needed}")


def bind_destination(instruction: Instruction, operand: Operand, kind: Type, wider: bool = False) -> Register | None:
    """Add the register of a result to ``instruction.writes``, and return it; return None for the sink ``_``.

    With ``wider``, the register may have more bits than ``kind``. Raises `UnsupportedInstructionError` if the operand
    is no register, or a register that cannot hold a value of ``kind``.
    """
    if operand is SINK:
        return None
    if not isinstance(operand, Register) or operand.negated:
        raise unsupported(instruction, f"its result is {_describe_operand(operand)}; it must be a register")
    _expect_fit(instruction, operand, kind, wider)
    instruction.writes.add(operand.name)
    return operand


def _describe_operand(operand: Operand) -> str:
    is_undeclared = any(isinstance(leaf, Special) for leaf in iter_leaves(operand))
    return format_operand(operand) + (" (no register of this name is declared)" if is_undeclared else "")


def split_group(operand: Operand) -> tuple[Operand, ...]:
    """Return the parts of an operand such as ``p|q``, or the operand itself, as a tuple."""
    return operand.items if isinstance(operand, Group) else (operand,)


def split_vector(instruction: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    """Return the ``count`` elements of a vector, or a scalar as a tuple of one.

    Raises `UnsupportedInstructionError` for another number, and for elements that are addresses or vectors.
    """
    operands = split_group(operand)
    if len(operands) != count:
        raise make_count_error(instruction, "the vector", len(operands), "element", count)
    for element in operands:
        if isinstance(element, (Group, Address)):
            raise unsupported(
                instruction, f"an element is {_describe_operand(element)}; it must be a register or a number"
            )
    return operands


def make_address_reader(instruction: Instruction, operand: Operand, space: str | None) -> Reader:
    """Return a function that reads an address in the state space ``space``; None is for generic addresses.

    Addresses have 64 bits. In shared, local, parameter and tensor memory, they may be in a 32-bit register. Raises
    `UnsupportedInstructionError` for other registers, and for operands that are no address.
    """
    if not isinstance(operand, Address) or isinstance(operand.base, Special):
        raise unsupported(instruction, f"an operand is {_describe_operand(operand)}; it must be an address")
    u64 = TYPES["u64"]
    offset = encode_immediate(instruction, Immediate(operand.offset), u64).view(np.int64)
    if operand.base is None:
        return lambda chunk: offset
    if isinstance(operand.base, Symbol):
        return _make_symbol_reader(operand.base.name, u64, operand.offset)
    is_narrow = operand.base.type.size == 4
    if is_narrow and space not in ("shared", "local", "parameter", "tensor"):
        problem = f"{operand.base.name} has 32 bits, but an address of this memory has 64"
        raise unsupported(instruction, f"{problem}; use a .b64 register")
    kind = TYPES["u32"] if is_narrow else u64
    base = make_reader(instruction, operand.base, kind)
    if not operand.offset:
        return base
    typed_offset = offset.astype(np.int32) if is_narrow else offset
    return lambda chunk: add_offset(kind, base(chunk), typed_offset)


def add_offset(kind: Type, value: Value, offset: Array) -> Value:
    """Add a signed offset to a value; a `Sum` stays a `Sum`."""
    total = SUM_RULES["add"](kind, value, offset)
    return dense(value).view(offset.dtype) + offset if total is None else total
