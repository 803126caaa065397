"""Guesses of the block size and the dynamic shared memory, from a kernel's text and its PTX."""

import math
from contextlib import suppress

from ..engine.executable import lay_out_variables, prepare_executable
from ..ptx.program import Program
from ..source.declarations import THREADS
from ..util.architectures import STATIC_SHARED
from ..util.errors import Index3, PtxError

#: Threads per block along x, for two-dimensional blocks.
_ROW = 32


def guess_block(
    planar: bool, max_threads: int = 0, exact: Index3 | None = None, used: tuple[int, int] = (0, 0)
) -> tuple[int, ...]:
    """Guess the block size in threads, as one to three numbers: x, y, z.

    ``planar``: the kernel uses y. ``max_threads`` is ``.maxntid``, or 0; ``exact`` is ``.reqntid``, or None. ``used``
    is the block size along x and y that the source suggests, each 0 if unknown. A too large ``used`` is ignored.
    """
    if exact:  # without trailing ones
        last_axis = 2 if exact[1] > 1 else 1
        return exact if exact[2] > 1 else exact[:last_axis]
    threads = min(max_threads or THREADS, THREADS)
    width = used[0] or (min(_ROW, threads) if planar else threads)
    block = (width, used[1] or max(threads // width, 1)) if planar else (width,)
    return block if math.prod(block) <= (max_threads or 1024) else guess_block(planar, max_threads)


def guess_dynamic_shared(program: Program, name: str) -> int:
    """Guess the bytes of dynamic shared memory: all that static arrays leave of `STATIC_SHARED`.

    Return 0 if the kernel has no dynamic array, or cannot be prepared.
    """
    if all(variable.size is not None for variable in program.variables.values()):
        return 0
    with suppress(PtxError):  # counting the kernel reports the error
        kernel = prepare_executable(program, name)
        shared = [variable for variable in kernel.variables if variable.space == "shared"]
        if any(variable.size is None for variable in shared):
            return max(STATIC_SHARED - lay_out_variables(shared, kernel.reserved)[1], 0)
    return 0
