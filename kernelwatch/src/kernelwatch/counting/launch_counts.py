"""Execute kernels on the CPU, verify their output, and count their memory transactions."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ERRORS, UnknownArgumentError, UnknownDtypeError
from kernelwatch.instrument import fingerprint, inputs, skip_reasons
from kernelwatch.instrument.tolerance import UlpTolerance
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import Array, ArrayArgument, pack_arguments
from kernelwatch.kernel.geometry import Geometry
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.suite import registry
from kernelwatch.suite.metrics import ARCH, METRICS
from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from ptxcount.util import host_memory


@dataclass(frozen=True)
class CountedLaunch:
    """The counters of a launch, its geometry, its arrays after the launch by name, and its first wrong element.

    `problem` describes the first wrong element. It is None if no element is wrong, or if the kernel has no reference.
    """

    counters: LaunchCounters
    geometry: Geometry
    arrays: Mapping[str, Array]
    problem: str | None


@lru_cache(maxsize=64)
def compile_ptx(kernel: str, dtype: str, flags: str) -> str:
    """Return the PTX of a kernel of the installed commit, with source lines, for the architecture ARCH."""
    return registry.find_kernel(kernel).compile_ptx(dtype, flags, arch=ARCH)


def count_launch(kernel: str | Kernel, dtype: DTypeLike, flags: str = FLAGS, /, **arguments: Any) -> CountedLaunch:
    """Compile a kernel, execute its whole grid on the CPU, count its memory transactions, and verify its output.

    A wrong output is not an error: `problem` of the result describes it. Without a reference, nothing is verified.

    Parameters
    ----------
    kernel : str or Kernel
        A kernel, or the name of a kernel of the suite.
    dtype : dtype
        The swept dtype.
    flags : str
        nvcc's flags, as on its command line.
    **arguments : int or float
        Arguments of the kernel, such as ``rows`` and ``columns``.

    Raises
    ------
    KernelwatchError
        A name is unknown, an argument is out of bounds, or a function of the project failed.
    PtxError
        The compilation failed, ptxcount does not support the PTX, or the kernel has an error, such as a data race.
    MemoryError
        The arrays are larger than this machine's memory.
    """
    spec = registry.find_kernel(kernel) if isinstance(kernel, str) else kernel
    dtype_name = spec.check_dtype(dtype)
    array_arguments = [
        argument for argument in spec.bind_arguments(dtype_name, **arguments) if isinstance(argument, ArrayArgument)
    ]
    geometry = spec.compute_geometry(dtype_name, **arguments)
    # Written arrays exist three times: before the launch, after it, and from the reference.
    host_memory.require(sum(argument.nbytes * (3 if argument.is_written else 1) for argument in array_arguments))
    initial_arrays = {argument.name: inputs.make_content(argument) for argument in array_arguments}
    for array in initial_arrays.values():
        array.flags.writeable = False  # so that writing to an input fails
    written = [argument.name for argument in array_arguments if argument.is_written]
    arrays = initial_arrays | {name: initial_arrays[name].copy() for name in written}
    reference_arrays = initial_arrays | {name: initial_arrays[name].copy() for name in written}
    counters = _execute(spec, dtype_name, flags, arrays, arguments)
    if spec.reference is None:
        return CountedLaunch(counters, geometry, arrays, None)
    if isinstance(spec.reference, Kernel):
        _execute(spec.reference, dtype_name, flags, reference_arrays, arguments)
        expected = [reference_arrays[name] for name in written]
    else:
        has_tolerance = any(argument.ulp is not None for argument in array_arguments)
        expected = spec.compute_expected(reference_arrays, arguments, as_float64=has_tolerance)
    problem = _find_problem(array_arguments, arrays, initial_arrays, expected)
    return CountedLaunch(counters, geometry, arrays, problem)


def _execute(
    kernel: Kernel, dtype: str, flags: str, arrays: Mapping[str, Array], arguments: Mapping[str, Any]
) -> LaunchCounters:
    """Execute a launch, which changes `arrays`; return its counters."""
    module = kernel.compile_module(dtype, flags, arch=ARCH, lines=True)
    geometry = kernel.compute_geometry(dtype, **arguments)
    bound, layout = kernel.bind_arguments(dtype, **arguments), module.parameter_layout()
    try:
        pack_arguments(bound, layout)  # only to check them
    except UnknownArgumentError as error:
        raise UnknownArgumentError(f"{kernel.name}: {error}") from None
    return execute_kernel(
        module.ptx,
        module.entry,
        geometry.grid,
        geometry.block,
        [
            arrays[argument.name] if isinstance(argument, ArrayArgument) else argument.to_numpy(parameter.dtype)
            for argument, parameter in zip(bound, layout, strict=True)
        ],
        dynamic_shared=geometry.dynamic_shared,
        races="error",
        unwritten="error",
        variables=kernel.bind_variables(module, arguments),
    )


def _find_problem(
    array_arguments: Sequence[ArrayArgument],
    arrays: Mapping[str, Array],
    initial_arrays: Mapping[str, Array],
    expected_arrays: list[Array],
) -> str | None:
    """Describe the first wrong element of the written arrays, whose references are in `expected_arrays`."""
    written = [argument for argument in array_arguments if argument.is_written]
    for argument, expected in zip(written, expected_arrays, strict=True):
        actual = arrays[argument.name]
        if argument.ulp is None:
            reference = expected.astype(argument.dtype, copy=False)
            wrong = (_element_bytes(actual) != _element_bytes(reference)).any(axis=1)
        else:
            reference, tolerance = expected, UlpTolerance(argument.dtype.name, argument.ulp)
            wrong = ~tolerance.is_near(actual, expected.astype(np.float64)).reshape(-1)
        if not wrong.any():
            continue
        first = int(wrong.argmax())
        index = tuple(map(int, np.unravel_index(first, argument.shape)))
        element = f"element {list(index)} of {argument.name}"
        initial = initial_arrays[argument.name]
        if argument.direction == "out" and (_element_bytes(actual)[first] == _element_bytes(initial)[first]).all():
            return f"{element} was never written"
        return f"{element} is {actual[index]}, not {reference[index]}"
    return None


def _element_bytes(array: Array) -> Array:
    """Return an array's bytes as uint8, of shape (elements, bytes per element)."""
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1, array.itemsize)


