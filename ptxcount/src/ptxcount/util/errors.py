"""The library's errors: sources that do not compile, unsupported PTX, and wrong kernels."""

from typing import NamedTuple

__all__ = [
    "CompileError", "DivergentBarrierError", "GlobalRaceError", "KernelFaultError", "LaunchError", "MisalignedError",
    "NoProgressError", "NvccNotFoundError", "OutOfBoundsError", "PtxError", "PtxSyntaxError", "ReadOnlyError",
    "SharedRaceError", "Source", "StepLimitExceededError", "TensorMemoryError", "TimeLimitExceededError", "TrapError",
    "UninitializedReadError", "UninitializedTensorReadError", "UnsetVariableError", "UnsupportedInstructionError",
]  # fmt: skip

Index3 = tuple[int, int, int]


class Source(NamedTuple):
    """Location of an instruction in the PTX, and in the CUDA source.

    Attributes
    ----------
    ptx_line : int
        The instruction's line in the PTX.
    file, line : str and int, or None
        The instruction's file and line in the CUDA source, if the PTX was compiled with ``-lineinfo``. Code inlined
        from a library has the line that calls the library.
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
    """There is no nvcc to compile with."""


class CompileError(PtxError):
    """The source does not compile. The message has the compiler's text."""


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
    """An instruction that ptxcount does not support. The error is raised when a thread reaches the instruction.

    Attributes
    ----------
    source : Source
        The location of the instruction.
    instruction : str
        The instruction's opcode and modifiers.
    """

    def __init__(self, source: Source, instruction: str, why: str = "") -> None:
        way_out = 'see "What it cannot do" in the README of ptxcount'
        super().__init__(f"{source}: {instruction!r} is not supported{f': {why}' if why else ''}; {way_out}")
        self.source, self.instruction = source, instruction


class LaunchError(PtxError):
    """The launch configuration does not match the kernel: arguments, grid, block or shared memory."""


class KernelFaultError(PtxError):
    """Base of the errors of a wrong kernel at run time.

    Attributes
    ----------
    source : Source
        The faulting instruction.
    block, thread : tuple of int
        ``blockIdx`` and ``threadIdx`` (x, y, z) of the first faulting thread.
    address : int or None
        The accessed address: for global memory in ptxcount's address space, for shared memory as an offset.
    what : str
        What is wrong, without the source.
    """

    kind = "kernel fault"

    def __init__(self, source: Source, block: Index3, thread: Index3, detail: str, address: int | None = None) -> None:
        self.what = f"{self.kind} by block {block}, thread {thread}: {detail}"
        super().__init__(f"{source}: {self.what}")
        self.source, self.block, self.thread, self.address = source, block, thread, address


class OutOfBoundsError(KernelFaultError):
    """An access outside every array, or outside the block's shared memory."""

    kind = "access out of bounds"


class ReadOnlyError(KernelFaultError):
    """A write to an array that is read-only: an input of the launch, or constant memory."""

    kind = "write to a read-only array"


class MisalignedError(KernelFaultError):
    """An address that is not a multiple of the size of the access."""

    kind = "misaligned access"


class UninitializedReadError(KernelFaultError):
    """A read of shared memory that no thread of the block has written."""

    kind = "read of never-written shared memory"


class UninitializedTensorReadError(UninitializedReadError):
    """A read of tensor memory that was never written."""

    kind = "read of never-written tensor memory"


class TensorMemoryError(KernelFaultError):
    """A use of tensor memory that is not allocated, is never deallocated, or is read before a product is complete."""

    kind = "wrong use of tensor memory"


class UnsetVariableError(KernelFaultError):
    """A read of constant memory without an initial value in the source and without a value from the launch."""

    kind = "read of a variable without a value"


class SharedRaceError(KernelFaultError):
    """Two threads touch one byte of shared memory between barriers, and at least one of them writes."""

    kind = "race in shared memory"


class GlobalRaceError(KernelFaultError):
    """Two threads access one address of global memory without synchronization, and at least one of them writes."""

    kind = "race in global memory"


class DivergentBarrierError(KernelFaultError):
    """Threads wait at a barrier that others never reach, or lanes of one warp wait at different barriers."""

    kind = "divergent barrier"


class NoProgressError(KernelFaultError):
    """Deadlock: threads wait for a value that no running thread will write, or a loop makes no progress."""

    kind = "no progress"


class StepLimitExceededError(KernelFaultError):
    """The kernel ran longer than allowed; most likely an endless loop."""

    kind = "step limit exceeded"


class TimeLimitExceededError(KernelFaultError):
    """The launch took more seconds than allowed."""

    kind = "time limit exceeded"


class TrapError(KernelFaultError):
    """The kernel executed ``trap``, as a failed ``assert`` does."""

    kind = "trap"
