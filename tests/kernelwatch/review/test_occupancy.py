"""Occupancy: blocks per multiprocessor, and kernels of which no block fits."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from benchmarks import sweeps
from kernelwatch.cli.compare import compare as main
from kernelwatch.review import launchable
from kernelwatch.review.conclusion import weigh_against_times
from kernelwatch.review.pairing import ConfigurationFacts, find_blocks
from kernelwatch.store.measurements import load_commit
from kernelwatch.store.results import History
from kernelwatch.toolchain import nvcc
from kernelwatch.workflow.load_review import describe_configuration
from ptxcount.util.architectures import MULTIPROCESSORS
from tests.kernelwatch.review.test_compare_groups import make_compiled
from tests.stored import BASE, HEAD, TIME, Suite, pair, review_as_json, samples, write, write_lines

#: Registers of base and head, the block of head (threads, shared bytes), and the reason; "" if more threads fit.
#: The block of base has 1024 threads.
BLOCKS = [
    (32, 40, (256, 0), "1536, 2048 before"),  # 2 blocks of 1024, 6 of 256
    (32, 40, (128, 0), "1536, 2048 before"),  # 12 of 128
    (32, 33, (64, 0), "1536, 2048 before"),  # 24 of 64
    (33, 34, (128, 0), "explanation only: 1536, 1024 before"),  # 1 of 1024, 12 of 128
    (30, 32, (256, 0), "explanation only: 2048, 2048 before"),
    (34, 33, (128, 0), ""),
    (30, 32, (1024, 200_000), "explanation only: 1024, 2048 before"),  # limited by shared memory
]


@pytest.mark.parametrize(("base", "head", "block", "reason"), BLOCKS)
def test_occupancy_compares_threads(base: int, head: int, block: tuple[int, int], reason: str) -> None:
    for arch in ("sm_90", "sm_90a"):
        registers = make_compiled(head, arch, "registers", base=base)
        (row,) = weigh_against_times([registers], "sm_90", find_launched=lambda _: ((1024, 0), block))
        assert row.judgement.reason.replace(" threads fit on a multiprocessor", "") == reason
        assert row.decides is not reason.startswith("explanation")


#: Name of the kernel in `cubins.jsonl`.
CUBIN = "offset_copy, float32, -Xptxas -O3"


def test_blocks_are_those_recorded(tmp_path: Path) -> None:
    """Without a record, the block is that of the checkout."""
    folder = write(tmp_path, pair(1.0, 1.1)) / "results" / "gpu"
    kernel = {"kernel": "transpose_write_coalesced", "dtype": "float32"}
    blocks = {" ".join(kernel.values()): [64, 128]}
    write_lines(folder / "cubins.jsonl", {"commit": BASE, "arch": "sm_90", "cubins": {CUBIN: "a"}, "blocks": blocks})
    history = History("gpu", tmp_path)
    base, head = (load_commit(history, commit, "python3.11") for commit in (BASE, HEAD))
    row = make_compiled(12, "sm_90", **kernel)
    today = describe_configuration(row.benchmark, {**kernel, **row.params}).block
    assert today is not None
    find = partial(find_blocks, base, head, lambda *_: ConfigurationFacts("", block=today))
    assert find(row) == ((64, 128), today)
    assert find(make_compiled(12, "sm_80", **kernel)) == (today, today)


#: Registers of base and head, their blocks, and the key in JSON. On sm_90, 1024 threads allow 64 registers.
UNLAUNCHABLE = {
    "too many registers": ((64, 65), ((1024, 0), (1024, 0)), "broken"),
    "a larger block": ((65, 65), ((896, 0), (1024, 0)), "broken"),
    "a larger block, recorded in head alone": ((64, 65), (None, (1024, 0)), "broken"),
    "more shared memory": ((32, 32), ((256, 227 * 1024), (256, 227 * 1024 + 1)), "broken"),
    "fewer registers": ((65, 64), ((1024, 0), (1024, 0)), "repaired"),
    "launchable in neither": ((65, 66), ((1024, 0), (1024, 0)), ""),
    "launchable in both": ((65, 72), ((896, 0), (896, 0)), ""),
    "no recorded block": ((64, 65), ((1024, 0), None), ""),
}


@pytest.mark.parametrize("case", UNLAUNCHABLE)
def test_unlaunchable_kernel_is_broken(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that only head cannot launch is broken, even with a faster time; only base: repaired."""
    registers, blocks, expected = UNLAUNCHABLE[case]
    name = "track_compiled.Compiled.track_registers"
    where = {"kernel": ["offset_copy"], "dtype": ["float32"], "flags": ["-O3"], "arch": ["sm_90"]}
    params = ", ".join(text for (text,) in where.values())
    suite: Suite = {
        commit: {TIME: {"one": samples(seconds)}, name: {params: float(count)}}
        for commit, seconds, count in zip((BASE, HEAD), (1e-3, 0.5e-3), registers, strict=True)
    }
    folder = write(tmp_path, suite, axes={name: where}) / "results" / "gpu"
    lines = (
        {"commit": commit, "arch": "sm_90", "cubins": {CUBIN: "a"}, "blocks": {"offset_copy float32": block}}
        for commit, block in zip((BASE, HEAD), blocks, strict=True)
        if block
    )
    write_lines(folder / "cubins.jsonl", *lines)
    code, document = review_as_json(tmp_path, capsys, BASE, HEAD, "--trade", "all")
    broken = expected == "broken"
    assert (code, document["conclusion"] == "BROKEN") == (int(broken), broken)
    reasons = [failure["reason"] for failure in document.get(expected, [])]
    assert ["cannot be launched on sm_90" in reason for reason in reasons] == [True] * bool(expected)
    main([BASE, HEAD, "--trade", "all"], tmp_path)
    assert capsys.readouterr().out.startswith("BROKEN") is broken


