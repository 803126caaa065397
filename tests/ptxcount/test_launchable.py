"""Launches that no GPU accepts: errors with numbers and a remedy, no counts."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxcount import LaunchError, count
from ptxcount.command_line import main
from ptxcount.util import architectures
from tests.ptxcount.languages import write_copy
from tests.ptxcount.machine_code import disassemble
from tests.ptxcount.snippets import module

#: A kernel with too many registers for 1024 threads, and kernels with each bound.
SOURCE = r"""
extern __shared__ float dynamic[];
__device__ float sum(const float* in) {
    float r[140];
#pragma unroll
    for (int k = 0; k < 140; ++k) r[k] = in[threadIdx.x + k * 16];
    __syncthreads();
    const float by = in[0];  // known only now, so all of r is in registers
    float s = 0;
#pragma unroll
    for (int k = 0; k < 140; ++k) s = s * by + r[k];
    return s;
}
extern "C" {
__global__ void heavy(float* out, int n) { out[threadIdx.x] = sum(out); }
__global__ void __launch_bounds__(256) bounded(float* out, int n) { out[threadIdx.x] = 1; }
__global__ void __launch_bounds__(1024) heavy_bounded(float* out, int n) { out[threadIdx.x] = sum(out); }
#define KERNEL(name, size, more) __global__ void name(float* out, int n) { \
    __shared__ float s[size]; s[threadIdx.x] = n; more; __syncthreads(); out[threadIdx.x] = s[threadIdx.x ^ 1]; }
