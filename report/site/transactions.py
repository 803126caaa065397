"""What the page Transactions shows of the current checkout: the kernels' source with what each line costs."""

from __future__ import annotations

from typing import Any

from benchmarks.instruments import transactions
from gpu_kernels import catalog
from gpu_kernels.errors import GpuKernelsError
from gpu_kernels.sweep import Launch
from ptxcount import listing
from ptxcount.errors import PtxError


def sources() -> list[dict[str, Any]]:
    """Return of each kernel of the catalog its launch, its annotated lines, or why there are none."""
    return [_source(launch) for launch in _launches()]


def _launches() -> list[Launch]:
    """Return each kernel's counted launch that tells most."""
    found = {}
    for sweep in catalog.counted():
        for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
            found[kernel] = sweep.launch({**sweep.chosen(), "kernel": kernel})
    return [found[name] for name in catalog.KERNELS if name in found]


def _source(launch: Launch) -> dict[str, Any]:
    kernel = catalog.get(launch.kernel)
    shown: dict[str, Any] = {"kernel": launch.kernel, "file": kernel.source, "launch": str(launch)}
    try:
        result = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
    except (GpuKernelsError, PtxError) as error:  # no compiler here, or a kernel that someone is working on
        return shown | {"lines": [], "problem": f"{type(error).__name__}: {error}"}
    text = kernel.source_text().splitlines()
    lines = listing.listing(result.counters, lambda _: text).splitlines()[1:]  # the first names the file
    return shown | {"lines": lines, "problem": result.problem()}
