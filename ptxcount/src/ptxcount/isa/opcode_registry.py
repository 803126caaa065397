"""Registry from opcodes to functions that bind instructions to executable steps."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction, Operand, Register, Type
from ..util.grammar import choose_form
from .operands import bind_destination, expect_count, make_count_error, make_reader, split_group

Step = Callable[[Chunk], None]
#: Functions that bind an instruction to a step, or return None for instructions of other binders.
Binder = Callable[[Instruction], "Step | None"]
#: Binders that `op` registers for complete names, by opcode. They are tried first; a name matches only one.
FORMS: dict[str, list[Binder]] = {}
#: Names of these forms by opcode, as the PTX ISA writes them.
_FORM_NAMES: dict[str, list[str]] = {}
#: A group in a regular expression without groups in it, and its repetition.
_GROUP = re.compile(r"\(([^()]*)\)(\?|\{0,2\})?")
#: ``.satfinite`` and perhaps ``.relu``, in any order.
_SATURATED = "(.satfinite(?:.relu)?|.relu.satfinite)"
#: Other binders (`binds`), by opcode. Each returns None for instructions of all others, so their order is irrelevant.
BINDERS: dict[str, list[Binder]] = {}


def binds(*opcodes: str, having: Collection[str] = ()) -> Callable[[Binder], Binder]:
    """Register a binder for opcodes; with ``having``, only for instructions with one of these modifiers."""

    def register(binder: Binder) -> Binder:
        def bind(instruction: Instruction) -> Step | None:
            return None if {*having}.isdisjoint(instruction.modifiers) else binder(instruction)

        for opcode in opcodes:
            BINDERS.setdefault(opcode, []).append(bind if having else binder)
        return binder

    return register


def op(name: str, operands: str, *, sums: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function that computes an instruction, by the instruction's name and operand types.

    Example: ``@op("vote.sync.(any).pred", "pred = pred u32")``. ``name`` is a regular expression, in which a dot is a
    dot. It begins with the opcode, or with opcodes in parentheses. ``operands`` is ``destinations = sources``, each a
    PTX type. ``|`` separates destinations in one operand, ``?`` marks an optional operand, and ``$1`` is the first
    group of ``name``. The function takes the groups, the chunk, and one array per source. It returns the destinations,
    in order. For ``sums``, see `make_step`.
    """
    pattern = re.compile(name.replace(".", r"\."))
    target_words, _, source_words = operands.partition("=")
    opcodes = re.match(r"\(?([\w|]+)", name)[1].split("|")  # type: ignore[index]

    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        def binder(instruction: Instruction) -> Step | None:
            match = pattern.fullmatch(instruction.name)
            if match is None:
                return None
            targets, min_targets = _parse_types(target_words, match)
            sources, min_sources = _parse_types(source_words, match)
            first_source = 1 if targets else 0
            expect_count(instruction, *range(first_source + min_sources, first_source + len(sources) + 1))
            places = split_group(instruction.operands[0])[: len(targets)] if targets else ()
            if len(places) < min_targets:
                raise make_count_error(instruction, "it", len(places), "result", min_targets)
            writes = zip(places, targets, strict=False)
            reads = zip(instruction.operands[first_source:], sources, strict=False)
            return make_step(instruction, writes, reads, partial(compute, *match.groups()), sums=sums)

        for opcode in opcodes:
            FORMS.setdefault(opcode, []).append(binder)
            _FORM_NAMES.setdefault(opcode, []).append(_format_form(name))
        return compute

    return register


def explain_forms(opcode: str, *words: str) -> str:
    """List the forms of an opcode with all ``words`` in their names, for a message; empty if there are none."""
    forms = [name for name in _FORM_NAMES.get(opcode, []) if all(word in name for word in words)]
    return f"its {choose_form(len(forms), 'form is', 'forms are')} {', '.join(forms)}" if forms else ""


def allow_clamps(name: str) -> str:
    """Expand ``[clamps]`` in a name to a group that matches ``.relu`` and ``.satfinite``, both optional, in any order.

    ``[saturated]`` is the same, but requires ``.satfinite``.
    """
    return name.replace("[clamps]", "((?:.relu|.satfinite){0,2})").replace("[saturated]", _SATURATED)


def _format_form(name: str) -> str:
    """Write a name of `op` as the PTX ISA does: ``(.to)?.(u32|u64)`` -> ``{.to}.{u32,u64}``."""
    text, longer = name.replace(_SATURATED, ".satfinite{.relu}").replace("(?:", "("), ""
    while text != longer:  # from the innermost groups on
        text, longer = _GROUP.sub(_format_group, text), text
    return text


def _format_group(group: re.Match[str]) -> str:
    content, repetition = group.groups()
    if repetition == "{0,2}":
        return "".join(f"{{{word}}}" for word in content.split("|"))
    return f"{{{content.replace('|', ',')}}}" if repetition or "|" in content else content


def _parse_types(words: str, match: re.Match[str]) -> tuple[list[Type], int]:
    """Return types, and the number of types without "?": ``"b32 pred?"`` -> ``[b32, pred], 1``."""
    type_words = words.replace("|", " ").split()
    names = [match[int(word[1])] if word[0] == "$" else word.rstrip("?") for word in type_words]
    return [TYPES[name] for name in names], sum(not word.endswith("?") for word in type_words)


def make_step(
    instruction: Instruction,
    writes: Iterable[tuple[Operand, Type]],
    reads: Iterable[tuple[Operand, Type]],
    compute: Callable[..., Iterable[Value]],
    *,
    wider: bool = False,
    sums: bool = False,
) -> Step:
    """Return the step that reads operands, calls ``compute`` with the chunk and the values, and writes the results.

    ``writes`` and ``reads`` are operands with the types of their values. With ``wider``, registers may have more bits
    than these types. With ``sums``, the values may be a `Sum`; else they are arrays of the types' dtypes. Raises
    `UnsupportedInstructionError` for an operand that does not match its type.
    """
    sources = [*reads]
    targets = [bind_destination(instruction, operand, kind, wider) for operand, kind in writes]
    readers = [make_reader(instruction, operand, kind, wider) for operand, kind in sources]
    dtypes = [kind.dtype for _, kind in sources]

    def step(chunk: Chunk) -> None:
        values: Sequence[Value] = [read(chunk) for read in readers]
        if not sums:
            values = [dense(value).view(dtype) for value, dtype in zip(values, dtypes, strict=True)]
        for target, result in zip(targets, compute(chunk, *values), strict=False):
            if target is not None:
                chunk.write(target.name, _extend_value(result, target) if wider else result)

    return step


def _extend_value(value: Value, register: Register) -> Value:
    if not isinstance(value, np.ndarray) or value.itemsize == register.type.size:
        return value
    return value.astype(f"{'i' if value.dtype.kind == 'i' else 'u'}{register.type.size}")
