"""The library's errors: sources that do not compile, unsupported PTX, wrong launches, and wrong kernels."""

from typing import NamedTuple

__all__ = [
    "CompileError", "DivergentBarrierError", "GlobalRaceError", "KernelFaultError", "LaunchError", "MisalignedError",
    "NoProgressError", "NvccNotFoundError", "OutOfBoundsError", "PtxError", "PtxSyntaxError", "ReadOnlyError",
    "SharedRaceError", "Source", "StaleReadError", "StepLimitExceededError", "TensorMemoryError",
    "TimeLimitExceededError", "TrapError", "UninitializedReadError", "UninitializedTensorReadError",
    "UnsetVariableError", "UnsupportedInstructionError",
]  # fmt: skip
Index3 = tuple[int, int, int]


class Source(NamedTuple):
    """Location of an instruction in the PTX, and in the CUDA source.

    Attributes
    ----------
    ptx_line : int
        The instruction's line in the PTX; 0 for the empty basic block at the end of a kernel.
    file, line : str and int, or None
        The instruction's file and line in the source, if the PTX has ``.loc`` directives, as with ``-lineinfo``. Code
        inlined from a library has the line that calls the library.
    caller : str
        For the code of an inlined function: the file and line that call it, as ``k.cu:7``. Else empty.
    """

    ptx_line: int
    file: str | None = None
    line: int | None = None
    caller: str = ""

    def __str__(self) -> str:
        ptx = f"PTX line {self.ptx_line}"
        call = f", inlined at {self.caller}" if self.caller else ""
        return ptx if self.file is None else f"{self.file}:{self.line}{call} ({ptx})"


class PtxError(Exception):
    """Base of all errors of this library."""


class NvccNotFoundError(PtxError):
    """There is no nvcc to compile with, or CUDA_TOOLKIT names a release that only kernelwatch installs."""


class CompileError(PtxError):
    """The source cannot be compiled: the message has the compiler's text, or why nvcc cannot compile this file."""


class PtxSyntaxError(PtxError):
    """The text is not PTX as the PTX ISA defines it.

    Attributes
    ----------
    line : int
        The line of the PTX.
    problem : str
        What is wrong there.
    """

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"{Source(line)}: {problem}")
        self.line, self.problem = line, problem


class UnsupportedInstructionError(PtxError):
    """An instruction that ptxcount does not support, or that is not valid PTX, once a thread reaches it.

    A kernel whose parameters or control flow are not supported raises the error before any thread runs.

    Attributes
    ----------
    source : Source
        The location of the instruction, or of the kernel.
    instruction : str
        The instruction's opcode and modifiers; for a kernel, ``.entry`` and the name.
    """

    def __init__(self, source: Source, instruction: str, why: str = "") -> None:
        way_out = 'for valid PTX, see "What it cannot do" in the README of ptxcount'
        super().__init__(f"{source}: {instruction!r} cannot be executed{f': {why}' if why else ''}; {way_out}")
        self.source, self.instruction = source, instruction


class LaunchError(PtxError):
    """The launch is not possible: wrong arguments, grid, block, shared memory or options, or no such file or kernel."""


class KernelFaultError(PtxError):
    """Base of the errors of a wrong kernel at run time.

    Attributes
    ----------
    source : Source
        The faulting instruction; for an exceeded limit, the last instruction of the basic block; for leaked tensor
        memory, the allocation.
    block, thread : tuple of int
        ``blockIdx`` and ``threadIdx`` (x, y, z) of the first faulting thread; for a fault of a whole block, of any
        active thread.
    address : int or None
        The accessed address: for global and constant memory in ptxcount's address space, for shared and local memory
        as an offset. For tensor memory, the lane times 65536 plus the column. For a wrong size or count, that number.
        None if the fault has no address.
    what : str
        What is wrong, without the source.
    """

    kind = "kernel fault"

    def __init__(self, source: Source, block: Index3, thread: Index3, detail: str, address: int | None = None) -> None:
        self.what = f"{self.kind} by block {block}, thread {thread}: {detail}"
        super().__init__(f"{source}: {self.what}")
        self.source, self.block, self.thread, self.address = source, block, thread, address


class OutOfBoundsError(KernelFaultError):
    """An access outside of arrays, or of shared, local or tensor memory; or a tensor copy with an invalid start."""

    kind = "access out of bounds"


class ReadOnlyError(KernelFaultError):
    """A write to an array that is read-only: an input of the launch, constant memory, or a kernel parameter."""

    kind = "write to a read-only array"


class MisalignedError(KernelFaultError):
    """An address that is not a multiple of the size of the access, or a copy with a wrong alignment or size."""

    kind = "misaligned access"


class UninitializedReadError(KernelFaultError):
    """A read of shared memory that was not written, or is the target of a copy that was not waited for."""

    kind = "read of never-written shared memory"


class UninitializedTensorReadError(UninitializedReadError):
    """A read of tensor memory that was not written since the allocation."""

    kind = "read of never-written tensor memory"


class TensorMemoryError(KernelFaultError):
    """A wrong use of tensor memory: an allocation, a missing deallocation or wait, an operand, or inactive lanes."""

    kind = "wrong use of tensor memory"


class UnsetVariableError(KernelFaultError):
    """A read of constant memory without an initial value in the source and without a value from the launch."""

    kind = "read of a variable without a value"


class SharedRaceError(KernelFaultError):
    """Two threads access one byte of shared memory without synchronization, and at least one of them writes."""

    kind = "race in shared memory"


class GlobalRaceError(KernelFaultError):
    """Two threads access one address of global memory without synchronization, and at least one of them writes."""

    kind = "race in global memory"


class StaleReadError(KernelFaultError):
    """A non-coherent load, or a texture fetch, of global memory that the same launch has written."""

    kind = "stale read"


class DivergentBarrierError(KernelFaultError):
    """Some threads that a barrier waits for never arrive, or lanes of one warp wait at different barriers.

    Barriers do not wait for exited threads, except for whole warps if the barrier has a number of threads.
    """

    kind = "divergent barrier"


class NoProgressError(KernelFaultError):
    """Deadlock: all threads wait for a value or an mbarrier, and none writes or changes a register.

    Or the launch makes no progress for 20 s of CPU time.
    """

    kind = "no progress"


class StepLimitExceededError(KernelFaultError):
    """The kernel ran longer than allowed; most likely an endless loop."""

    kind = "step limit exceeded"


class TimeLimitExceededError(KernelFaultError):
    """The launch took more seconds than allowed."""

    kind = "time limit exceeded"


class TrapError(KernelFaultError):
    """The kernel executed ``trap`` or ``brkpt``, or an ``assert`` failed."""

    kind = "trap"
