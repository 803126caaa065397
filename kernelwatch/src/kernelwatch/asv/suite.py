"""The benchmarks that asv sees, by name, each with the sweep that it is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from benchmarks.checkout import today
from kernelwatch.counting.transactions import METRICS
from kernelwatch.instrument import tools

if TYPE_CHECKING:
    from gpu_kernels.sweep import Launch, Sweep


class Kind(Enum):
    """What a benchmark's numbers are."""

    TIMED = "timed"
    #: Times, as multiples of a copy's time.
    CONTROL = "control"
    COUNTED = "counted"
    COMPILED = "compiled"


#: The architectures that kernels are compiled for on any machine.
ARCHS = ("sm_80", "sm_90", "sm_100")

#: What a compiled benchmark reads of the compiler's report -> its unit, and what a person calls it.
RESOURCES = {
    "registers": ("registers/thread", "registers a thread"),
    "spill_bytes": ("bytes/thread", "bytes spilled a thread"),
    "shared_bytes": ("bytes/block", "static shared memory a block"),
}

#: A copy by the widest accesses, perfectly coalesced: the ceiling for a kernel that moves as many bytes. Not the
#: driver's: as a node of a graph, its copies of some sizes from 512 MiB on reach two thirds of the bandwidth that they
#: have outside of it (docs/evidence/log.md).
DEVICE_COPY = today.sweep.Sweep(
    "DeviceCopy",
    "Device copy, DRAM",
    {"rows x columns": today.operations.MATRICES, "dtype": today.dtypes.ONE_OF_EACH_SIZE},
    module="time_copy",
    kernel=tools.DEVICE_COPY.name,
    shown={"rows x columns": today.operations.LARGEST, "dtype": "float32"},
)


def _dtypes() -> tuple[str, ...]:
    """Return the dtypes of all operations."""
    return tuple(dict.fromkeys(dtype for operation in today.catalog.performed() for dtype in operation.dtypes))


COMPILED = today.sweep.Sweep(
    "Compiled",
    "Compiled",
    {"kernel": tuple(today.KERNELS), "dtype": _dtypes(), "flags": today.FLAG_SETS, "arch": ARCHS},
    module="track_compiled",
    shown={"dtype": "float32", "arch": "sm_90"},
)


def time(sweep: Sweep) -> str:
    """Return the name of a timed sweep's benchmark."""
    return f"{sweep.module}.{sweep.name}.time_{'isolated' if sweep.isolated else 'back_to_back'}"


def control(name: str) -> str:
    """Return the name of the benchmark that holds a timed one's times in copies of the same bytes."""
    return f"track_control.{name.split('.')[1]}.track_copy_ratio"


def metrics(sweep: Sweep) -> list[str]:
    """Return the metrics of a counted sweep."""
    return [name for name, metric in METRICS.items() if sweep.shared or not metric.shared]


def _benchmarks() -> Iterator[tuple[str, Kind, Sweep]]:
    for sweep in today.catalog.timed():
        yield time(sweep), Kind.TIMED, sweep
        yield control(time(sweep)), Kind.CONTROL, sweep
    yield time(DEVICE_COPY), Kind.TIMED, DEVICE_COPY
    for sweep in today.catalog.counted():
        for metric in metrics(sweep):
            yield f"track_counted.{sweep.name}.track_{metric}", Kind.COUNTED, sweep
    for resource in RESOURCES:
        yield f"track_compiled.{COMPILED.name}.track_{resource}", Kind.COMPILED, COMPILED


#: Benchmark -> what its numbers are, and its sweep.
BENCHMARKS: dict[str, tuple[Kind, Sweep]] = {name: (kind, sweep) for name, kind, sweep in _benchmarks()}


def _measured_together() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, (kind, sweep) in BENCHMARKS.items():
        if kind is Kind.TIMED:
            found[name.rpartition(".")[0]] = [name, *({control(name)} & set(BENCHMARKS))]
        elif kind is Kind.COUNTED:
            found.setdefault(f"track_counted.{sweep.name}", []).append(name)
    return found


#: Class, with its module -> the benchmarks whose numbers one measurement gives: a time comes first.
TOGETHER: dict[str, list[str]] = _measured_together()

#: Benchmark -> the class whose measurement gives its numbers; none for what the compiler made.
CLASS_OF: dict[str, str] = {benchmark: name for name, each in TOGETHER.items() for benchmark in each}


def launch(benchmark: str, params: Mapping[str, object]) -> Launch | None:
    """Return what a configuration launches; None where its parameters do not tell.

    Results may be older or newer than the suite, so what it does not know is no error: then the parameters alone tell.
    """
    try:
        if benchmark in BENCHMARKS:
            return BENCHMARKS[benchmark][1].launch(params)
        said = today.sweep.read(params)
        return today.sweep.Launch(**said) if "kernel" in said else None
    except (ValueError, today.errors.GpuKernelsError):
        return None


def useful_bytes(benchmark: str, params: Mapping[str, object]) -> int | None:
    """Return the bytes that a configuration must move; None where they are not known here."""
    found = launch(benchmark, params)
    if found is None:
        return None
    try:
        if found.kernel == tools.DEVICE_COPY.name:
            return tools.MATRIX_COPY.useful_bytes(found.dtype, **found.arguments)
        return today.catalog.get(found.kernel).useful_bytes(found.dtype, **found.arguments)
    except (TypeError, today.errors.GpuKernelsError):  # a kernel, arguments or a dtype of another suite's
        return None


def flops(benchmark: str, params: Mapping[str, object]) -> int | None:
    """Return the floating-point operations that a configuration must do; None where there are none, or not known."""
    found = launch(benchmark, params)
    if found is None or found.kernel == tools.DEVICE_COPY.name:
        return None
    try:
        return today.catalog.get(found.kernel).flops(**found.arguments) or None
    except today.errors.GpuKernelsError:  # a kernel or arguments of another suite's
        return None


def machine_code(benchmark: str, params: Mapping[str, object]) -> str | None:
    """Return the name of a configuration's machine code in `cubins.jsonl`; None where it is no kernel's to measure."""
    found = launch(benchmark, params)
    return None if found is None or found.kernel == tools.DEVICE_COPY.name else found.machine_code
