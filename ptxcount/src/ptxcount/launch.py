"""Counts any kernel, from CUDA C++ or PTX, given as a file or as text."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .counters import LaunchCounters
from .errors import Index3, LaunchError
from .execute import STEP_LIMIT, Argument, run
from .findings import RACES
from .names import find_entry
from .nvcc import ARCH, compile_cuda

_VERSION = re.compile(r"^\s*\.version\b", re.MULTILINE)


def count(
    source_or_ptx: Path | str,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Argument],
    *,
    flags: str = "",
    arch: str = ARCH,
    dynamic_shared: int = 0,
    step_limit: int = STEP_LIMIT,
    races: str = RACES[0],
    variables: Mapping[str, Argument] | None = None,
) -> LaunchCounters:
    """Execute a kernel for a whole grid on the CPU, check its accesses, and count its memory transactions.

    Parameters
    ----------
    source_or_ptx : Path or str
        A Path names a file: PTX if it ends in ``.ptx``, else CUDA C++. A string is the text itself: PTX if a line
        begins with ``.version``, else CUDA C++. CUDA C++ is compiled by nvcc, with source lines.
    entry : str
        The kernel's name, as in the source (``scale``, ``own::scale``) or as mangled.
    grid, block : int or sequence of int
        Blocks of the grid and threads of a block: one to three numbers, x first.
    arguments : sequence of ndarray or NumPy scalar
        In the kernel's order: a C-contiguous array for each pointer; a NumPy scalar of the right size for each other
        parameter. Arrays are modified in place. A write to an input, ``array.flags.writeable = False``, is a
        `ReadOnlyError`.
    flags : str
        Further options of nvcc, as typed on its command line; for CUDA C++ only.
    arch : str
        The architecture to compile for.
    dynamic_shared : int
        Bytes of dynamic shared memory.
    step_limit : int
        Instructions that a group of blocks may execute before `StepLimitExceededError`.
    races : str
        What becomes of a race in shared memory: ``report``, a finding; ``error``, `SharedRaceError`; ``off``, nothing.
    variables : mapping of str to ndarray or NumPy scalar, optional
        What a host would have set: the values of ``__constant__`` and ``__device__`` variables by their names. Without,
        the latter hold zeros, and a read of the former is an `UnsetVariableError` if the source gives no value.

    Returns
    -------
    LaunchCounters
        By launch (``totals()``), by instruction (``accesses``) and by source line (``by_line()``); and ``findings``.

    Raises
    ------
    CompileError, NvccNotFoundError
        nvcc refused, or there is none.
    PtxSyntaxError
        The text is not PTX.
    LaunchError
        The launch does not fit the kernel.
    UnsupportedInstructionError
        A thread reached an instruction that is not supported; arrays may be partly modified.
    KernelFaultError
        The kernel is wrong; arrays may be partly modified.
    MemoryError
        The module's variables are larger than this machine's memory.

    Examples
    --------
    >>> import numpy as np
    >>> import ptxcount
    >>> source = '''
    ... __global__ void double_all(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
    ... '''
    >>> x = np.arange(256, dtype=np.float32)
    >>> totals = ptxcount.count(source, "double_all", 2, 128, [x]).totals()
    >>> totals["load_requests"], totals["load_sectors"], float(x[3])
    (8, 32, 6.0)
    """
    if step_limit < 1:
        raise LaunchError(f"step limit {step_limit}: it must be positive")
    ptx = ptx_of(source_or_ptx, flags, arch)
    return run(
        ptx,
        find_entry(ptx, entry),
        _extent("grid", grid),
        _extent("block", block),
        arguments,
        dynamic_shared=dynamic_shared,
        step_limit=step_limit,
        races=races,
        variables=variables,
    )


def is_ptx(source_or_ptx: Path | str) -> bool:
    """Whether a file is PTX, by its name's end, .ptx, or a text, by a line that begins with ``.version``."""
    if isinstance(source_or_ptx, Path):
        return source_or_ptx.suffix == ".ptx"
    return _VERSION.search(source_or_ptx) is not None


def ptx_of(source_or_ptx: Path | str, flags: str = "", arch: str = ARCH) -> str:
    """Read PTX, or compile CUDA C++ to it; parameters and errors as of `count`."""
    if isinstance(source_or_ptx, Path) and not source_or_ptx.is_file():
        raise LaunchError(f"{source_or_ptx}: no such file")
    if not is_ptx(source_or_ptx):
        return compile_cuda(source_or_ptx, flags, arch)
    if flags:
        raise LaunchError(f"flags {flags!r}: they go with CUDA C++, which is compiled; this is PTX")
    if isinstance(source_or_ptx, str):
        return source_or_ptx
    try:
        return source_or_ptx.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LaunchError(f"{source_or_ptx}: {error.strerror}") from None


def _extent(what: str, value: int | Sequence[int]) -> Index3:
    try:
        numbers = [operator.index(n) for n in ([value] if not isinstance(value, Sequence) else value)]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise LaunchError(f"{what} {value!r}: one to three whole numbers are needed")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z
