"""Lowering: inlines calls, and replaces predicated barriers, ``bar.red`` and ``elect.sync`` by simpler instructions.

Afterwards no supported barrier is predicated. An indirect call becomes a chain of comparisons with the functions whose
address is taken, and that have as many parameters and results. One recursive call of a function is inlined; deeper
recursion is unsupported.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ..isa.runtime_calls import FUNCTIONS
from ..ptx.program import (
    CALL_SPACE,
    TYPES,
    Address,
    Entry,
    Group,
    Immediate,
    Instruction,
    Operand,
    Program,
    Register,
    Symbol,
)
from ..source.names import demangle
from ..util.grammar import count_noun

#: Maximum instructions of a kernel with its calls inlined.
MAX_INSTRUCTIONS = 200_000
#: Advice for a function without a body: another file may define it, but ptxcount does not link files.
_ONE_FILE = 'one file must contain all functions that a kernel calls: add #include "other.cu"'
#: Modifier of an instruction whose last operand is its cache eviction policy.
_POLICY = "L2::cache_hint"
#: State spaces of parameters of kernels and of calls.
_PARAMETERS = frozenset(("param", "param::entry", "param::func"))


def lower_calls(program: Program, entry: Entry) -> Entry:
    """Return a copy of the kernel with its calls inlined, and no predicated barriers.

    Calls of runtime functions stay. So do calls that cannot be inlined: they raise an error when a thread reaches them.
    """
    result = replace(entry, instructions=[], labels={}, variables={})
    _Inliner(CalleeTable(program, entry), result, {}, ()).copy_body(entry)
    return result


class _Inliner:
    """Appends the code of a kernel, or of a function that it calls, to the kernel ``into``.

    ``names`` maps the function's results and parameters to the variables at the call. ``callers`` are the functions
    being inlined, the current one last, each with a suffix that makes the names of this copy unique; empty for a
    kernel.
    """

    def __init__(
        self, functions: CalleeTable, into: Entry, names: dict[str, str], callers: tuple[tuple[str, str], ...]
    ) -> None:
        self._functions, self._into, self._callers, self._names = functions, into, callers, names
        self._suffix = callers[-1][1] if callers else ""

    def copy_body(self, function: Entry) -> None:
        """Append the function's code, variables and labels; give local variables and labels unique names."""
        code, suffix = self._into.instructions, self._suffix
        local_names = {name: f"{name}{suffix}" for name, v in function.variables.items() if v.space == "local"}
        self._names = local_names | {name: f"{name}{suffix}" for name in function.labels} | self._names
        for name, variable in function.variables.items():
            new_name = local_names.get(name, name)
            self._into.variables[new_name] = replace(variable, name=new_name)
        starts = []  # index in the kernel's code of each instruction of the function, and of the end
        for instruction in function.instructions:
            starts.append(len(code))
            self._copy_instruction(instruction)
        starts.append(len(code))
        self._into.labels |= {self._names[name]: starts[index] for name, index in function.labels.items()}
        if self._callers:
            self._into.labels[f"{suffix}ret"] = starts[-1]

    def _branch_unless(
        self, template: Instruction, compare: str, register: Register, value: Operand, label: str
    ) -> None:
        """Append a branch to a label, taken unless a comparison of a register with a value holds."""
        code = self._into.instructions
        predicate = Register(f"@{len(code)}holds", TYPES["pred"])
        kind = f"u{register.type.bits}"
        operands = (predicate, register, value)
        code.append(replace(template, opcode="setp", modifiers=(compare, kind), operands=operands, guard=None))
        code.append(_make_jump(template, label, replace(predicate, negated=True)))

    def _copy_instruction(self, instruction: Instruction) -> None:
        copy = self._adapt_instruction(instruction)
        is_jump_table = copy.opcode == "brx" and [type(operand) for operand in copy.operands] == [Register, Group]
        waits = copy.opcode in ("bar", "barrier", "elect") and not copy.problem
        if not (copy.opcode == "call" or is_jump_table or waits):
            self._into.instructions.append(copy)
        elif copy.guard:
            self._lower_guarded(copy)
        else:
            self._lower_instruction(copy)

    def _adapt_instruction(self, instruction: Instruction) -> Instruction:
        """Return an instruction with the names of this copy, with its policy as an attribute, and jumps for returns."""
        copy = instruction
        if self._callers:
            guard = copy.guard and replace(copy.guard, name=copy.guard.name + self._suffix)
            copy = replace(copy, guard=guard, operands=tuple(map(self._rename_operand, copy.operands)))
        if _POLICY in copy.modifiers and copy.operands:
            modifiers = tuple(modifier for modifier in copy.modifiers if modifier != _POLICY)
            copy = replace(copy, modifiers=modifiers, operands=copy.operands[:-1], policy=copy.operands[-1])
        if self._callers and copy.opcode == "ret":
            return replace(copy, opcode="bra", modifiers=(), operands=(Symbol(f"{self._suffix}ret"),))
        if copy.opcode in ("ld", "st") and not _PARAMETERS.isdisjoint(copy.modifiers):
            space = CALL_SPACE if self._accesses_call_parameter(copy) else "param"
            names = (space if modifier in _PARAMETERS else modifier for modifier in copy.modifiers)
            return replace(copy, modifiers=tuple(names))
        return copy

    def _lower_guarded(self, instruction: Instruction) -> None:
        """Append the instruction ``@p x`` as ``@!p bra BEHIND; x; BEHIND:``."""
        code = self._into.instructions
        label = f"@{len(code)}behind"
        inverse = replace(instruction.guard, negated=not instruction.guard.negated) if instruction.guard else None
        code.append(_make_jump(instruction, label, inverse))
        self._lower_instruction(replace(instruction, guard=None))
        self._into.labels[label] = len(code)

    def _lower_instruction(self, instruction: Instruction) -> None:
        code = self._into.instructions
        if instruction.opcode == "call":
            self._inline_call(instruction)
        elif instruction.opcode == "brx":
            for number, label in enumerate(list_symbol_names(instruction.operands[1])):
                self._branch_unless(instruction, "ne", instruction.operands[0], Immediate(number), label)  # type: ignore[arg-type]
            code.append(instruction)
        elif _is_reduction(instruction):
            result, *barrier, value = instruction.operands
            modifiers = tuple(modifier for modifier in instruction.modifiers if modifier in ("cta", "aligned"))
            code.append(replace(instruction, modifiers=("sync", *modifiers), operands=tuple(barrier)))
            # An opcode of its own: flow analysis must not take the reduction for another barrier.
            names = instruction.name.split(".")
            opcode_length = names.index("red") + 1
            opcode, modifiers = ".".join(names[:opcode_length]), tuple(names[opcode_length:])
            code.append(replace(instruction, opcode=opcode, modifiers=modifiers, operands=(result, value)))
        else:
            if instruction.opcode == "elect":
                code.append(replace(instruction, modifiers=("wait",), operands=instruction.operands[-1:]))
            code.append(instruction)

    def _inline_call(self, call: Instruction) -> None:
        results, callee, arguments = split_call(call)
        code = self._into.instructions
        if not isinstance(callee, Register):
            self._inline_function(call, callee.name if isinstance(callee, Symbol) else "", results, arguments)
            return
        done = f"@{len(code)}done"
        for name in self._functions.find_candidates(len(results), len(arguments)):
            next_candidate = f"@{len(code)}other"
            self._branch_unless(call, "eq", callee, Symbol(name), next_candidate)
            self._inline_function(call, name, results, arguments)
            code.append(_make_jump(call, done))
            self._into.labels[next_candidate] = len(code)
        code.append(replace(call, problem="no function with this signature has the address that it calls"))
        self._into.labels[done] = len(code)

    def _inline_function(self, call: Instruction, name: str, results: list[str], arguments: list[str]) -> None:
        """Append the code of a function; append the call of a runtime function, or of one that cannot be inlined."""
        function, code = self._functions.named.get(name), self._into.instructions
        operands = (*results, *arguments)
        if function is None and name not in FUNCTIONS:
            problem = f"the PTX has no function {demangle(name)!r}; {_ONE_FILE}"
        elif function is None:  # of the runtime
            problem = ""
        elif not function.accepts(len(results), len(arguments)):
            needed = _describe_counts(len(function.results), len(function.parameters))
            given = _describe_counts(len(results), len(arguments))
            problem = f"it has {given}; the function {demangle(name)!r} has {needed}"
        elif "" in operands:
            problem = "a result or an argument is no variable; declare a .param variable for each"
        elif sum(name == caller for caller, _ in self._callers) > 1:
            problem = f"{demangle(name)!r} is recursive; ptxcount inlines only one level of recursion; use a loop"
        elif len(code) > MAX_INSTRUCTIONS:
            problem = f"the kernel has more than {MAX_INSTRUCTIONS} instructions after inlining; call fewer functions"
        else:
            problem = ""
        if function is None or problem:
            code.append(replace(call, problem=problem))
            return
        names = dict(zip((*function.results, *function.parameters), operands, strict=True))
        callers = (*self._callers, (name, f"@{len(code)}"))
        _Inliner(self._functions, self._into, names, callers).copy_body(self._functions.parse_body(name))

    def _accesses_call_parameter(self, instruction: Instruction) -> bool:
        if "param::entry" in instruction.modifiers:
            return False
        for operand in instruction.operands:
            if isinstance(operand, Address):
                base = operand.base
                return base.name in self._into.variables if isinstance(base, Symbol) else bool(self._callers)
        return False

    def _rename_operand(self, operand: Operand) -> Operand:
        """Return an operand with the names of this copy: registers with the suffix, symbols as in ``names``."""
        if isinstance(operand, Register):
            return replace(operand, name=operand.name + self._suffix)
        if isinstance(operand, Symbol):
            return Symbol(self._names[operand.name]) if operand.name in self._names else operand
        if isinstance(operand, Address) and operand.base is not None:
            return Address(self._rename_operand(operand.base), operand.offset)  # type: ignore[arg-type]
        return Group(tuple(map(self._rename_operand, operand.items))) if isinstance(operand, Group) else operand