#: A program that prints the blocks per multiprocessor that NVIDIA's header computes, one line per line of input.
_PROBE = r"""
#include <climits>
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    int major, minor, warps, threads, registers; size_t shared_sm, reserved, shared;
    while (scanf("%d %d %d %zu %zu %d %d %zu", &major, &minor, &warps, &shared_sm, &reserved, &threads, &registers,
                 &shared) == 8) {
        cudaOccDeviceProp p; cudaOccFuncAttributes a; cudaOccDeviceState s; cudaOccResult r;
        p.computeMajor = major; p.computeMinor = minor; p.maxThreadsPerBlock = 1024; p.warpSize = 32;
        p.maxThreadsPerMultiprocessor = 32 * warps; p.regsPerBlock = p.regsPerMultiprocessor = 65536;
        p.sharedMemPerBlock = 49152; p.sharedMemPerMultiprocessor = shared_sm; p.numSms = 1;
        p.sharedMemPerBlockOptin = shared_sm - reserved; p.reservedSharedMemPerBlock = reserved;
        a.maxThreadsPerBlock = INT_MAX; a.numRegs = registers; a.sharedSizeBytes = shared;
        a.maxDynamicSharedSizeBytes = 0; a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        s.cacheConfig = CACHE_PREFER_SHARED; s.carveoutConfig = 100;
        cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, threads, 0);
        printf("%d\n", e == CUDA_OCC_SUCCESS ? r.activeBlocksPerMultiprocessor : -1);
    }
}
"""


def test_occupancy_as_in_cuda_occupancy_h(tmp_path: Path) -> None:
    header = Path(nvcc.find_nvcc()).resolve().parent.parent / "include" / "cuda_occupancy.h"
    if not header.exists() or shutil.which("g++") is None:
        pytest.skip(f"no g++, or no {header}")
    (tmp_path / "probe.cpp").write_text(_PROBE)
    words = ["g++", f"-I{header.parent}", str(tmp_path / "probe.cpp"), "-o", str(tmp_path / "probe")]
    subprocess.run(words, check=True, capture_output=True)
    cases = [
        (arch, threads, registers, shared)
        for arch in MULTIPROCESSORS
        for threads in (32, 64, 96, 160, 256, 288, 512, 768, 1024)
        for registers in (0, 16, 24, 25, 32, 33, 40, 41, 64, 65, 96, 128, 168, 255)
        for shared in (0, 1, 2048, 4096, 4224, 8320, 16896, 33792, 49152)
    ]
    requests = []
    for arch, threads, registers, shared in cases:
        holds = MULTIPROCESSORS[arch]
        major, minor = divmod(int(arch.removeprefix("sm_")), 10)
        limits = f"{holds.warps} {holds.shared} {holds.reserved}"
        requests.append(f"{major} {minor} {limits} {threads} {registers} {shared}")
    done = subprocess.run([tmp_path / "probe"], input="\n".join(requests), capture_output=True, text=True, check=True)
    expected = [int(line) for line in done.stdout.split()]
    assert [launchable.count_blocks(MULTIPROCESSORS[arch], *numbers) for arch, *numbers in cases] == expected
    assert len({*expected}) > 15, "the cases are too alike"


def test_multiprocessor_limits_of_every_architecture_are_known() -> None:
    assert {*sweeps.ARCHS} <= {*MULTIPROCESSORS}
