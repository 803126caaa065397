"""What the page Transactions shows of the current checkout: the kernels' source with what each line costs."""

from __future__ import annotations

from typing import Any

from benchmarks import axes
from benchmarks.counters import listing
from benchmarks.instruments import counted
from benchmarks.instruments.ptx.errors import PtxError
from gpu_kernels import catalog
from gpu_kernels.errors import GpuKernelsError

DTYPE = "float32"

#: The cases of the counted benchmarks that tell most: a matrix whose rows begin anywhere in a sector, and the smallest
#: offset and stride that cost something. A new operation: one row.
_ARGUMENTS = {
    "transpose": {"rows": 1000, "columns": 700},
    "copy with an offset": {"size": 1 << 16, "offset": 1},
    "copy with a stride": {"size": 1 << 16, "stride": 2},
}


def sources() -> list[dict[str, Any]]:
    """Each kernel of the catalog: its arguments, its annotated lines, or why there are none."""
    return [_source(name) for name in axes.KERNELS]


def _source(name: str) -> dict[str, Any]:
    kernel = catalog.get(name)
    arguments = _ARGUMENTS.get(kernel.operation.name)
    shown: dict[str, Any] = {"kernel": name, "file": kernel.source, "dtype": DTYPE, "arguments": arguments or {}}
    if arguments is None:
        return shown | {"lines": [], "problem": f"no case is chosen for the operation {kernel.operation.name!r} yet"}
    try:
        result = counted.count(name, DTYPE, **arguments)
    except (GpuKernelsError, PtxError) as error:  # no compiler here, or a kernel that someone is working on
        return shown | {"lines": [], "problem": f"{type(error).__name__}: {error}"}
    text = catalog.get(name).source_text().splitlines()
    lines = listing.listing(result.counters, lambda _: text).splitlines()[1:]  # the first names the file
    return shown | {"lines": lines, "problem": result.problem()}
