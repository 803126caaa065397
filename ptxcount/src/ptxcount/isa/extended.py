"""Additions with carry (PTX ISA, "Extended-Precision Integer Arithmetic"), dot products and video instructions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..lanes.symbolic_values import COMPARISONS
from ..lanes.warps import Array
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction, Type
from .arithmetic.floating import flush
from .arithmetic.integer import logic3, multiply_high
from .opcode_registry import Step, binds, make_step, op
from .operands import CARRY, expect_count, split_name, unsupported
from .table import COMBINATIONS


def _add(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    without_carry = a + b
    total = without_carry + carry
    return total, (without_carry < a) | (total < without_carry)


class _CarrySum(NamedTuple):
    #: Number of operands, and the function that reduces them to two summands.
    operands: int
    find_summands: Callable[..., tuple[Array, Array]]
    #: Function of the summands and the carries that returns the sums and the new carries.
    add: Callable[[Array, Array, Array], tuple[Array, Array]]


#: Sums by the opcode, without ``c`` and ``.cc``, and the half of the product.
_SUMS = {
    "add": _CarrySum(2, lambda a, b: (a, b), _add),
    "sub": _CarrySum(2, lambda a, b: (a, b), lambda a, b, borrow: (a - b - borrow, (a < b) | (a - b < borrow))),
    "mad.lo": _CarrySum(3, lambda a, b, c: (a * b, c), _add),
    "mad.hi": _CarrySum(3, lambda a, b, c: (multiply_high(a, b), c), _add),
}


@binds("add", "sub", "mad", "addc", "subc", "madc")
def _bind_carry_sum(instruction: Instruction) -> Step | None:
    """Bind ``add{c}{.cc}.type d, a, b``, ``sub{c}{.cc}.type d, a, b`` and ``mad{c}.{lo,hi}{.cc}.type d, a, b, c``."""
    names, types = split_name(instruction)
    carries_in, carries_out = len(instruction.opcode) == 4, "cc" in names
    if not (carries_in or carries_out):
        return None
    key = ".".join([instruction.opcode[:3], *(name for name in names if name != "cc")])
    if key not in _SUMS or len(types) != 1 or types[0].kind not in ("u", "s") or types[0].size < 4:
        forms = ", ".join(_SUMS)
        raise unsupported(instruction, f"carries exist only for {forms}, with one type: .u32, .s32, .u64 or .s64")
    (count, find_summands, add), kind = _SUMS[key], types[0]
    expect_count(instruction, count + 1)
    target, *sources = instruction.operands
    reads, writes, carry = [(source, kind) for source in sources], [(target, kind)], (CARRY, CARRY.type)
    if carries_in:
        reads.append(carry)
    if carries_out:
        writes.append(carry)

    def add_with_carry(chunk: Chunk, *values: Array) -> tuple[Array, Array]:
        a, b = (summand.view(f"u{kind.size}") for summand in find_summands(*values[:count]))
        carry_in = values[count] if carries_in else np.zeros((1, 1), bool)
        return add(a, b, carry_in.astype(f"u{kind.size}"))

    return make_step(instruction, writes, reads, add_with_carry)


def _split_parts(words: Array, kind: Type, size: int) -> list[Array]:
    """Split 32-bit words of ``kind``, u32 or s32, into parts of ``size`` bytes; return int64, the lowest part first."""
    part_dtype = f"{'i' if kind.kind == 's' else 'u'}{size}"
    parts = np.ascontiguousarray(words.view(np.uint32)).view(part_dtype).reshape(*words.shape, 4 // size)
    return [parts[..., place].astype(np.int64) for place in range(4 // size)]


@op("dp4a.(u32|s32).(u32|s32)", "b32 = b32 b32 b32")
def _compute_dp4a(first: str, second: str, chunk: Chunk, a: Array, b: Array, c: Array) -> list[Array]:
    left, right = _split_parts(a, TYPES[first], 1), _split_parts(b, TYPES[second], 1)
    return [_add_products(left, right, c).astype("u4" if first == second == "u32" else "i4")]


@op("dp2a.(lo|hi).(u32|s32).(u32|s32)", "b32 = b32 b32 b32")
def _compute_dp2a(half: str, first: str, second: str, chunk: Chunk, a: Array, b: Array, c: Array) -> list[Array]:
    left, right = _split_parts(a, TYPES[first], 2), _split_parts(b, TYPES[second], 1)
    half_bytes = right[2:] if half == "hi" else right[:2]
    return [_add_products(left, half_bytes, c).astype("u4" if first == second == "u32" else "i4")]


def _add_products(left: list[Array], right: list[Array], total: Array) -> Array:
    return total.astype(np.int64) + sum(a * b for a, b in zip(left, right, strict=True))


#: Functions of the video instructions ``v...``, ``v...2`` and ``v...4``, on words or on their parts.
_PART_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "absdiff": lambda a, b: np.abs(a - b),
    "avrg": lambda a, b: (a + b + 1) >> 1,
    "min": np.minimum,
    "max": np.maximum,
    **COMPARISONS,
}


@op("(vset|vset2|vset4).(u32|s32).(u32|s32).(eq|ne|lt|le|gt|ge)(?:.(add|min|max))?", "u32 = b32 b32 u32?")
def _compare_parts(
    opcode: str, first: str, second: str, name: str, merge: str | None, chunk: Chunk, *words: Array
) -> Any:
    """Compare the parts: 1 for true, 0 for false. For `_combine_parts`, the opcode of ``vset4.lt`` is ``vlt4``."""
    return _combine_parts(opcode.replace("set", name), "u32", first, second, None, merge, chunk, *words)


@op(
    "(vadd|vsub|vabsdiff|vmin|vmax|vadd2|vsub2|vabsdiff2|vavrg2|vmin2|vmax2|vadd4|vsub4|vabsdiff4|vavrg4|vmin4|vmax4)"
    ".(u32|s32).(u32|s32).(u32|s32)(?:.(sat))?(?:.(add|min|max))?",
    "$2 = b32 b32 $2?",
)
def _combine_parts(
    opcode: str, total: str, first: str, second: str, sat: str | None, merge: str | None, chunk: Chunk, *words: Array
) -> list[Array]:
    """Combine the parts of two words, such as four bytes for ``vadd4``, to a word of the type ``total``.

    With ``merge``, add up the parts instead, and combine the sum with a third word.
    """
    name, count = opcode.strip("v24"), int(opcode[-1]) if opcode[-1].isdigit() else 1
    size = 4 // count
    dtype, bits = TYPES[total].dtype, 8 * size
    left, right = _split_parts(words[0], TYPES[first], size), _split_parts(words[1], TYPES[second], size)
    parts = [_PART_OPERATIONS[name](x, y).astype(np.int64) for x, y in zip(left, right, strict=True)]
    if sat:
        limits = np.iinfo(f"{dtype.kind}{size}")
        parts = [np.clip(part, limits.min, limits.max) for part in parts]
    if merge:
        return [_PART_OPERATIONS[merge](words[2].astype(np.int64), np.asarray(sum(parts))).astype(dtype)]
    return [np.asarray(sum((part & (2**bits - 1)) << bits * k for k, part in enumerate(parts))).astype(dtype)]


@op("(vshl|vshr).(u32|s32).(u32|s32).u32.(clamp|wrap)(?:.add)?", "$2 = b32 u32 $2?")
def _shift_word(opcode: str, total: str, first: str, mode: str, chunk: Chunk, *words: Array) -> list[Array]:
    """Shift a word by up to 32 places, or by a number of places modulo 32, and add a third word, if there is one."""
    (value,) = _split_parts(words[0], TYPES[first], 4)
    places = (np.minimum(words[1], 32) if mode == "clamp" else words[1] & 31).astype(np.int64)
    shifted = value << places if opcode == "vshl" else value >> places
    return [sum(words[2:], shifted).astype(TYPES[total].dtype)]


@op("slct(.ftz)?.([busf](?:16|32|64)).(s32|f32)", "$2 = $2 $2 $3")
def _select_by_sign(ftz: str | None, kind: str, sign: str, chunk: Chunk, a: Array, b: Array, c: Array) -> list[Array]:
    """Return ``a`` where ``c`` is zero or greater, else ``b``. So NaN selects ``b``."""
    return [np.where((flush(c) if ftz else c) >= 0, a, b)]


@op("lop3.(and|or).b32", "b32|pred = b32 b32 b32 u32 pred")
def _compute_lop3_predicate(
    name: str, chunk: Chunk, a: Array, b: Array, c: Array, table: Array, predicate: Array
) -> list[Array]:
    result = logic3(a, b, c, table)
    return [result, COMBINATIONS[name](result != 0, predicate)]
