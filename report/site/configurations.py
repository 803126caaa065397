"""What the pages know of each benchmark: its axes, and what turns its values into what they show."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from gpu_kernels import dtypes
from gpu_kernels.errors import GpuKernelsError
from report import picture, useful_bytes
from report.results import History

#: Kernel -> the share of its aligned, unit-stride rate that 32-byte sectors leave, from its argument and the item size.
_SHARES: dict[str | None, tuple[str, Callable[[int, int], float]]] = {
    "offset_copy": ("offset", picture.predicted_by_offset),
    "stride_copy": ("stride", picture.predicted_by_sectors),
}


def described(history: History, benchmark: str) -> dict[str, Any]:
    """A benchmark's title, unit and axes; for times also what each configuration moves, in the order of the axes.

    `useful_bytes` is null where GB/s would mean nothing, `predicted_share` where nothing is predicted.
    """
    axes = history.axes(benchmark)
    shown: dict[str, Any] = {
        "title": history.title(benchmark),
        "unit": history.unit(benchmark),
        "type": history.type(benchmark),
        "axes": axes,
    }
    if shown["type"] == "time":
        every = combinations(axes)
        shown["useful_bytes"] = [useful_bytes.of(params) for params in every]
        shown["predicted_share"] = [predicted_share(params) for params in every]
    return shown


def combinations(axes: dict[str, list[str]]) -> list[dict[str, str]]:
    """The parameters of every configuration, the last axis varying fastest, as asv stores them."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def predicted_share(params: dict[str, str]) -> float | None:
    """What 32-byte sectors leave of the rate at offset 0 or stride 1; None where nothing is predicted."""
    found = useful_bytes.configuration(params)
    if found is None or found.kernel not in _SHARES:
        return None
    argument, share = _SHARES[found.kernel]
    try:
        return share(found.arguments[argument], dtypes.get(found.dtype).itemsize)
    except GpuKernelsError:
        return None
