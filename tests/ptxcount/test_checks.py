"""Reports on wrong kernels: the fault, its line, thread and address."""

import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import ptxcount
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine.address_map import GUARD
from ptxcount.util import errors
from ptxcount.util.errors import Index3
from tests.ptxcount import sources
from tests.ptxcount.snippets import execute_snippet, module

F, INT = np.float32, np.int32
FLOATS: Any = np.arange(4096, dtype=F)


def _input(count: int) -> Any:
    array = FLOATS[:count].copy()
    array.flags.writeable = False
    return array


#: Kernel, grid, block, arguments, error, faulting block and thread, and a pattern of the message.
CASES: list[tuple[str, Index3, Index3, list[Any], type[errors.KernelFaultError], Index3, Index3, str]] = [
    ("off_by_one", (2, 1, 1), (64, 1, 1), [np.zeros(100, F), FLOATS[:100].copy(), np.int32(100)],
     errors.OutOfBoundsError, (1, 0, 0), (35, 0, 0),
     r"load of 4 bytes at 0x\w+, which is byte 400 of argument 1 of 400 bytes"),
    ("missing_barrier", (2, 2, 1), (32, 32, 1), [np.zeros(4096, F), FLOATS.copy(), np.int32(64), np.int32(64)],
     errors.SharedRaceError, (0, 0, 0), (1, 0, 0),
     r"shared address 4 races with thread \(0, 1, 0\), at .*: no __syncthreads\(\) between"),
    ("overwritten_too_early", (1, 1, 1), (64, 1, 1), [np.zeros(64, INT)],
     errors.SharedRaceError, (0, 0, 0), (1, 0, 0),  # thread 0 stores the value that is there
     r"store of 4 bytes at shared address 4 races with thread \(62, 0, 0\), at /"),
    ("never_written", (1, 1, 1), (64, 1, 1), [np.zeros(64, F), FLOATS[:64].copy()],
     errors.UninitializedReadError, (0, 0, 0), (0, 0, 0), "load of 4 bytes at shared address 252"),
    ("two_barriers", (1, 1, 1), (64, 1, 1), [np.zeros(64, INT)],
     errors.DivergentBarrierError, (0, 0, 0), (1, 0, 0), "other lanes of its warp wait at the barrier in"),
    ("endless", (1, 1, 1), (32, 1, 1), [np.zeros(2, INT)],
     errors.StepLimitExceededError, (0, 0, 0), (0, 0, 0), "stopped after 5000 instructions .* raise --step-limit"),
    ("fills_its_input", (2, 1, 1), (64, 1, 1), [np.zeros(64, F), _input(100)],
     errors.ReadOnlyError, (0, 0, 0), (0, 0, 0), "store of 4 bytes at byte 12 of argument 1 of 400 bytes"),
    ("clears_its_input", (1, 1, 1), (64, 1, 1), [np.zeros(64, F), _input(100)],
     errors.ReadOnlyError, (0, 0, 0), (40, 0, 0), "byte 160 of argument 1 of 400 bytes"),
    ("adds_to_its_input", (1, 1, 1), (64, 1, 1), [np.zeros(64, F), _input(100)],
     errors.ReadOnlyError, (0, 0, 0), (33, 0, 0), "atomic of 4 bytes at byte 0 of argument 1 of 400 bytes"),
    ("trapped", (1, 1, 1), (32, 1, 1), [np.zeros(32, INT)],
     errors.TrapError, (0, 0, 0), (5, 0, 0), "the kernel executed trap"),
]  # fmt: skip


def _line(entry: str) -> int:
    lines = (sources.FOLDER / "wrong.cu").read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if f" {entry}(" in line)
    return next(n for n in range(start, len(lines)) if "MISTAKE" in lines[n]) + 1


