"""PTX with one entry point: its parameters, variables and architecture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelwatch.errors import ArgumentError, CompileError, UnknownArgumentError, UnknownKernelError
from kernelwatch.kernel.arguments import ParameterLayout
from ptxcount.util.errors import LaunchError, PtxSyntaxError
from ptxcount.util.grammar import count_noun

if TYPE_CHECKING:
    from ptxcount.ptx.program import Program, Variable


@dataclass(frozen=True)
class PtxModule:
    """PTX, and the name of an entry point in it."""

    ptx: str
    entry: str

    def parameter_layout(self) -> list[ParameterLayout]:
        """Return the layout of the entry point's parameters. Raises ArgumentError if the layout cannot be read."""
        from ptxcount.source.names import source_name  # noqa: PLC0415 -- as `parse_ptx`

        entry = parse_ptx(self.ptx).entries[self.entry]
        if entry.problem:
            raise ArgumentError(f"{source_name(self.entry)}: {entry.problem}")
        return [
            ParameterLayout(
                parameter.size or 0,
                parameter.align,
                parameter.element.dtype if parameter.size == parameter.element.size else None,
            )
            for parameter in entry.parameters
        ]

    def target_arch(self, arch: str) -> str:
        """Return the architecture to assemble for: the PTX's target if it adds a suffix, like sm_90a, else `arch`."""
        from ptxcount.source.kernel_sources import find_target  # noqa: PLC0415 -- as `parse_ptx`

        target = find_target(self.ptx)
        return target if target and target.rstrip("af") == arch else arch

    def find_variable(self, name: str) -> Variable:
        """Return a variable by its name in the source. Raises UnknownArgumentError unless exactly one matches."""
        from ptxcount.source.names import source_name  # noqa: PLC0415 -- as `parse_ptx`

        variables = [
            variable for variable in parse_ptx(self.ptx).variables.values() if variable.space in ("const", "global")
        ]
        matches = [
            variable
            for variable in variables
            if variable.name == name or f"::{source_name(variable.name)}".endswith(f"::{name}")
        ]
        if len(matches) != 1:
            allowed = f"allowed are {', '.join(variable.name for variable in variables)}"
            raise UnknownArgumentError(
                f"constants= has {name}, which matches {count_noun(len(matches), 'variable')} of the PTX; "
                f"{allowed if variables else 'it has none'}"
            )
        return matches[0]


def parse_ptx(text: str) -> Program:
    """Parse PTX; the result is cached. Raises CompileError if the text is not PTX."""
    from ptxcount.ptx.parser import parse_cached  # noqa: PLC0415 -- imports everything that executes PTX

    try:
        return parse_cached(text)
    except PtxSyntaxError as error:
        raise CompileError(str(error)) from None


def find_entry(text: str, name: str) -> str:
    """Return an entry point of PTX by its name in the source.

    Raises CompileError if the text is not PTX, UnknownKernelError if no or several entry points match.
    """
    from ptxcount.source import names  # noqa: PLC0415 -- as `parse_ptx`

    entries = parse_ptx(text).entries
    try:
        entry = names.find_entry(text, name)
    except LaunchError as error:
        raise UnknownKernelError(str(error)) from None
    if entry not in entries:
        compiled = ", ".join(dict.fromkeys(map(names.source_name, entries)))
        allowed = f"allowed are {compiled}" if compiled else "nothing was compiled"
        template = "" if "<" in name else f"; a template needs its arguments, as in {name}<float>"
        raise UnknownKernelError(
            f"there is no kernel {name}; {allowed}; correct entry= of Kernel, or declare earlier names in earlier="
            f"{template}"
        )
    return entry
