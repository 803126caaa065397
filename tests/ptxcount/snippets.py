"""Single PTX instructions as kernels: one thread for each row of operands."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ptxcount.counting.counters import LaunchCounters
from ptxcount.engine.execute import execute_kernel
from ptxcount.engine.launch_context import STEP_LIMIT
from ptxcount.lanes.warps import Array
from ptxcount.machine.argument_layout import KernelArgument


def _kind(dtype: np.dtype[Any]) -> str:
    return f"{'f' if dtype.kind == 'f' and dtype.itemsize > 2 else 'b'}{dtype.itemsize * 8}"


def module(
    body: str, parameters: int, registers: str = "", *, maps: int = 0, functions: str = "", target: str = "8.0 sm_90"
) -> str:
    """Write a module with one kernel, ``snippet``.

    Of its `parameters`, the first `maps` are tensor maps, and the rest are 64-bit values. %r0 is the thread's index;
    `target` has the PTX version and the architecture.
    """
    version, arch = target.split()
    kinds = [f".align 64 .b8 p{k}[128]" if k < maps else f".u64 p{k}" for k in range(parameters)]
    params = ", ".join(f".param {kind}" for kind in kinds)
    return (
        f".version {version}\n.target {arch}\n.address_size 64\n{functions}"
        f".visible .entry snippet({params})\n{{\n"
        f".reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<99>;\n{registers}\n"
        f"mov.u32 %r0, %tid.x;\n{body}\nret;\n}}\n"
    )


def list_registers(name: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"{name}{number}" for number in range(first, first + count)) + "}"


def execute_snippet(
    text: str, arguments: Sequence[KernelArgument], *, threads: int = 32, blocks: int = 1, **options: Any
) -> LaunchCounters:
    return execute_kernel(text, "snippet", (blocks, 1, 1), (threads, 1, 1), arguments, **options)


def _run_on_cpu(text: str, threads: int, arrays: list[Array]) -> None:
    execute_snippet(text, arrays, threads=threads)


def evaluate(
    instruction: str, operands: list[Array], result: Any, launch: Callable[[str, int, list[Array]], None] = _run_on_cpu
) -> Array:
    """Return the results of an instruction, one thread for each element of the operands, at most 1024.

    The instruction has ``{d}`` for the destination and ``{a}``, ``{b}``, ``{c}``, ``{e}`` for the operands; an opcode
    alone gets all of them in this order. The type bool is a predicate. `launch` takes the text, the number of threads,
    and arrays that it changes.
    """
    count, lines, declared, names = len(operands[0]), [], [], {}
    result = np.dtype(result)
    arrays: list[Array] = [np.zeros(count, "u4" if result.kind == "b" else result)]
    for place, (letter, operand) in enumerate(zip("abce", operands, strict=False), start=1):
        stored = operand.astype("u4") if operand.dtype.kind == "b" else operand
        kind, size = _kind(stored.dtype), stored.dtype.itemsize
        register = f"%{letter}{letter}"
        width = "b16" if size == 1 else kind  # registers of one byte do not exist
        declared.append(f".reg .{width} {register};")
        lines += [
            f"ld.param.u64 %rd1, [p{place}];",
            f"mad.wide.u32 %rd2, %r0, {size}, %rd1;",
            f"ld.global.{'u8' if size == 1 else kind} {register}, [%rd2];",
        ]
        names[letter] = register
        if operand.dtype.kind == "b":
            declared.append(f".reg .pred %{letter}p;")
            lines.append(f"setp.ne.u32 %{letter}p, {register}, 0;")
            names[letter] = f"%{letter}p"
        arrays.append(np.ascontiguousarray(stored))
    kind = _kind(arrays[0].dtype)
    declared += [f".reg .{'b16' if kind == 'b8' else kind} %dd;", ".reg .pred %dp;"]
    names["d"] = "%dp" if result.kind == "b" else "%dd"
    if "{" not in instruction:
        instruction += " {d}, " + ", ".join(f"{{{letter}}}" for letter in "abce"[: len(operands)])
    lines.append(instruction.format(**names) + ";")
    if result.kind == "b":
        lines.append("selp.u32 %dd, 1, 0, %dp;")
    lines += [
        "ld.param.u64 %rd1, [p0];",
        f"mad.wide.u32 %rd2, %r0, {arrays[0].itemsize}, %rd1;",
        f"st.global.{'u8' if kind == 'b8' else kind} [%rd2], %dd;",
    ]
    launch(module("\n".join(lines), len(arrays), "\n".join(declared)), count, arrays)
    return arrays[0].astype(bool) if result.kind == "b" else arrays[0]


#: Registers: %rd1 points to the thread's element of the argument, %r1 to its word in shared memory. %r2 points to the
#: word of its neighbour in the warp, %r3 to the word of the same lane in the next warp.
PLACES = """
ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd1, %r0, 4, %rd1;
mov.u32 %r7, s; mad.lo.u32 %r1, %r0, 4, %r7; xor.b32 %r2, %r1, 4; xor.b32 %r3, %r1, 128;
"""
SHARED = ".shared .align 16 .b8 s[256];"


def words_after(body: str, *, threads: int = 64, blocks: int = 1, size: int = 64, step_limit: int = STEP_LIMIT) -> Any:
    """Run a kernel on an array of 32-bit words 0, 1, 2, ...; return the array afterwards."""
    out = np.arange(size, dtype=np.uint32)
    text = module(PLACES + body, 1, SHARED)
    policies = {"races": "error", "unwritten": "error"}
    execute_snippet(text, [out], threads=threads, blocks=blocks, step_limit=step_limit, **policies)
    return out
