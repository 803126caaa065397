"""Instructions that stand for several: calls become what they call, barriers that compute or are guarded are split.

What is left needs no barrier behind a predicate, and no jump by a number: a call through a register asks which of the
functions with as many parameters it is. A function may call itself once, as a node of a tree does with its leaves.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from ..isa.runtime_calls import FUNCTIONS
from ..ptx.program import (
    GIVEN,
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
from ..source.names import demangled

#: Instructions that a kernel may grow to.
MOST = 200_000
#: Advice where a function is missing: it may be one of another file, which nothing links here.
_ONE_FILE = 'one file must hold all that a kernel calls: count one that includes both, as by #include "other.cu"'
#: A modifier with an operand of its own, the last: how the L2 cache is to keep what is read changes nothing here.
_POLICY = "L2::cache_hint"
#: The space of parameters: of a kernel, or of what a call is given.
_PARAMETERS = frozenset(("param", "param::entry", "param::func"))


def lowered(program: Program, entry: Entry) -> Entry:
    """A kernel without calls, with instructions, labels and variables of its own."""
    result = replace(entry, instructions=[], labels={}, variables={})
    _Copy(Functions(program, entry), result, {}, ()).body(entry)
    return result


class _Copy:
    """A function's code, put behind what there is of the kernel.

    ``names`` are those of its parameters at the call, ``callers`` the functions that are being copied, this one last,
    and what the names of each end with.
    """

    def __init__(
        self, functions: Functions, into: Entry, names: dict[str, str], callers: tuple[tuple[str, str], ...]
    ) -> None:
        self._functions, self._into, self._callers, self._names = functions, into, callers, names
        self._suffix = callers[-1][1] if callers else ""

    def body(self, function: Entry) -> None:
        code, suffix = self._into.instructions, self._suffix
        own = {name: f"{name}{suffix}" for name, v in function.variables.items() if v.space == "local"}
        self._names = own | {name: f"{name}{suffix}" for name in function.labels} | self._names
        for name, variable in function.variables.items():
            self._into.variables[own.get(name, name)] = replace(variable, name=own.get(name, name))
        places = []
        for instruction in function.instructions:
            places.append(len(code))
            self._instruction(instruction)
        places.append(len(code))
        self._into.labels |= {self._names[name]: places[index] for name, index in function.labels.items()}
        if self._callers:
            self._into.labels[f"{suffix}ret"] = places[-1]

    def _unless(self, like: Instruction, compare: str, register: Register, value: Operand, label: str) -> None:
        """Go to a label unless a comparison of a register with a value holds."""
        code = self._into.instructions
        holds = Register(f"@{len(code)}holds", TYPES["pred"])
        kind = f"u{register.type.bits}"
        code.append(
            replace(like, opcode="setp", modifiers=(compare, kind), operands=(holds, register, value), guard=None)
        )
        code.append(_jump(like, label, replace(holds, negated=True)))

    def _instruction(self, instruction: Instruction) -> None:
        one = instruction
        if _POLICY in one.modifiers:
            one = replace(
                one, modifiers=tuple(each for each in one.modifiers if each != _POLICY), operands=one.operands[:-1]
            )
        if self._callers:  # names of its own
            guard = one.guard and replace(one.guard, name=one.guard.name + self._suffix)
            one = replace(one, guard=guard, operands=tuple(map(self._operand, one.operands)))
        barrier = one.opcode in ("bar", "barrier")
        if self._callers and one.opcode == "ret":
            one = replace(one, opcode="bra", modifiers=(), operands=(Symbol(f"{self._suffix}ret"),))
        elif one.opcode in ("ld", "st") and not _PARAMETERS.isdisjoint(one.modifiers):
            space = GIVEN if "param::entry" not in one.modifiers and self._is_given(one) else "param"
            names = (space if name in _PARAMETERS else name for name in one.modifiers)
            one = replace(one, modifiers=tuple(names))
        table = one.opcode == "brx" and isinstance(one.operands[-1], Group) and isinstance(one.operands[0], Register)
        if one.opcode == "call" or table or (barrier and not one.problem):
            self._around(one) if one.guard else self._split(one)
        else:
            self._into.instructions.append(one)

    def _around(self, one: Instruction) -> None:
        """``@p x`` as ``@!p bra BEHIND; x; BEHIND:``."""
        code = self._into.instructions
        label = f"@{len(code)}behind"
        over = replace(one.guard, negated=not one.guard.negated) if one.guard else None
        code.append(_jump(one, label, over))
        self._split(replace(one, guard=None))
        self._into.labels[label] = len(code)

    def _split(self, one: Instruction) -> None:
        code = self._into.instructions
        if one.opcode == "call":
            self._call(one)
        elif one.opcode == "brx":
            for number, label in enumerate(symbols(one.operands[1])):
                self._unless(one, "ne", one.operands[0], Immediate(number), label)  # type: ignore[arg-type]
            code.append(one)
        elif "red" in one.modifiers and len(one.operands) in (3, 4) and {"popc", "and", "or"} & {*one.modifiers}:
            rest = tuple(each for each in one.modifiers if each in ("cta", "aligned"))
            code.append(replace(one, modifiers=("sync", *rest), operands=one.operands[1:-1]))
            code.append(replace(one, opcode="reduced", operands=(one.operands[0], one.operands[-1])))
        else:
            code.append(one)

    def _call(self, call: Instruction) -> None:
        results, callee, given = parts(call)
        code = self._into.instructions
        if not isinstance(callee, Register):
            self._call_of(call, callee.name if isinstance(callee, Symbol) else "", results, given)
            return
        done = f"@{len(code)}done"
        for name in self._functions.like(len(results), len(given)):
            other = f"@{len(code)}other"
            self._unless(call, "eq", callee, Symbol(name), other)
            self._call_of(call, name, results, given)
            code.append(_jump(call, done))
            self._into.labels[other] = len(code)
        code.append(replace(call, problem="by an address of no function that takes what is given"))
        self._into.labels[done] = len(code)

    def _call_of(self, call: Instruction, name: str, results: list[str], given: list[str]) -> None:
        function, problem, code = self._functions.named.get(name), "", self._into.instructions
        if function is None:
            problem = "" if name in FUNCTIONS else f"the PTX has no function {demangled(name)!r}; {_ONE_FILE}"
        elif (len(results), len(given)) != (len(function.results), len(function.parameters)) or "" in (
            *results,
            *given,
        ):
            problem = f"what it gives is not what the function {name!r} takes"
        elif sum(name == each for each, _ in self._callers) > 1:
            problem = f"{name!r} calls itself more than once"
        elif len(code) > MOST:
            problem = f"the kernel has more than {MOST} instructions with all that it calls"
        if function is None or problem:
            code.append(replace(call, problem=problem))
            return
        names = dict(zip((*function.results, *function.parameters), (*results, *given), strict=True))
        callers = (*self._callers, (name, f"@{len(code)}"))
        _Copy(self._functions, self._into, names, callers).body(self._functions.body(name))

    def _is_given(self, one: Instruction) -> bool:
        """Whether an access to parameters is one to what a call is given, not to the kernel's own parameters."""
        for operand in one.operands:
            if isinstance(operand, Address):
                base = operand.base
                return base.name in self._into.variables if isinstance(base, Symbol) else bool(self._callers)
        return False

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Register):
            return replace(operand, name=operand.name + self._suffix)
        if isinstance(operand, Symbol):
            return Symbol(self._names[operand.name]) if operand.name in self._names else operand
        if isinstance(operand, Address) and operand.base is not None:
            return Address(self._operand(operand.base), operand.offset)  # type: ignore[arg-type]
        return Group(tuple(map(self._operand, operand.items))) if isinstance(operand, Group) else operand