@dataclass(frozen=True)
class CountOutcome:
    """The result of a launch: its metrics, or the reason why it was skipped (`missing`) or failed (`failure`)."""

    metrics: dict[str, float]
    missing: str = ""
    failure: str = ""


def hash_launches(launches: Iterable[Launch]) -> dict[str, str]:
    """Compile launches; return text of a launch -> fingerprint of its metrics.

    Launches that raise an error are left out. Launches that differ only in flags have the same fingerprint if their PTX
    is the same.
    """
    by_text: dict[str, str] = {}
    for launch in launches:
        with suppress(*ERRORS, *skip_reasons.UNKNOWN_NAME_ERRORS):
            by_text[str(launch)] = _hash_launch(registry.find_kernel(launch.kernel), launch)
    return by_text


def _hash_launch(kernel: Kernel, launch: Launch) -> str:
    dtype = kernel.check_dtype(launch.dtype)
    executed = (kernel, kernel.reference) if isinstance(kernel.reference, Kernel) else (kernel,)
    return fingerprint.hash_facts(
        fingerprint.format_counter_version(),
        [dtype, kernel.check_extents(launch.arguments)],
        [_execution_facts(executed_kernel, dtype, launch) for executed_kernel in executed],
        [fingerprint.list_function_facts(function) for function in kernel.user_functions()],
        _list_array_facts(kernel, dtype, launch),
    )


def check_dtype_is_used(kernel: Kernel, launch: Launch) -> None:
    """Raise UnknownDtypeError if the suite does not have the launch's dtype, and the kernel does not use the dtype.

    The kernel does not use it if a dtype of the suite has the same effect.
    """
    dtype, suite_dtypes = kernel.check_dtype(launch.dtype), registry.current_suite().dtypes.get(launch.kernel)
    if not suite_dtypes or dtype in suite_dtypes:
        return
    facts, suite_facts = (
        [_execution_facts(kernel, name, launch), _list_array_facts(kernel, name, launch)]
        for name in (dtype, min(suite_dtypes))
    )
    if facts == suite_facts:
        names = " or ".join(sorted(suite_dtypes))
        raise UnknownDtypeError(f"{launch.kernel} has fixed types, so {dtype} changes nothing; use {names}")


def _execution_facts(kernel: Kernel, dtype: str, launch: Launch) -> list[Any]:
    """Return the facts that determine an execution, except the contents of array arguments (`_list_array_facts`)."""
    module = kernel.compile_module(dtype, launch.flags, arch=ARCH, lines=True)
    bound = kernel.bind_arguments(dtype, **launch.arguments)
    return [
        fingerprint.hash_ptx(module.ptx, module.entry),
        vars(kernel.compute_geometry(dtype, **launch.arguments)),
        [argument.name for argument in bound],
        pack_arguments(bound, module.parameter_layout()),
        [
            [name, str(value.dtype), value.shape, value.tobytes()]
            for name, value in kernel.variable_values(launch.arguments).items()
        ],
    ]


def _list_array_facts(kernel: Kernel, dtype: str, launch: Launch) -> list[Any]:
    """Return the facts that determine each array's content and comparison, except functions that compute contents."""
    facts = []
    for array in kernel.bind_arguments(dtype, **launch.arguments):
        if isinstance(array, ArrayArgument):
            kind, values = str(array.dtype), "" if callable(array.values) else array.values
            facts.append([array.name, array.shape, kind, array.direction, values, array.limit, array.seed, array.ulp])
    return facts


def count_launches(launches: Iterable[Launch]) -> dict[str, CountOutcome]:
    """Execute launches; return text of a launch -> its outcome.

    Launches that differ only in flags are executed once if their PTX is the same and no error is raised.
    """
    by_launch: dict[str, CountOutcome] = {}
    by_code: dict[Any, CountOutcome] = {}
    for launch in launches:
        try:
            dtype = registry.find_kernel(launch.kernel).check_dtype(launch.dtype)
            ptx = compile_ptx(launch.kernel, dtype, launch.flags)
            key = (ptx, launch.kernel, launch.dtype, *launch.arguments.items())
            if key not in by_code:
                result = count_launch(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
                if result.problem:
                    by_code[key] = CountOutcome({}, failure=f"{launch.kernel}: {result.problem}")
                else:
                    by_code[key] = CountOutcome(
                        {name: metric.value(result.counters) for name, metric in METRICS.items()}
                    )
            by_launch[str(launch)] = by_code[key]
        except skip_reasons.UNKNOWN_NAME_ERRORS as error:
            by_launch[str(launch)] = CountOutcome({}, missing=skip_reasons.format_missing(error))
        except (*ERRORS, MemoryError) as error:
            by_launch[str(launch)] = CountOutcome({}, failure=f"{type(error).__name__}: {error}")
    return by_launch
