"""Count a kernel from CUDA C++, PTX, a cubin, or a kernel object of another package."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..counting.counters import LaunchCounters
from ..machine.argument_layout import KernelArgument
from ..ptx.parser import parse_cached
from ..source.adapters import adapt_kernel
from ..source.cuda_compiler import ARCH, Compilation, compile_source
from ..source.declarations import find_declarations, guess_instance
from ..source.kernel_sources import find_chip, is_ptx, read_source
from ..source.names import find_entry, require_entry
from ..source.triton_kernels import add_scratch_pointers
from ..util.errors import CompileError, Index3, LaunchError
from ..util.findings import RACES, UNWRITTEN
from .execute import execute_kernel
from .launch_context import STEP_LIMIT
from .launch_limits import iter_chip_findings, require_launchable


def count(  # noqa: PLR0913 -- options of a launch, by keyword
    source_or_ptx: Any,
    entry: str | None,
    grid: int | Sequence[int],
    block: int | Sequence[int] | None,
    arguments: Sequence[Any] | Mapping[str, Any],
    *,
    flags: str = "",
    arch: str | None = None,
    dynamic_shared: int | None = None,
    step_limit: int = STEP_LIMIT,
    races: str = RACES[0],
    unwritten: str = UNWRITTEN[0],
    variables: Mapping[str, KernelArgument] | None = None,
    cluster: int | Sequence[int] | None = None,
    time_limit: float | None = None,
) -> LaunchCounters:
    """Execute a kernel for a whole grid on the CPU, check its accesses, and count its memory transactions.

    Parameters
    ----------
    source_or_ptx : Path, str, bytes, or a kernel of another package
        A Path is a file, a string is the text. PTX is: content that begins with a directive, a text with a line
        ``.version``, and a file whose name ends in ``.ptx``. All else is CUDA C++, which nvcc compiles with source
        lines. A cubin, as a file or as bytes, must contain the PTX that ``-lineinfo`` embeds. Kernels of CuPy
        (``RawKernel``), Numba, Triton, Warp, CuTe DSL, cuTile and tilelang are compiled by their package.
    entry : str or None
        The kernel's name in the source (``scale``, ``own::scale``), with template arguments (``blur<float>``,
        instantiated if necessary), or mangled. None if the source has one kernel. For a Numba kernel: its signature,
        such as ``"void(float32[:], int32)"``; None for the types of the arguments.
    grid, block : int or sequence of int
        Blocks of the grid and threads of a block: one to three numbers, x first. None for the block that the kernel
        requires (``.reqntid``), or that Triton, Warp or tilelang compiled for. For a Warp kernel, the grid is the
        ``dim`` of its launch.
    arguments : sequence of ndarray, NumPy scalar, Texture, Surface, TensorMap, dict, list or None
        In the kernel's order: an array for each pointer; a `Texture` or a `Surface` for a handle, a `TensorMap` for a
        ``CUtensorMap``; a NumPy scalar of the right size for each other parameter. Counts use the real layout of an
        array, with its strides. Arrays are modified in place. A write to an input, ``array.flags.writeable = False``,
        is a `ReadOnlyError`. A view such as ``a[1:]`` keeps its offset in the base array, all of which the kernel may
        access. A struct is a dict of its members, ``{"x": array, "n": np.int32(7)}``, in which a list is an embedded
        array. ``{"*": value}`` is a pointer to a value, and a list a pointer to its elements: ``[a, b]`` for a
        ``float**``. None is the null pointer. A Triton function takes the arguments of its launch, also Python numbers
        and tensor descriptors, in order or in a dict by name. The dict may have options such as ``num_warps``. A
        tilelang function takes a dict by name.
    flags : str
        Options for nvcc, as on its command line; for CUDA C++ only.
    arch : str, optional
        The architecture to compile for, whose limits apply. Default: sm_90; for PTX, its target.
    dynamic_shared : int, optional
        Bytes of dynamic shared memory. Default: 0; for Triton, Warp and tilelang, the number of the compiled kernel.
    step_limit : int
        Maximum instructions of the thread blocks that run together, before `StepLimitExceededError`. Each basic block
        counts as one more.
    races : str
        Policy for races in shared and global memory, and for stale reads. ``report``: a finding; ``strict``: also for
        stores that change nothing, and for volatile accesses within a warp; ``error``: `SharedRaceError`,
        `GlobalRaceError` or `StaleReadError`; ``off``: no check.
    unwritten : str
        Policy for reads of shared or tensor memory that was not written, or by a copy without a wait. ``report``: a
        finding; ``error``: `UninitializedReadError`; ``off``: no check. Shared memory holds zeros at first.
    variables : mapping of str to ndarray, NumPy scalar, dict, list or None, optional
        Values of ``__constant__`` and ``__device__`` variables by name. An array for a ``__device__`` variable is
        modified in place. Default: the value in the source. Without one, ``__device__`` variables hold zeros, and a
        read of a ``__constant__`` variable is an `UnsetVariableError`.
    cluster : int or sequence of int, optional
        Cluster size in blocks. Default: that of the source, or 1. A source with ``__block_size__``, or with
        ``num_ctas`` of Triton or cuTile, takes its grid in clusters.
    time_limit : float, optional
        Maximum seconds of execution, before `TimeLimitExceededError`. Default: no limit, but `NoProgressError` after 20
        s of CPU time without progress.

    Returns
    -------
    LaunchCounters
        Counts of the launch (``totals()``), of each instruction (``accesses``) and of each source line (``by_line()``);
        warnings (``findings``).

    Raises
    ------
    CompileError, NvccNotFoundError
        The source cannot be compiled, or there is no nvcc.
    PtxSyntaxError
        The text is not PTX.
    LaunchError
        The launch configuration does not match the kernel; there is no such file or kernel, or a wrong option; or a
        thread uses a texture, surface or tensor map that does not fit. Then arrays may be partly modified.
    UnsupportedInstructionError
        A thread reached an unsupported or invalid instruction; arrays may be partly modified. Or the kernel's
        parameters or control flow are not supported.
    KernelFaultError
        The kernel is wrong, or exceeds a limit; arrays may be partly modified.
    MemoryError
        The module's variables are larger than this machine's memory, or its container's limit.

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
    adapted_kernel = adapt_kernel(source_or_ptx, entry, arguments, arch or ARCH, grid, block)
    flags = " ".join(filter(None, (adapted_kernel.flags, flags)))
    arch = arch or adapted_kernel.arch
    compilation, entry_name = compile_entry(adapted_kernel.source, adapted_kernel.entry, flags, arch or ARCH)
    x, y, z = _parse_extent("grid", grid if adapted_kernel.grid is None else adapted_kernel.grid)
    blocks = x * adapted_kernel.program_blocks * y * z
    scratch_arrays = [np.zeros(max(blocks * size, 1), np.uint8) for size in adapted_kernel.scratch_sizes]
    return count_compiled(
        compilation.ptx,
        entry_name,
        (x * adapted_kernel.program_blocks, y, z),
        adapted_kernel.block if block is None else block,
        [*adapted_kernel.arguments, *scratch_arrays],
        flags=flags,
        arch=arch,
        dynamic_shared=adapted_kernel.dynamic_shared if dynamic_shared is None else dynamic_shared,
        step_limit=step_limit,
        races=races,
        unwritten=unwritten,
        variables=variables,
        cluster=adapted_kernel.cluster if cluster is None else cluster,
        time_limit=time_limit,
        names=adapted_kernel.names,
    )