@pytest.mark.parametrize(
    ("entry", "grid", "block", "arguments", "error", "faulty_block", "thread", "text"), CASES, ids=[c[0] for c in CASES]
)
def test_fault_names_line_thread_and_address(
    entry: str, grid: Index3, block: Index3, arguments: list[Any], error: type[errors.KernelFaultError],
    faulty_block: Index3, thread: Index3, text: str,
) -> None:  # fmt: skip
    policies: dict[str, Any] = {"step_limit": 5000, "races": "error", "unwritten": "error"}
    with pytest.raises(error) as caught:
        execute_kernel(sources.ptx("wrong"), entry, grid, block, arguments, **policies)
    fault, message = caught.value, str(caught.value)
    assert re.search(text, message), message
    place = f"{sources.FOLDER / 'wrong.cu'}:{_line(entry)} (PTX line {fault.source.ptx_line})"
    assert message.startswith(f"{place}: {fault.kind}")
    assert (fault.block, fault.thread) == (faulty_block, thread)
    assert f"block {faulty_block}, thread {thread}" in message


@pytest.mark.parametrize(("opcode", "blocks"), [("trap", 1), ("brkpt", 1), ("brkpt", 1 << 13)])
def test_error_names_the_trapping_instruction(opcode: str, blocks: int) -> None:
    """A grid barrier executes ``trap`` if the grid is too large, as 8192 blocks are, but never ``brkpt``."""
    reads_grid_register = "mov.u32 %r1, %envreg2;"
    with pytest.raises(errors.TrapError, match=rf"the kernel executed {opcode} \(__{opcode}\(\)\)"):
        execute_snippet(module(f"{reads_grid_register} {opcode};", 0), [], blocks=blocks)


@pytest.mark.parametrize("place", [0, 1])
def test_read_only_argument_stays_read_only(place: int) -> None:
    memory = np.zeros(64, F)
    arrays = [memory, memory]
    arrays[place] = memory.view()
    arrays[place].flags.writeable = False
    with pytest.raises(errors.ReadOnlyError, match=f"argument {place} of 256 bytes"):
        sources.execute("wrong", "clears_its_input", arrays, threads=64)


GOOD: dict[str, Any] = {
    "entry": "off_by_one", "grid": (1, 1, 1), "block": (32, 1, 1),
    "args": [np.zeros(64, F), FLOATS[:64].copy(), np.int32(32)],
}  # fmt: skip
ARRAYS = GOOD["args"][:2]


@pytest.mark.parametrize(("change", "text"), [
    ({"entry": "nothing"}, r"no kernel 'nothing'; name one of off_by_one"),
    ({"grid": (1, 1)}, r"grid is \(1, 1\); give three numbers"),
    ({"grid": (1, 65536, 1)}, "grid.y is 65536; allowed are 1 to 65535"),
    ({"block": (2048, 1, 1)}, "block.x is 2048; allowed are 1 to 1024"),
    ({"block": (32, 33, 1)}, "has 1056 threads; at most 1024"),
    ({"args": ARRAYS}, "takes 3 arguments, not 2"),
    ({"args": [*ARRAYS, np.int64(3)]}, "argument 2 has 8 bytes; off_by_one takes 4"),
    ({"args": [*ARRAYS, 3]}, "argument 2 has the type int; pass an array or a NumPy scalar"),
    ({"args": [ARRAYS[0], FLOATS.astype(">f4"), np.int32(3)]},
     "argument 1 is an array of >f4; it must hold numbers in the byte order"),
])  # fmt: skip
def test_invalid_launch_is_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.LaunchError, match=text):
        execute_kernel(sources.ptx("wrong"), **GOOD | change)


@pytest.mark.parametrize(("distance", "barrier"), [(1, "syncwarp"), (32, "syncthreads")])
def test_race_advises_its_barrier(distance: int, barrier: str) -> None:
    """The first racing threads are in one warp or in two."""
    source = f"""__global__ void k(int* o) {{
        __shared__ int s[64]; int i = threadIdx.x;
        s[i] = i + 1;
        o[i] = s[(i + {distance}) % 64];
    }}"""
    (finding,) = ptxcount.count(source, "k", 1, 64, [np.zeros(64, INT)]).findings
    assert f": no __{barrier}() between them" in finding.message


