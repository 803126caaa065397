"""What a kernel occupies on a multiprocessor, parsed from the report of ptxas (`-Xptxas -v`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelwatch.errors import CompileError
from ptxcount.source import ptxas

#: Lines of nvcc's output that report resources and are no warnings.
_REPORT = re.compile(r"\s*(ptxas info\s*:|Function properties|\d+ bytes stack frame|The CUDA compiler succeeded|$)")


@dataclass(frozen=True)
class Resources:
    """Resources of one entry point, with the functions that it may call."""

    #: 32-bit registers a thread.
    registers: int
    #: Bytes of spill stores plus bytes of spill loads a thread, as ptxas prints them.
    spill_bytes: int
    #: Bytes of static shared memory a block.
    shared_bytes: int
    #: Bytes of the stack frame a thread, in local memory: arrays that do not fit registers, and what is spilled.
    stack_bytes: int


def parse(messages: str, entry: str) -> Resources:
    """Read the resources of the entry point `entry` off ptxas' report.

    Raises
    ------
    CompileError
        The report does not speak of `entry`, or not in the words known here.
    """
    found = ptxas.parse_report(messages).get(entry)
    if found is None:
        raise CompileError(f"ptxas' report holds no resources of {entry!r}; it reads:\n{messages}")
    return Resources(
        registers=found.registers,
        spill_bytes=found.spill_stores + found.spill_loads,
        shared_bytes=found.shared_bytes,
        stack_bytes=found.stack_frame,
    )


def remarks(messages: str) -> str:
    """What nvcc said beside its report: its warnings."""
    return "\n".join(line for line in messages.splitlines() if not _REPORT.match(line))
