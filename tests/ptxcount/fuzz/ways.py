"""Three ways to run the random kernels: executor, host C++, and GPU."""

import ctypes
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest

from ptxcount.counting import rule_sums
from ptxcount.engine import execute, schedule
from ptxcount.engine.execute import execute_kernel
from ptxcount.lanes import symbolic_values
from ptxcount.lanes.warps import Array
from ptxcount.machine.block_memory import SharedMemory
from tests.ptxcount.fuzz import grammar
from tests.ptxcount.sources import compile_to_ptx

#: Compilers differ in contraction of a * b + c, so it is off.
FLAGS = "-w -fmad=false"
_THREADS = grammar.BLOCK * grammar.BLOCKS
#: Threads that store; the last ones only compute.
STORES = _THREADS - 5


@dataclass
class Memory:
    """The arrays of a launch, in the order of the kernels' parameters."""

    out: Array
    wide: Array
    real: Array
    precise: Array
    bins: Array
    table: Array
    bytes: Array
    reals: Array
    doubles: Array

    def arrays(self) -> list[Array]:
        return [getattr(self, field.name) for field in fields(self)]


def memory(seed: int) -> Memory:
    """Draw input arrays from a seed; return them with zeros as outputs."""
    rng, size = np.random.default_rng(seed), grammar.TABLE
    return Memory(
        np.zeros(_THREADS, np.uint32),
        np.zeros(_THREADS, np.uint64),
        np.zeros(_THREADS, np.float32),
        np.zeros(_THREADS, np.float64),
        np.zeros(grammar.BINS, np.uint32),
        rng.integers(0, 2**32, size, dtype=np.uint32),
        rng.integers(0, 2**8, size, dtype=np.uint8),
        (rng.normal(size=size) * 10.0 ** rng.integers(-20, 20, size)).astype(np.float32),
        rng.normal(size=size) * 10.0 ** rng.integers(-40, 40, size),
    )


def compile_ptx(seeds: list[int], folder: Path) -> str:
    source = folder / "fuzz.cu"
    source.write_text(grammar.module(seeds), encoding="utf-8")
    return compile_to_ptx(source, FLAGS)


def executor(ptx: str, seed: int) -> Memory:
    buffers = memory(seed)
    grid, block = (grammar.BLOCKS, 1, 1), (grammar.BLOCK, 1, 1)
    execute_kernel(ptx, grammar.name(seed), grid, block, [*buffers.arrays(), np.int32(STORES)])
    return buffers


class Host:
    """The kernels of some seeds as a library of host C++."""

    def __init__(self, seeds: list[int], folder: Path) -> None:
        parameters = ", ".join(f"static_cast<{kind}*>(a[{place}])" for place, kind in enumerate(_ELEMENTS))
        launchers = [
            f'extern "C" void run_{seed}(void** a) {{ launch({grammar.name(seed)}, {grammar.BLOCKS}u, '
            f"{parameters}, {STORES}); }}"
            for seed in seeds
        ]
        header = Path(__file__).with_name("host.h").read_text(encoding="utf-8")
        source, library = folder / "host.cpp", folder / "host.so"
        source.write_text("\n".join([header, grammar.module(seeds), *launchers]), encoding="utf-8")
        options = [
            "-std=c++17", "-O0", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", "-pthread",
            "-w",
        ]  # fmt: skip
        subprocess.run(["g++", *options, str(source), "-o", str(library)], check=True, capture_output=True)
        self._library = ctypes.CDLL(str(library))

    def __call__(self, seed: int) -> Memory:
        buffers = memory(seed)
        pointers = (ctypes.c_void_p * len(buffers.arrays()))(*(array.ctypes.data for array in buffers.arrays()))
        self._library[f"run_{seed}"](pointers)
        return buffers


#: Element types of the arrays of `Memory` in C++.
_ELEMENTS = ("unsigned", "unsigned long long", "float", "double", "unsigned", "const unsigned",
             "const unsigned char", "const float", "const double")  # fmt: skip


class Gpu:
    """The same PTX, loaded by the driver of the current CUDA context."""

    def __init__(self, ptx: str) -> None:
        import pycuda.driver as cuda

        self._module = cuda.module_from_buffer(ptx.encode())

    def __call__(self, seed: int) -> Memory:
        import pycuda.driver as cuda

        buffers = memory(seed)
        handles = [cuda.InOut(array) for array in buffers.arrays()]
        function = self._module.get_function(grammar.name(seed))
        function(*handles, np.int32(STORES), grid=(grammar.BLOCKS, 1), block=(grammar.BLOCK, 1, 1))
        return buffers


def differences(first: Memory, second: Memory) -> list[str]:
    """List the arrays that differ in any bit, each with the first index and both values."""
    mismatches = []
    for field in fields(Memory):
        a, b = getattr(first, field.name), getattr(second, field.name)
        differ = np.flatnonzero(a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}"))
        if len(differ):
            mismatches.append(f"{field.name}[{differ[0]}]: {a[differ[0]]} and {b[differ[0]]}")
    return mismatches


def without_shortcuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable symbolic sums, the common check of equal blocks, and divergence of blocks; make chunks small."""
    for module in (symbolic_values, rule_sums):
        monkeypatch.setattr(module, "split_sum", lambda value, size: None)
    monkeypatch.setattr(schedule, "_MAX_DIVERGENCE_DEPTH", 0)
    monkeypatch.setattr(execute, "CHUNK_THREADS", 500)
    touch = SharedMemory._check_access
    monkeypatch.setattr(
        SharedMemory, "_check_access", lambda self, *args, **options: touch(self, *args, **options | {"is_exact": True})
    )