def test_far_address_is_in_no_array() -> None:
    source = 'extern "C" __global__ void k(int* a, int* b, long i) { a[i] = 1; }'
    # array 0 begins GUARD + 512 bytes before array 1, of 256 bytes; the index is 1 << 40
    distance = 4 * (1 << 40) - (GUARD + 512) - 256
    text = f"in no array: {distance} bytes after the end of the nearest array below, "
    ptx = sources.compile_to_ptx(source)
    arguments: list[Any] = [np.zeros(64, INT), np.zeros(64, INT), np.int64(1 << 40)]
    for names, name in (([], "argument 1 of 256"), (["", "in (argument 1)", ""], r"'in' \(argument 1\) of 256")):
        with pytest.raises(errors.OutOfBoundsError, match=text + name):
            execute_kernel(ptx, "k", (1, 1, 1), (1, 1, 1), arguments, names=names)


@pytest.mark.parametrize(("index", "offset"), [(0, ""), (2, r" \+8 bytes"), (-1, " -4 bytes")])
def test_address_near_zero_is_a_null_pointer(index: int, offset: str) -> None:
    ptx = sources.compile_to_ptx('extern "C" __global__ void k(int** a, int i) { a[0][i] = 1; }')
    with pytest.raises(errors.OutOfBoundsError, match=f"store of 4 bytes at -?0x.: a null pointer{offset}$"):
        execute_kernel(ptx, "k", (1, 1, 1), (1, 1, 1), [np.zeros(1, np.int64), np.int32(index)])


#: Body of a kernel, number of threads that wait while lanes of their warp skip the barrier and then read, and True if
#: strict has a finding.
SKIPPED = [
    ("if (i < 40) { s[i] = 1; __syncthreads(); } o[i] = s[i % 32];", 40 - 32, True),
    ("for (int k = 0; k < 2 + i / 40; k++) { s[i] = k; __syncthreads(); } o[i] = s[i % 32];", 64 - 40, True),
    ("if (i < 32) { s[i] = 1; __syncthreads(); } o[i] = s[i % 32];", 0, False),  # a whole warp skips
    ("if (i >= 48) return; s[i] = i; __syncthreads(); o[i] = s[47 - i];", 0, False),
    ("if (i >= 48) { o[i] = 5; return; } s[i] = i; __syncthreads(); o[i] = s[47 - i];", 0, True),
    ("for (int k = 0; k < 2; k++) { if (i & 1) s[i] = k; __syncthreads(); o[i] += s[i ^ 1]; __syncthreads(); }",
     0, False),
]  # fmt: skip


def test_lanes_may_exit_but_not_skip_a_barrier() -> None:
    """Strict also reports an exit after a store, because compilers merge this store with one behind the barrier."""
    head = "(int* o) { __shared__ int s[64]; int i = threadIdx.x;"
    kernels = (f"__global__ void k{n}{head} {body} }}\n" for n, (body, *_) in enumerate(SKIPPED))
    ptx = sources.compile_to_ptx("".join(kernels))
    for n, (_, threads, has_strict_finding) in enumerate(SKIPPED):
        strict, lenient = (
            ptxcount.count(ptx, f"k{n}", 1, 64, [np.zeros(64, INT)], races=races, unwritten="off").findings
            for races in ("strict", "off")
        )
        assert ("divergent-barrier" in {finding.code for finding in strict}) == has_strict_finding
        expected = [("divergent-barrier", threads)] if threads else []
        assert [(finding.code, finding.times) for finding in lenient] == expected


@pytest.mark.parametrize("names", [("bar", "barrier"), ("barrier", "bar"), ("barrier", "barrier")])
def test_aligned_barrier_needs_all_lanes_of_a_warp(names: tuple[str, str]) -> None:
    """``bar`` is aligned, ``barrier`` is not. The order in the code does not matter."""
    even, odd = (f'asm volatile("{name}.sync 0;" ::: "memory");' for name in names)
    body = f"if (threadIdx.x % 2) {{ {odd} o[1] = 1; }} else {{ {even} o[0] = 2; }}"
    with pytest.raises(errors.DivergentBarrierError) if "bar" in names else nullcontext():
        ptxcount.count(f"__global__ void k(int* o) {{ {body} }}", "k", 1, 32, [np.zeros(2, INT)], races="off")
