"""Instructions that stand for several: calls become what they call, barriers that compute or are guarded are split.

What is left needs no stack and no barrier behind a predicate. A function that calls itself stays a call, which fails
when a thread reaches it.
"""

from __future__ import annotations

from dataclasses import replace

from .program import Address, Entry, Group, Instruction, Operand, Program, Register, Symbol

#: What the environment provides (`bind_call`).
PROVIDED = ("vprintf", "__assertfail")
#: Instructions that a kernel may grow to.
MOST = 200_000
#: The space of what calls are given: local memory that the chip has no accesses to.
GIVEN = "local::param"


def lowered(program: Program, entry: Entry) -> Entry:
    """A kernel without calls, with instructions, labels and variables of its own."""
    result = replace(entry, instructions=[], labels={}, variables={})
    _Copy(program, result, {}, ()).body(entry)
    return result


class _Copy:
    """A function's code, put behind what there is of the kernel.

    Parameters
    ----------
    program, into : Program, Entry
        The module, and the kernel.
    names : dict
        What the function's parameters are called at the call.
    callers : tuple of str
        The functions that are being copied.
    """

    def __init__(self, program: Program, into: Entry, names: dict[str, str], callers: tuple[str, ...]) -> None:
        self._program, self._into, self._callers = program, into, callers
        self._suffix = f"@{len(into.instructions)}" if callers else ""
        self._names = names

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

    def _instruction(self, instruction: Instruction) -> None:
        one = instruction
        if self._callers:  # names of its own
            guard = one.guard and replace(one.guard, name=one.guard.name + self._suffix)
            one = replace(one, guard=guard, operands=tuple(map(self._operand, one.operands)))
        barrier = one.opcode in ("bar", "barrier") and "warp" not in one.modifiers
        if self._callers and one.opcode == "ret":
            one = replace(one, opcode="bra", modifiers=(), operands=(Symbol(f"{self._suffix}ret"),))
        elif one.opcode in ("ld", "st") and "param" in one.modifiers and self._is_given(one):
            one = replace(one, modifiers=tuple(GIVEN if each == "param" else each for each in one.modifiers))
        if one.opcode == "call" or (barrier and not one.problem):
            self._around(one) if one.guard else self._split(one)
        else:
            self._into.instructions.append(one)

    def _around(self, one: Instruction) -> None:
        """``@p x`` as ``@!p bra BEHIND; x; BEHIND:``."""
        code = self._into.instructions
        label = f"@{len(code)}behind"
        over = replace(one.guard, negated=not one.guard.negated) if one.guard else None
        code.append(replace(one, opcode="bra", modifiers=(), operands=(Symbol(label),), guard=over))
        self._split(replace(one, guard=None))
        self._into.labels[label] = len(code)

    def _split(self, one: Instruction) -> None:
        code = self._into.instructions
        if one.opcode == "call":
            self._call(one)
        elif "red" in one.modifiers and len(one.operands) in (3, 4) and {"popc", "and", "or"} & {*one.modifiers}:
            rest = tuple(each for each in one.modifiers if each in ("cta", "aligned"))
            code.append(replace(one, modifiers=("sync", *rest), operands=one.operands[1:-1]))
            code.append(replace(one, opcode="reduced", operands=(one.operands[0], one.operands[-1])))
        else:
            code.append(one)

    def _call(self, call: Instruction) -> None:
        operands = list(call.operands)
        results = _symbols(operands.pop(0)) if operands and isinstance(operands[0], Group) else []
        name = operands[0].name if operands and isinstance(operands[0], Symbol) else ""
        given = _symbols(operands[1]) if len(operands) > 1 else []
        function, problem = self._program.functions.get(name), ""
        if not name:
            problem = "by an address"
        elif function is None:
            problem = "" if name in PROVIDED else f"the PTX has no function {name!r}"
        elif name in self._callers:
            problem = f"the function {name!r} calls itself"
        elif (len(results), len(given)) != (len(function.results), len(function.parameters)) or "" in (
            *results,
            *given,
        ):
            problem = f"what it gives is not what the function {name!r} takes"
        elif len(self._into.instructions) > MOST:
            problem = f"the kernel has more than {MOST} instructions with all that it calls"
        if function is None or problem:
            self._into.instructions.append(replace(call, problem=problem))
            return
        names = dict(zip((*function.results, *function.parameters), (*results, *given), strict=True))
        _Copy(self._program, self._into, names, (*self._callers, name)).body(function.body())

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


def _symbols(operand: Operand) -> list[str]:
    """The names in a list of arguments; what is no variable has none."""
    return [each.name if isinstance(each, Symbol) else "" for each in getattr(operand, "items", ())]