def _jump(like: Instruction, label: str, guard: Register | None = None) -> Instruction:
    return replace(like, opcode="bra", modifiers=(), operands=(Symbol(label),), guard=guard, problem="")


class Functions:
    """The functions that a kernel may call, parsed once."""

    def __init__(self, program: Program, entry: Entry) -> None:
        self.named, self._entry, self._variables = program.functions, entry, program.variables
        self._bodies: dict[str, Entry] = {}

    def body(self, name: str) -> Entry:
        """The code of a function."""
        if name not in self._bodies:
            self._bodies[name] = self.named[name].body()
        return self._bodies[name]

    @cached_property
    def addressed(self) -> list[str]:
        """Those whose address stands somewhere."""
        found = {name for variable in self._variables.values() for _, name, _ in variable.addresses}
        for body in (self._entry, *map(self.body, self.named)):
            found |= {name for one in body.instructions if one.opcode == "mov" for name in symbols(Group(one.operands))}
        return [name for name in self.named if name in found]

    def like(self, results: int, given: int) -> list[str]:
        """Those of them with so many results and parameters."""
        counts = {name: (len(each.results), len(each.parameters)) for name, each in self.named.items()}
        return [name for name in self.addressed if counts[name] == (results, given)]


def parts(call: Instruction) -> tuple[list[str], Operand | None, list[str]]:
    """The results of a call, what is called, and what it is given; what is no variable has no name."""
    operands = list(call.operands)
    results = symbols(operands.pop(0)) if operands and isinstance(operands[0], Group) else []
    return results, operands[0] if operands else None, symbols(operands[1]) if len(operands) > 1 else []


def symbols(operand: Operand | None) -> list[str]:
    """The names in a list of arguments, or the one that stands there; what is no variable has none."""
    if isinstance(operand, Symbol):
        return [operand.name]
    return [each.name if isinstance(each, Symbol) else "" for each in getattr(operand, "items", ())]
