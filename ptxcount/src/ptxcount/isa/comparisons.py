"""``setp`` and ``set``: comparisons of integers and floats."""

from collections.abc import Callable, Collection

import numpy as np

from ..lanes.symbolic_values import COMPARISONS, Value, compare_sums, dense
from ..lanes.warps import Array
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction, Operand, Type
from ..util.grammar import choose_form
from .arithmetic import bfloat
from .arithmetic.floating import flush
from .opcode_registry import Step, binds, make_step
from .operands import (
    as_array,
    choose_modifier,
    expect_count,
    expect_modifiers,
    find_modifier,
    join_modifiers,
    split_group,
    split_name,
    unsupported,
)
from .table import COMBINATIONS, FLOAT_COMPARISONS, INTEGER_COMPARISONS, TRUE

_PRED = TYPES["pred"]


@binds("setp")
def _bind_predicates(instruction: Instruction) -> Step:
    """Bind ``setp.cmp{.bool}.type p{|q}, a, b{, {!}c}``. For pairs, ``q`` is the result of the upper halves."""
    names, (kind,) = split_name(instruction, 1)
    find_outcomes, reads = _parse_comparison(instruction, names, kind)
    targets = _split_results(instruction, 2)
    has_opposite = len(targets) == 2 and not _is_pair(kind)

    def compare(chunk: Chunk, *values: Value) -> list[Array]:
        return find_outcomes(*values, has_opposite=has_opposite)[: len(targets)]

    return make_step(instruction, [(target, _PRED) for target in targets], reads, compare, sums=True)


@binds("set")
def _bind_words(instruction: Instruction) -> Step:
    """Bind ``set.cmp{.bool}.dtype.type d, a, b{, {!}c}``. For pairs, each half of ``d`` has a result."""
    names, (result_type, kind) = split_name(instruction, 2)
    find_outcomes, reads = _parse_comparison(instruction, names, kind)
    (target,) = _split_results(instruction, 1)
    true_bits = TRUE.get((result_type.name, _is_pair(kind)))
    if true_bits is None:
        allowed = join_modifiers(name for name, for_pairs in TRUE if for_pairs == _is_pair(kind))
        problem = f"its result is .{result_type.name}; allowed are {allowed} for operands of .{kind.name}"
        raise unsupported(instruction, problem)

    def compare(chunk: Chunk, *values: Value) -> list[Array]:
        words = [np.where(outcome, true_bits, 0).astype(f"u{result_type.size}") for outcome in find_outcomes(*values)]
        return [words[0] | words[1] << np.uint32(16)] if _is_pair(kind) else words

    return make_step(instruction, [(target, result_type)], reads, compare, sums=True)


def _is_pair(kind: Type) -> bool:
    return kind.name in ("f16x2", "bf16x2")


def _split_results(instruction: Instruction, most: int) -> tuple[Operand, ...]:
    targets = split_group(instruction.operands[0])
    if len(targets) > most:
        allowed = f"at most {most} {choose_form(most, 'is', 'are')} allowed"
        raise unsupported(instruction, f"it has {len(targets)} results; {allowed}")
    return targets


def _parse_comparison(
    instruction: Instruction, names: list[str], kind: Type
) -> tuple[Callable[..., list[Array]], list[tuple[Operand, Type]]]:
    """Return a function that compares two numbers, and the sources with their types.

    The function returns a mask; of pairs two, that of the lower halves first; with ``has_opposite``, also the mask of
    the opposite comparison. A third source is combined with each mask.
    """
    if kind.kind in ("pred", "int16x2") or kind.size in (1, 16):
        raise unsupported(instruction, f"it compares .{kind.name}; it must compare numbers of 16, 32 or 64 bits")
    table: Collection[str] = FLOAT_COMPARISONS if kind.is_float else INTEGER_COMPARISONS
    comparison, combination = choose_modifier(instruction, table), find_modifier(instruction, COMBINATIONS)
    expect_modifiers(instruction, names, {comparison, "ftz", *COMBINATIONS})
    expect_count(instruction, 4 if combination else 3)
    compare = _make_comparison(comparison, kind, "ftz" in names)

    def find_outcomes(left: Value, right: Value, *third: Value, has_opposite: bool = False) -> list[Array]:
        outcomes = compare(left, right)
        if has_opposite:
            outcomes.append(~outcomes[0])
        if combination:
            outcomes = [COMBINATIONS[combination](outcome, dense(third[0])) for outcome in outcomes]
        return outcomes

    return find_outcomes, list(zip(instruction.operands[1:], (kind, kind, _PRED), strict=False))


def _make_comparison(comparison: str, kind: Type, ftz: bool) -> Callable[[Value, Value], list[Array]]:
    """Return a function of two operands that returns a mask: for pairs two masks, of the lower and the upper halves."""
    if kind.is_float:
        compare = FLOAT_COMPARISONS[comparison]

        def compare_floats(left: Value, right: Value) -> list[Array]:
            left_numbers = _decode_floats(as_array(left, kind), kind)
            right_numbers = _decode_floats(as_array(right, kind), kind)
            if ftz:
                left_numbers, right_numbers = [*map(flush, left_numbers)], [*map(flush, right_numbers)]
            return [np.asarray(compare(a, b)) for a, b in zip(left_numbers, right_numbers, strict=True)]

        return compare_floats
    name = INTEGER_COMPARISONS[comparison]
    unsigned = comparison in ("lo", "ls", "hi", "hs") or kind.kind == "b"
    compared_type = TYPES[f"u{kind.bits}"] if unsigned else kind

    def compare_integers(left: Value, right: Value) -> list[Array]:
        result = compare_sums(name, compared_type, left, right)
        if result is None:
            result = COMPARISONS[name](as_array(left, compared_type), as_array(right, compared_type))
        return [result]

    return compare_integers


def _decode_floats(words: Array, kind: Type) -> list[Array]:
    """Return the floats in a register: one, or two of a pair, the lower half first."""
    if kind.kind == "f":
        return [words]
    halves = [words] if kind.size == 2 else [(words & 0xFFFF).astype(np.uint16), (words >> 16).astype(np.uint16)]
    return [bfloat.decode_bits(half) if kind.kind == "bf16" else half.view(np.float16) for half in halves]
