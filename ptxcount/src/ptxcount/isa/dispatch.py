"""Dispatch: binds each instruction to a step, a function of a chunk of blocks."""

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from ..lanes.symbolic_values import SUM_RULES, Value, dense
from ..machine.chunk import Chunk
from ..ptx.program import TYPES, Instruction, Register, Type, format_operand
from ..util.errors import PtxError, PtxSyntaxError, UnsupportedInstructionError
from . import (  # noqa: F401 -- their binders register themselves
    atomic,
    blackwell,
    block_barriers,
    comparisons,
    extended,
    loads_stores,
    move,
    runtime_calls,
    warp_collectives,
)
from .arithmetic import bfloat, floating
from .arithmetic.directed import OPERATIONS
from .arithmetic.floating import TINY, apply_relu, clamp01, flush
from .opcode_registry import BINDERS, FORMS, Step, explain_forms, make_step
from .operands import (
    as_array,
    expect_count,
    join_modifiers,
    split_name,
    unsupported,
)
from .ptx_releases import explain_release
from .table import INSTRUCTIONS, Computation

_U32, _PRED = TYPES["u32"], TYPES["pred"]
#: Modules of binders that are imported on demand, by the beginning of the instruction's name.
_LAZY_MODULES = {
    **dict.fromkeys(("ldmatrix", "stmatrix", "movmatrix"), "tensor_cores.matrix_rows"),
    "mma": "tensor_cores.mma",
    "wmma": "tensor_cores.wmma",
    **dict.fromkeys(("tex", "tld4", "suld", "sust"), "textures.sampling"),
    **dict.fromkeys(("mbarrier", "cp.async.mbarrier"), "hopper.mbarriers"),
    **dict.fromkeys(("cp.async.bulk", "cp.reduce.async.bulk"), "hopper.bulk_copies"),
    **dict.fromkeys(("st.async", "st.bulk", "red.async"), "hopper.async_stores"),
    **dict.fromkeys(("mapa", "getctarank"), "hopper"),
    "tensormap": "hopper.map_changes",
    "wgmma": "hopper.wgmma",
    "tcgen05": "tcgen05",
    "clusterlaunchcontrol": "hopper.launch_control",
}
_TABLE_OPCODES = {key.partition(".")[0] for key in INSTRUCTIONS}
#: Dtype of the halves of a pair, by the type's name.
_HALVES = {"f16x2": "f2", "u16x2": "u2", "s16x2": "i2"}
#: Sets of modifiers that need not be in a key of the table. The lookup tries them in this order.
_OPTIONS: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"ftz", "sat"}),
    frozenset({"ftz", "sat", "rn", "approx", "full", "relu"}),
)
_REASONS = {
    "brx": "it needs a table of this kernel, and an index within it",
    "multimem": "ptxcount simulates one GPU, which has no multicast addresses; use ld, red, st or cp",
    "tensormap": "ptxcount executes only .replace.tile and .cp_fenceproxy",
}
#: Syntax errors in every release of the PTX ISA: missing commas or operands.
_SYNTAX = re.compile(r"expected .*, found '[%\w;]")


def bind_instruction(instruction: Instruction) -> Step:
    """Bind an instruction, except a jump, to a step. The step of an unsupported or wrong instruction raises."""
    try:
        if problem := explain_release(instruction.name):  # first, because a binder may ignore a new modifier
            reason = _REASONS.get(instruction.opcode)
            raise unsupported(instruction, f"{problem}; {reason}" if reason else problem)
        step = _find_step(instruction)
    except (UnsupportedInstructionError, PtxSyntaxError) as error:
        step = _make_refusal(error)
    if instruction.guard is None:
        return step
    instruction.reads.add(instruction.guard.name)
    return _guard_step(step, instruction.guard)


def _find_step(instruction: Instruction) -> Step:
    name = f"{instruction.name}."
    for start, module in _LAZY_MODULES.items():
        if name.startswith(f"{start}."):
            import_module(f"{__package__}.{module}")
    if problem := instruction.problem:
        if _SYNTAX.match(problem) and instruction.opcode in {*FORMS, *BINDERS, *_TABLE_OPCODES}:
            raise PtxSyntaxError(instruction.source.ptx_line, f"{instruction.name}: {problem}")
        raise unsupported(instruction, problem)
    for binder in FORMS.get(instruction.opcode, []) + BINDERS.get(instruction.opcode, []):
        step = binder(instruction)
        if step is not None:
            return step
    if instruction.opcode in _TABLE_OPCODES:
        return _bind_computation(instruction)
    if instruction.opcode == "bra" and instruction.operands:
        target = format_operand(instruction.operands[0])
        raise unsupported(instruction, f"its target is {target}; it must be a label of this kernel")
    known_forms = explain_forms(instruction.opcode) or "ptxcount has no such instruction"
    raise unsupported(instruction, _REASONS.get(instruction.opcode, known_forms))