KERNEL(large, 12289,)
KERNEL(largest, 12288,)
KERNEL(both, 1024, dynamic[threadIdx.x] = n)
}
"""
STATIC = 1024 * 4  # bytes of shared memory of the kernel `both`
#: Kernel, threads, options, and part of the error; none for valid launches.
LAUNCHES: list[tuple[str, int, dict[str, Any], str]] = [
    ("heavy", 256, {}, ""),
    ("heavy", 1024, {}, r"1024 threads of 1\d\d registers; they need 1\d{5}, .* has 65536; launch at most 384"),
    ("heavy", 1024, {}, r"__launch_bounds__\(1024\) or -maxrregcount=64$"),
    ("heavy", 640, {}, r"__launch_bounds__\(640\) or -maxrregcount=96$"),
    ("heavy", 1024, {"flags": "-maxrregcount=64"}, ""),
    ("heavy_bounded", 1024, {}, ""),
    ("bounded", 256, {}, ""),
    ("bounded", 257, {}, "threads; at most 256 are allowed by __launch_bounds__"),
    ("largest", 32, {}, ""),
    ("large", 32, {}, "49156 bytes of static shared memory; at most 49152 are allowed; .*extern __shared__"),
    ("both", 32, {"dynamic_shared": 227 * 1024 - STATIC}, ""),
    ("both", 32, {"dynamic_shared": 227 * 1024 - STATIC + 1}, "a block needs 232449 bytes of shared memory"),
    ("both", 32, {"dynamic_shared": 99 * 1024 - STATIC, "arch": "sm_86"}, ""),
    ("both", 32, {"dynamic_shared": 99 * 1024 - STATIC + 1, "arch": "sm_86"}, "sm_86 allows 101376"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "threads", "options", "error"), LAUNCHES)
def test_only_too_large_block_is_refused(entry: str, threads: int, options: dict[str, Any], error: str) -> None:
    arguments: list[Any] = [np.ones(4096, np.float32), np.int32(4096)]
    with pytest.raises(LaunchError, match=error) if error else nullcontext():
        assert count(SOURCE, entry, 1, threads, arguments, **options).totals()["store_requests"] > 0


#: Directives of a kernel, threads along x and y, and the error without ptxas; none for valid launches.
DIRECTIVES = [
    (".maxntid 128", (128, 1), ""), (".maxntid 128", (129, 1), "threads; at most 128 are allowed by __launch_bounds__"),
    (".maxntid 16, 8", (128, 1), ""), (".maxntid 16, 8", (16, 9), "144 threads; at most 128 are allowed by"),
    (".reqntid 16, 8", (16, 8), ""), (".reqntid 16, 8", (128, 1), r"it must be \(16, 8, 1\)"),
    (".reqntid 128", (64, 1), r"it must be \(128, 1, 1\)"),
]  # fmt: skip


@pytest.mark.parametrize(("directive", "block", "error"), DIRECTIVES)
def test_directives_are_checked_without_ptxas(
    directive: str, block: tuple[int, int], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC", "/nowhere/nvcc")
    with pytest.raises(LaunchError, match=error) if error else nullcontext():
        text = module("", 0).replace("{", f"{directive}\n{{", 1)
        assert count(text, None, 1, block, []).totals()["load_requests"] == 0


@pytest.mark.parametrize(("target", "arch", "size", "message"), [
    ("sm_120a", None, 101377, "101377 bytes of shared memory, .*; sm_120a allows 101376"),
    ("sm_90", "sm_120", 101377, "sm_120 allows 101376"), ("sm_90a", "sm_90", 232449, "sm_90a allows 232448"),
    ("sm_70", None, 98305, ""), ("sm_80", "compute_80", 98305, ""), ("sm_80", "native", 98305, ""),
    *(("sm_50", arch, size + 1, f"{arch} allows {size}") for arch, size in (
        ("sm_75", 65536), ("sm_87", 166912), ("sm_88", 101376), ("sm_103a", 232448), ("sm_121", 101376))),
])  # fmt: skip
def test_arch_precedes_the_target_for_limits(target: str, arch: str | None, size: int, message: str) -> None:
    """A target with a suffix, such as sm_90a, stays if ``arch`` is without it. Unknown limits are a finding."""
    with pytest.raises(LaunchError, match=message) if message else nullcontext():
        counters = count(module("", 0, target=f"8.0 {target}"), None, 1, 32, [], arch=arch, dynamic_shared=size)
        (finding,) = counters.findings
        assert str(finding).endswith(f"ptxcount does not know the limits of {arch or target}")


@pytest.mark.parametrize(("target", "align", "kept"), [
    ("sm_90", 1024, 1024), ("sm_90", 2048, 1024), ("sm_100a", 16384, 1024), ("sm_89", 2048, 2048),
])  # fmt: skip
def test_alignment_that_ptxas_does_not_keep_is_a_finding(
    target: str, align: int, kept: int, nvdisasm: Path, tmp_path: Path
) -> None:
    """The first variable in shared memory is at address 0 of the PTX; machine code has 0 or 1024."""
    body = "mov.u32 %r1, s; st.shared.u32 [%r1], %r0; ld.param.u64 %rd1, [p0]; st.global.u32 [%rd1], %r1;"
    text = module(body, 1, f".shared .align {align} .b8 s[128];", target=f"8.8 {target}")
    (code,) = disassemble(text, nvdisasm, tmp_path, target).values()
    assert any("0x400" in line for line in code) == (target != "sm_89")
    codes = [finding.code for finding in count(text, None, 1, 32, [np.zeros(1, np.uint32)]).findings]
    assert ("lost-alignment" in codes) == (kept < align)


def test_unknown_target_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(write_copy([".param .u64"] * 2).replace("sm_90a", "sm_70"), encoding="utf-8")
    table = "[[launch]]\nfile = 'k.ptx'\ngrid = 1\nblock = 32\narguments = ['x=float32[8]', 'o=float32[8]']\n"
    Path("ptxcount.toml").write_text(table, encoding="utf-8")
    assert (main(["pin"]), main(["check"])) == (0, 0)
    problem = "shared memory of a block was not checked: ptxcount does not know the limits of sm_70"
    text = f"k.ptx:1: warning: PC011 {problem} [launch k]"
    assert capsys.readouterr().out.splitlines()[-2:] == [text, "1 launch passed"]


def test_advised_registers_are_the_most_that_fit() -> None:
    for threads in range(32, 1025, 32):
        registers = architectures.fit_registers(threads)
        assert 32 * architectures.fit_warps(registers) >= threads
        assert registers == 255 or 32 * architectures.fit_warps(registers + 1) < threads


def test_blocks_without_shared_memory_fit() -> None:
    """On sm_75, not even the driver reserves any; 32 warps fit."""
    assert architectures.MULTIPROCESSORS["sm_75"].fit_blocks(threads=4 * 32, shared=0) == 32 // 4