def count_compiled(  # noqa: PLR0913 -- options of a launch, by keyword
    ptx: str,
    entry: str,
    grid: int | Sequence[int],
    block: int | Sequence[int] | None,
    arguments: Sequence[KernelArgument],
    *,
    flags: str = "",
    arch: str | None = None,
    dynamic_shared: int = 0,
    step_limit: int = STEP_LIMIT,
    cluster: int | Sequence[int] | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> LaunchCounters:
    """Count a launch of a kernel that `compile_entry` compiled.

    ``entry`` is the kernel's mangled name. ``flags`` are options of nvcc, for ptxas, which tells the registers per
    thread. ``arch`` is the architecture whose limits apply; default: the target of the PTX. ``options`` go to
    `execute_kernel`. See `count` for the other parameters, and for errors.
    """
    for name, limit in (("step", step_limit), ("time", time_limit)):
        if limit is not None and not limit > 0:
            raise LaunchError(f"{name} limit is {limit}; it must be positive")
    if block is None:
        kernel_entry = parse_cached(ptx).entries.get(entry)
        block = kernel_entry.exact_block if kernel_entry else None
    if block is None:
        raise LaunchError("block is None, but the kernel has no .reqntid; give a block")
    threads = _parse_extent("block", block)
    chip = find_chip(ptx, arch)
    require_launchable(ptx, entry, threads, dynamic_shared, flags, chip)
    counters = execute_kernel(
        ptx,
        entry,
        _parse_extent("grid", grid),
        threads,
        add_scratch_pointers(ptx, entry, arguments),
        dynamic_shared=dynamic_shared,
        step_limit=step_limit,
        distinct=True,
        time_limit=time_limit,
        cluster=None if cluster is None else _parse_extent("cluster", cluster),
        **options,
    )
    counters.findings += iter_chip_findings(ptx, entry, chip)
    return counters


def compile_entry(source: Path | str, entry: str | None, flags: str = "", arch: str = ARCH) -> tuple[Compilation, str]:
    """Compile a kernel; return the PTX with the source files, and the kernel's mangled name.

    If ``entry`` names an instance of a template, such as ``blur<float>``, CUDA C++ need not instantiate it. See `count`
    for parameters and errors.
    """
    if entry is None or not entry.endswith(">") or is_ptx(source):
        compilation = read_or_compile(source, flags, arch)
        return compilation, find_kernel(source, compilation.ptx, entry)
    try:
        compilation = read_or_compile(source, flags, arch, [qualify_name(source, entry)])
    except CompileError as error:  # the source may have the instance already, under a name that cannot be instantiated
        compilation = read_or_compile(source, flags, arch)
        has_instance = find_entry(compilation.ptx, entry) != entry
        if not has_instance:
            raise error from None
    name = find_entry(compilation.ptx, entry)
    if name == entry:  # no instance has this name: the PTX may spell types differently, such as uint32_t
        name = find_entry(compilation.ptx, entry.partition("<")[0])
    require_entry(parse_cached(compilation.ptx).entries, name)
    return compilation, name


def find_kernel(source: Path | str, ptx: str, name: str | None) -> str:
    """Find the mangled name of a kernel; raise `LaunchError` for no or several kernels, or a template."""
    entries = parse_cached(ptx).entries
    is_missing = not entries if name is None else find_entry(ptx, name) not in entries
    if is_missing and not is_ptx(source):
        _refuse_template(source, name)
    entry = find_entry(ptx, name)
    require_entry(entries, entry)
    return entry


def _refuse_template(source: Path | str, name: str | None) -> None:
    """Raise `LaunchError` if the source declares a template of this name, or any template for None."""
    for declaration in find_declarations(read_source(source)):
        if declaration.template and (name is None or f"::{declaration.name}".endswith(f"::{name}")):
            problem = "no kernel is named; " if name is None else ""
            instance = f"name an instance, such as '{guess_instance(declaration)}' (--entry)"
            raise LaunchError(f"{problem}{name or declaration.name} is a template; {instance}")


def qualify_name(source: Path | str, name: str) -> str:
    """Add namespaces to the name of a template instance, if the source declares exactly one template of this name."""
    base, bracket, template_arguments = name.partition("<")
    qualified_names = {
        declaration.name
        for declaration in find_declarations(read_source(source))
        if declaration.template and f"::{declaration.name}".endswith(f"::{base}")
    }
    if len(qualified_names) == 1:
        (base,) = qualified_names
    return f"{base}{bracket}{template_arguments}"


def read_or_compile(
    source: Path | str, flags: str = "", arch: str = ARCH, instances: Sequence[str] = ()
) -> Compilation:
    """Read PTX, or compile CUDA C++ to PTX by `compile_source`.

    Raises the errors of `read_source` and `compile_source`, and `LaunchError` if ``flags`` are given with PTX.
    """
    text = read_source(source)
    if not is_ptx(source):
        return compile_source(source, flags, arch, instances)
    if flags:
        raise LaunchError(f"flags {flags!r} are only for CUDA C++, but this source is PTX or a cubin; omit them")
    # PTX of NVRTC, Warp and Slang ends with a NUL.
    return Compilation(text.rstrip("\0"), [source] if isinstance(source, Path) else [])


def _parse_extent(dimension: str, value: int | Sequence[int]) -> Index3:
    """Return the extent of a grid, block or cluster in x, y and z: 128 -> (128, 1, 1)."""
    try:
        numbers = [operator.index(n) for n in (value if isinstance(value, Sequence) else [value])]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise LaunchError(f"{dimension} is {value!r}; give one to three whole numbers")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z
