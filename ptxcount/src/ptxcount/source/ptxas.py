"""ptxas, the assembler of PTX: the resources of a kernel that ``ptxas -v`` reports."""

import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..util.errors import PtxError
from .cuda_compiler import find_nvcc, run_nvcc, split_flags
from .kernel_sources import find_chip

_ENTRY = "Compiling entry function '"
_REGISTERS, _SHARED = re.compile(r"Used (\d+) registers"), re.compile(r"(\d+) bytes smem")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


class KernelResources(NamedTuple):
    """Resources of a kernel, including the functions that the kernel may call."""

    #: 32-bit registers per thread.
    registers: int
    #: Bytes of static shared memory per block.
    shared_bytes: int
    #: Bytes of local memory per thread: stack frames, spill stores and spill loads, summed over kernel and functions.
    stack_frame: int
    spill_stores: int
    spill_loads: int


def parse_report(messages: str) -> dict[str, KernelResources]:
    """Parse the resources of each kernel, by mangled name, from a report of ``ptxas -v``.

    After each kernel, ptxas lists the functions that the kernel may call. The kernel's registers include those of the
    functions; frames and spills do not, so they are summed. A kernel in an unknown format is left out.
    """
    kernels = {}
    for section in messages.split(_ENTRY)[1:]:
        registers, shared = _REGISTERS.search(section), _SHARED.search(section)
        frames = _FRAME.findall(section)  # frame, stores and loads of the kernel and of each function
        if registers and frames:
            sums = (sum(map(int, column)) for column in zip(*frames, strict=True))
            name = section.partition("'")[0]
            kernels[name] = KernelResources(int(registers[1]), int(shared[1]) if shared else 0, *sums)
    return kernels


@lru_cache(maxsize=64)
def assemble(ptx: str, flags: str, arch: str) -> dict[str, KernelResources]:
    """Return the resources of each kernel in the PTX, by mangled name; empty without ptxas, or if ptxas fails.

    ``flags`` are options of nvcc, such as ``--maxrregcount=64``.
    """
    with tempfile.TemporaryDirectory(prefix="ptxcount-") as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx, encoding="utf-8")
        target = str(source.with_suffix(".cubin"))
        options = ["-cubin", "-arch", arch, *split_flags(flags), "-Xptxas", "-v", str(source), "-o", target]
        try:
            done = run_nvcc([str(find_nvcc()), *options])
        except PtxError:
            return {}
    return parse_report((done.stdout + done.stderr).decode("utf-8", "replace"))


#: Space and kind of a row -> the field of `KernelResources`.
_KINDS = {("stack", "frame"): "stack_frame", ("spill", "store"): "spill_stores", ("spill", "load"): "spill_loads"}


def list_machine_accesses(ptx: str, entry: str, flags: str, arch: str | None) -> list[dict[str, Any]]:
    """Return the local memory in a kernel's machine code: rows for stack frame, spill stores and spill loads.

    A row is a dict like an access of `list_lines`, with ``bytes`` per thread instead of counts. The list is empty
    without ptxas, or if ptxas fails.
    """
    resources = assemble(ptx, flags, find_chip(ptx, arch)).get(entry)
    if resources is None:
        return []
    return [
        {"space": space, "kind": kind, "width": 0, "ptx_line": 0, "bytes": getattr(resources, name)}
        for (space, kind), name in _KINDS.items()
    ]
