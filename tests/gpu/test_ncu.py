"""The executor's counters against Nsight Compute's, for every kernel and dtype at awkward shapes.

Requests, sectors and lines are equal. So are wavefronts of stores to shared memory, in launches that move up to 8 MiB;
those of loads are up to 8 % more on the chip. Beyond, the chip's counters of wavefronts also hold replays.
"""

from __future__ import annotations

import shutil

import pytest

from experiments import nsight
from gpu_kernels import KERNELS, catalog
from kernelwatch.counting import transactions
from kernelwatch.kernel import Launch
from tests.cases import COVERING_TRANSPOSES, awkward

pytestmark = pytest.mark.gpu

#: Counter -> metric of Nsight Compute.
METRICS = {
    f"{prefix}{kind}_{name}": metric.format(op)
    for kind, op in (("load", "ld"), ("store", "st"))
    for prefix, name, metric in (
        ("", "requests", "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"),
        ("", "sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"),
        ("", "lines", "l1tex__t_set_accesses_pipe_lsu_mem_global_op_{}.sum"),
        ("shared_", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"),
    )
}

#: Useful bytes each way up to which the chip's wavefronts are close.
MANY = 8 << 20

#: Kernels whose loads from shared memory ptxas merges: four elements of a row of a tile are one load of 16 bytes.
MERGED = ("matmul_tiled", "matmul_corner_turning")

#: The largest of the awkward shapes, and the transposes once with many threads.
CASES = [
    *(
        Launch(name, dtype, arguments=arguments)
        for name, kernel in KERNELS.items()
        for dtype in kernel.operation.dtypes
        for arguments in awkward(name)[-4:]
    ),
    *(Launch(name, arguments={"rows": 4096, "columns": 4096}) for name in COVERING_TRANSPOSES),
]


def allowed(name: str, ours: int, launch: Launch) -> tuple[float, float]:
    """Return the least and the most that the chip may read where we count `ours`."""
    if not name.endswith("wavefronts"):
        return ours, ours
    if launch.kernel in MERGED and name == "shared_load_wavefronts":
        return 1, ours
    if catalog.get(launch.kernel).useful_bytes(launch.dtype, **launch.arguments) > 2 * MANY:
        return ours, float("inf")
    return ours, 1.08 * ours if "load" in name else ours


def test_counters() -> None:
    """Whatever differs by more than is allowed is named, with our number and the chip's."""
    if shutil.which("ncu") is None:
        pytest.skip("ncu is not on PATH; it comes with the CUDA toolkit")
    wrong = []
    for launch, (reading,) in zip(CASES, nsight.profile(CASES, list(METRICS.values())), strict=True):
        ours = transactions.count(launch.kernel, launch.dtype, **launch.arguments).counters.totals()
        for name, metric in METRICS.items():
            least, most = allowed(name, ours[name], launch)
            if not least <= reading[metric] <= most:
                wrong.append(f"{launch}: {name} {ours[name]}, the chip {reading[metric]:g}")
    assert not wrong, "\n".join(wrong)
