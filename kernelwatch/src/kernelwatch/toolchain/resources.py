"""Resources of a kernel on a multiprocessor, parsed from the report of ptxas (`-Xptxas -v`)."""

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
    #: Bytes of the stack frame a thread, in local memory: arrays that do not fit registers, and spills.
    stack_bytes: int


def parse_resources(messages: str, entry: str) -> Resources:
    """Read the resources of the entry point `entry` off the report of ptxas.

    Raises
    ------
    CompileError
        The report does not name `entry`, or is not in a known form.
    """
    report = ptxas.parse_report(messages).get(entry)
    if report is None:
        raise CompileError(f"ptxas' report holds no resources of {entry!r}; it reads:\n{messages}")
    return Resources(
        registers=report.registers,
        spill_bytes=report.spill_stores + report.spill_loads,
        shared_bytes=report.shared_bytes,
        stack_bytes=report.stack_frame,
    )


def extract_remarks(messages: str) -> str:
    """Return nvcc's messages besides its report: its warnings."""
    return "\n".join(line for line in messages.splitlines() if not _REPORT.match(line))