def _make_jump(template: Instruction, label: str, guard: Register | None = None) -> Instruction:
    return replace(template, opcode="bra", modifiers=(), operands=(Symbol(label),), guard=guard, problem="")


def _is_reduction(barrier: Instruction) -> bool:
    has_operation = not {"popc", "and", "or"}.isdisjoint(barrier.modifiers)
    return "red" in barrier.modifiers and has_operation and len(barrier.operands) in (3, 4)


class CalleeTable:
    """The functions that a kernel may call."""

    def __init__(self, program: Program, entry: Entry) -> None:
        self.named, self._entry, self._variables = program.functions, entry, program.variables
        self._bodies: dict[str, Entry] = {}

    def parse_body(self, name: str) -> Entry:
        """Parse the code of a function; the result is cached."""
        if name not in self._bodies:
            self._bodies[name] = self.named[name].body()
        return self._bodies[name]

    @cached_property
    def address_taken(self) -> list[str]:
        """Names of the functions whose address is taken."""
        taken_names = {name for variable in self._variables.values() for _, name, _ in variable.addresses}
        for body in (self._entry, *map(self.parse_body, self.named)):
            for instruction in body.instructions:
                if instruction.opcode == "mov":
                    taken_names |= {*list_symbol_names(Group(instruction.operands))}
        return [name for name in self.named if name in taken_names]

    def find_candidates(self, results: int, parameters: int) -> list[str]:
        """Find the functions that an indirect call may reach, by its numbers of results and parameters."""
        return [name for name in self.address_taken if self.named[name].accepts(results, parameters)]


def split_call(call: Instruction) -> tuple[list[str], Operand | None, list[str]]:
    """Return the result names, the callee and the argument names of a call; names as in `list_symbol_names`."""
    operands = list(call.operands)
    results = list_symbol_names(operands.pop(0)) if operands and isinstance(operands[0], Group) else []
    callee, arguments = (*operands, None, None)[:2]  # some are missing in a call without operands
    return results, callee, list_symbol_names(arguments)


def _describe_counts(results: int, arguments: int) -> str:
    return f"{count_noun(results, 'result')} and {count_noun(arguments, 'argument')}"


def list_symbol_names(operand: Operand | None) -> list[str]:
    """Return the names in an operand; in a group, the name is empty for an operand that is no variable."""
    if isinstance(operand, Symbol):
        return [operand.name]
    return [symbol.name if isinstance(symbol, Symbol) else "" for symbol in getattr(operand, "items", ())]
