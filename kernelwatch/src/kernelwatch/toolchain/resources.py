"""The resources of a kernel, parsed from the report of ptxas (`-Xptxas -v`)."""

import re
from dataclasses import dataclass

from kernelwatch.errors import CompileError
from ptxcount.source import ptxas

#: Lines of nvcc's output that are reports of resources, not warnings.
_REPORT = re.compile(r"\s*(ptxas info\s*:|Function properties|\d+ bytes stack frame|The CUDA compiler succeeded|$)")


@dataclass(frozen=True)
class Resources:
    """The resources of one entry point, including the functions that it may call."""

    #: 32-bit registers per thread.
    registers: int
    #: Bytes of spill stores plus bytes of spill loads per thread, as ptxas prints them.
    spill_bytes: int
    #: Bytes of static shared memory per block.
    shared_bytes: int
    #: Bytes of the stack frame per thread, in local memory: arrays that do not fit in registers, and spills.
    stack_bytes: int


def parse_resources(messages: str, entry: str) -> Resources:
    """Parse the resources of the entry point `entry` from the report of ptxas.

    Raises CompileError if the report does not contain `entry`, or has an unknown format.
    """
    report = ptxas.parse_report(messages).get(entry)
    if report is None:
        raise CompileError(f"ptxas' report has no resources of {entry!r}; it is:\n{messages}")
    return Resources(
        registers=report.registers,
        spill_bytes=report.spill_stores + report.spill_loads,
        shared_bytes=report.shared_bytes,
        stack_bytes=report.stack_frame,
    )


def extract_remarks(messages: str) -> str:
    """Return the lines of nvcc's messages that are not a report of resources: the warnings."""
    return "\n".join(line for line in messages.splitlines() if not _REPORT.match(line))
