"""Resources of a kernel on a multiprocessor, parsed from the report of ptxas (`-Xptxas -v`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwatch.errors import CompileError

#: Lines of nvcc's output that report resources and are no warnings.
_REPORT = re.compile(r"\s*(ptxas info\s*:|Function properties|\d+ bytes stack frame|The CUDA compiler succeeded|$)")

#: Reports of registers; of the stack frame, spill stores and spill loads; of static shared memory.
_REGISTERS, _SHARED = re.compile(r"Used (\d+) registers"), re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Resources:
    """Resources of one entry point."""

    #: 32-bit registers a thread.
    registers: int
    #: Bytes of spill stores plus bytes of spill loads a thread, as ptxas prints them.
    spill_bytes: int
    #: Bytes of static shared memory a block.
    shared_bytes: int
    #: Bytes of the stack frame a thread, in local memory: arrays that do not fit registers, and spills.
    stack_bytes: int


def parse_resources(messages: str, entry: str) -> Resources:
    """Read the resources of the entry point `entry` off the report of ptxas.

    Raises
    ------
    CompileError
        The report does not name `entry`, or is not in a known form.
    """
    *_, section = messages.partition(f"Compiling entry function '{entry}'")
    section, *_ = section.partition("Compiling entry function")
    registers, stack, shared = (pattern.search(section) for pattern in (_REGISTERS, _STACK, _SHARED))
    if not (registers and stack):
        raise CompileError(f"ptxas' report holds no resources of {entry!r}; it reads:\n{messages}")
    return Resources(
        registers=int(registers[1]),
        spill_bytes=int(stack[2]) + int(stack[3]),
        shared_bytes=int(shared[1]) if shared else 0,
        stack_bytes=int(stack[1]),
    )


def extract_remarks(messages: str) -> str:
    """Return nvcc's messages besides its report: its warnings."""
    return "\n".join(line for line in messages.splitlines() if not _REPORT.match(line))
