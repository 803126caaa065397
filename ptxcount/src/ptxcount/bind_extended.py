"""Sums with a carry (PTX ISA, "Extended-Precision Integer Arithmetic"), and sums of products of parts of words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .chunk import Chunk
from .floating import flush
from .flow import CARRY
from .instructions import COMBINATIONS
from .integer import logic3, multiply_high
from .operands import Binder, Step, as_array, expect_count, items, split_name, step_of, unsupported
from .program import TYPES, Instruction, Type
from .values import COMPARISONS

Array = npt.NDArray[Any]
_PRED = TYPES["pred"]


def _plus(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    first = a + b
    total = first + carry
    return total, (first < a) | (total < first)


def _minus(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    first = a - b
    return first - borrow, (a < b) | (first < borrow)


#: By opcode and half: the operands, the two that are summed, and how; both as unsigned numbers.
_SUMS: dict[
    str, tuple[int, Callable[..., tuple[Array, Array]], Callable[[Array, Array, Array], tuple[Array, Array]]]
] = {
    "add": (2, lambda a, b: (a, b), _plus),
    "sub": (2, lambda a, b: (a, b), _minus),
    "mad.lo": (3, lambda a, b, c: (a * b, c), _plus),
    "mad.hi": (3, lambda a, b, c: (multiply_high(a, b), c), _plus),
}


def bind_sum_with_carry(instruction: Instruction) -> Step:
    """``add{c}{.cc}.type d, a, b``, ``sub{c}{.cc}`` alike, and ``mad{c}.{lo,hi}{.cc}.type d, a, b, c``."""
    names, types = split_name(instruction)
    carries_in, carries_out = len(instruction.opcode) == 4, "cc" in names
    key = ".".join([instruction.opcode[:3], *(name for name in names if name != "cc")])
    if key not in _SUMS or len(types) != 1 or types[0].kind not in "us" or types[0].size < 4:
        raise unsupported(instruction)
    (count, summands, add), kind = _SUMS[key], types[0]
    expect_count(instruction, count + 1)
    target, *sources = instruction.operands

    def total(chunk: Chunk, *values: Array) -> list[Array]:
        a, b = (each.view(f"u{kind.size}") for each in summands(*values))
        carry = as_array(chunk.read(CARRY, _PRED), _PRED) if carries_in else np.zeros((1, 1), bool)
        result, out = add(a, b, carry.astype(f"u{kind.size}"))
        if carries_out:
            chunk.write(CARRY, out)
        return [result]

    return step_of(instruction, [(target, kind)], [(each, kind) for each in sources], total)


def _parts(words: Array, kind: Type, size: int) -> list[Array]:
    """The parts of ``size`` bytes of 32-bit words, lowest first, extended as the type says."""
    cut = np.ascontiguousarray(words.view(np.uint32)).view(f"{'i' if kind.kind == 's' else 'u'}{size}")
    parts = cut.reshape(*words.shape, 4 // size)
    return [parts[..., place].astype(np.int64) for place in range(4 // size)]


def bind_dot_product(instruction: Instruction) -> Step:
    """``dp4a.atype.btype d, a, b, c``, and ``dp2a.{lo,hi}`` of 16-bit parts of a with the lower or upper bytes of b."""
    names, types = split_name(instruction)
    two = instruction.opcode == "dp2a"
    if len(types) != 2 or any(each.name not in ("u32", "s32") for each in types) or names not in _BYTES[two]:
        raise unsupported(instruction)
    expect_count(instruction, 4)
    first, second = types
    total = TYPES["s32" if "s32" in (first.name, second.name) else "u32"]
    target, *sources = instruction.operands
    reads = list(zip(sources, (first, second, total), strict=True))
    skipped = 2 if names == ["hi"] else 0

    def products(chunk: Chunk, a: Array, b: Array, c: Array) -> list[Array]:
        pairs = zip(_parts(a, first, 2 if two else 1), _parts(b, second, 1)[skipped:], strict=False)
        return [(c.astype(np.int64) + sum(x * y for x, y in pairs)).astype(total.dtype)]

    return step_of(instruction, [(target, total)], reads, products)


#: What ``v...2`` and ``v...4`` make of two parts of words.
_OF_PARTS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "absdiff": lambda a, b: np.abs(a - b),
    "avrg": lambda a, b: (a + b + 1) >> 1,
    "min": np.minimum,
    "max": np.maximum,
}


def bind_parts(instruction: Instruction) -> Step:
    """``v{operation}{2,4}.dtype.atype.btype{.sat,.add} d, a, b, c``, and ``vset{2,4}.atype.btype.cmp{.add}``."""
    names, types = split_name(instruction)
    operation, size = instruction.opcode[1:-1], 4 // int(instruction.opcode[-1])
    compare = [name for name in names if name in COMPARISONS]
    compute = COMPARISONS[compare[0]] if operation == "set" and compare else _OF_PARTS.get(operation)
    types = [TYPES["u32"], *types] if operation == "set" else types
    ways = [name for name in names if name not in compare]
    known = {each.name for each in types} <= {"u32", "s32"} and len(types) == 3 and len(ways) <= 1
    if compute is None or not known or not {*ways} <= {"sat", "add"} or len(compare) != (operation == "set"):
        raise unsupported(instruction)
    expect_count(instruction, 4)
    total, first, second = types
    target, *sources = instruction.operands
    limits = np.iinfo(f"{total.dtype.kind}{size}")

    def made(chunk: Chunk, a: Array, b: Array, c: Array) -> list[Array]:
        parts = [
            compute(x, y).astype(np.int64) for x, y in zip(_parts(a, first, size), _parts(b, second, size), strict=True)
        ]
        if ways == ["add"]:
            return [(c.astype(np.int64) + sum(parts)).astype(total.dtype)]
        if ways == ["sat"]:
            parts = [np.clip(part, limits.min, limits.max) for part in parts]
        bits = 8 * size
        return [np.asarray(sum((part & (2**bits - 1)) << bits * k for k, part in enumerate(parts))).astype(total.dtype)]

    return step_of(instruction, [(target, total)], list(zip(sources, (first, second, total), strict=True)), made)


def bind_select_by_sign(instruction: Instruction) -> Step:
    """``slct{.ftz}.dtype.{s32,f32} d, a, b, c``: ``a`` where ``c`` is not below zero, else ``b``."""
    names, types = split_name(instruction)
    if {*names} > {"ftz"} or len(types) != 2 or types[1].name not in ("s32", "f32") or types[0].size < 2:
        raise unsupported(instruction)
    expect_count(instruction, 4)
    (kind, sign), (target, *sources) = types, instruction.operands

    def selected(chunk: Chunk, a: Array, b: Array, c: Array) -> list[Array]:
        return [np.where((flush(c) if names else c) >= 0, a, b)]

    return step_of(instruction, [(target, kind)], list(zip(sources, (kind, kind, sign), strict=True)), selected)


def bind_logic_and_test(instruction: Instruction) -> Step:
    """``lop3.{and,or}.b32 d|p, a, b, c, table, q``: also whether any bit is set, combined with ``q``."""
    names, types = split_name(instruction)
    places, sources = items(instruction.operands[0]), instruction.operands[1:]
    if names not in (["and"], ["or"]) or types != [TYPES["b32"]] or len(places) != 2:
        raise unsupported(instruction)
    expect_count(instruction, 6)
    word, combine = TYPES["b32"], COMBINATIONS[names[0]]

    def made(chunk: Chunk, a: Array, b: Array, c: Array, table: Array, other: Array) -> list[Array]:
        result = logic3(a, b, c, table)
        return [result, combine(result != 0, other)]

    kinds = (*[word] * 3, TYPES["u32"], _PRED)
    return step_of(
        instruction, list(zip(places, (word, _PRED), strict=True)), list(zip(sources, kinds, strict=True)), made
    )


_BYTES: dict[bool, list[list[str]]] = {False: [[]], True: [["lo"], ["hi"]]}
EXTENDED_BINDERS: dict[str, Binder] = {
    **dict.fromkeys(("addc", "subc", "madc"), bind_sum_with_carry),
    **dict.fromkeys(("dp4a", "dp2a"), bind_dot_product),
    **{f"v{name}{count}": bind_parts for name in (*_OF_PARTS, "set") for count in (2, 4)},
    "slct": bind_select_by_sign,
}