def _make_refusal(error: PtxError) -> Step:
    def refuse(chunk: Chunk) -> None:
        raise error.with_traceback(None)  # each launch raises it again: drop the old traceback

    return refuse


def _guard_step(step: Step, guard: Register) -> Step:
    def run_guarded(chunk: Chunk) -> None:
        predicate = dense(chunk.read(guard.name, _PRED))
        active, live_elsewhere = chunk.active, chunk.live_elsewhere
        selected = active & (~predicate if guard.negated else predicate)
        if selected.any():
            if not selected.all():
                chunk.active, chunk.live_elsewhere = selected, None
            step(chunk)
            chunk.active, chunk.live_elsewhere = active, live_elsewhere

    return run_guarded


def _find_computation(instruction: Instruction) -> tuple[str, Computation, list[str], Type]:
    """Find the row of the table: ``mul.rn.ftz.f32`` -> ``"mul"``, row, options ``["rn", "ftz"]``, type f32."""
    names, (kind,) = split_name(instruction, 1)
    name_in_row = kind.name.removesuffix("x2") if kind.is_float else kind.name  # rows do not list pairs of floats
    for optional in _OPTIONS:
        key = ".".join([instruction.opcode, *(name for name in names if name not in optional)])
        options = [name for name in names if name in optional]
        row = INSTRUCTIONS.get(key)
        if row is None or name_in_row not in row.types:
            continue
        allowed = row.options if kind.is_float else row.options & {"relu"}  # all other options are for floats
        if allowed.issuperset(options):
            return key, row, options, kind
    raise unsupported(instruction, _explain_form(instruction.opcode, name_in_row))


def _explain_form(opcode: str, type_name: str) -> str:
    rows = {key: row for key, row in INSTRUCTIONS.items() if key.partition(".")[0] == opcode}
    forms = {key: row for key, row in rows.items() if type_name in row.types}
    if not forms:
        types = {name for row in rows.values() for name in row.types}
        return f".{type_name} is not allowed; its types are {join_modifiers(sorted(types))}"
    options = {option for row in forms.values() for option in row.options}
    optional = f"; {join_modifiers(sorted(options))} may follow" if options else ""
    return f"for .{type_name}, ptxcount has {', '.join(forms)}{optional}"


def _bind_computation(instruction: Instruction) -> Step:
    key, row, options, kind = _find_computation(instruction)
    expect_count(instruction, len(row.reads) + 1)
    wide = TYPES.get(f"{kind.kind}{kind.bits * 2}", kind)
    types_by_letter = {"t": kind, "w": wide, "u": _U32, "p": _PRED}
    target, *sources = instruction.operands
    kinds = [types_by_letter[letter] for letter in row.reads]
    compute = _choose_function(key, row, options, kind)
    compute_sum = SUM_RULES.get(key) if kind.kind in ("s", "u", "b") else None

    def compute_values(chunk: Chunk, *values: Value) -> list[Value]:
        result = compute_sum(kind, *values) if compute_sum else None
        if result is None:
            result = compute(*[as_array(value, k) for value, k in zip(values, kinds, strict=True)])
        return [result]

    reads = list(zip(sources, kinds, strict=True))
    return make_step(instruction, [(target, types_by_letter[row.writes])], reads, compute_values, sums=True)


def _choose_function(key: str, row: Computation, options: list[str], kind: Type) -> Callable[..., Any]:
    compute = row.compute
    if kind.kind == "bf16" and key in OPERATIONS:
        compute = OPERATIONS[key].odd  # rounds to odd, so that the second rounding, to bfloat16, is correct
    compute = _apply_options(compute, options, kind)
    if kind.kind == "bf16":
        return bfloat.wrap_for_bits(compute)
    dtype = _HALVES.get(kind.name)
    return floating.wrap_for_halves(compute, dtype) if dtype else compute


def _apply_options(compute: Callable[..., Any], options: list[str], kind: Type) -> Callable[..., Any]:
    # bfloat16 is computed in float64, but has the exponents of float32.
    flush_kind = partial(flush, tiny=float(TINY)) if kind.kind == "bf16" else flush
    clamps_by_option = {"ftz": flush_kind, "relu": apply_relu, "sat": clamp01}
    clamps = [clamp for name, clamp in clamps_by_option.items() if name in options]
    if not clamps:
        return compute
    flushes = "ftz" in options

    def compute_clamped(*arguments: Any) -> Any:
        result = compute(*map(flush_kind, arguments)) if flushes else compute(*arguments)
        for clamp in clamps:
            result = clamp(result)
        return result

    return compute_clamped
