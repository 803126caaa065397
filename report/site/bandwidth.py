"""What the page Bandwidth is made from: seconds as stored, and what turns them into rates."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from gpu_kernels import KERNELS, dtypes
from report import picture
from report.results import History

#: Benchmark -> (parameters -> (useful bytes, share of the aligned, unit-stride rate that 32-byte sectors leave)).
_Facts = Callable[[dict[str, str]], tuple[int, float | None]]


def _offset_copy(params: dict[str, str]) -> tuple[int, float]:
    size, offset, dtype = int(params["size"]), int(params["offset"]), params["dtype"]
    useful = KERNELS["offset_copy"].useful_bytes(dtype, size=size, offset=offset)
    return useful, picture.predicted_by_offset(offset, dtypes.get(dtype).itemsize)


def _stride_copy(params: dict[str, str]) -> tuple[int, float]:
    size, stride, dtype = int(params["size"]), int(params["stride"]), params["dtype"]
    useful = KERNELS["stride_copy"].useful_bytes(dtype, size=size, stride=stride)
    return useful, picture.predicted_by_sectors(stride, dtypes.get(dtype).itemsize)


def _transpose(params: dict[str, str]) -> tuple[int, None]:
    rows, columns = map(int, params["rows x columns"].split("x"))
    return KERNELS[params["kernel"]].useful_bytes(params["dtype"], rows=rows, columns=columns), None


def _device_copy(params: dict[str, str]) -> tuple[int, None]:
    rows, columns = map(int, params["rows x columns"].split("x"))
    return 2 * rows * columns * dtypes.get(params["dtype"]).itemsize, None


#: To show another timed benchmark: one row here, and a chart in static/bandwidth.js.
BENCHMARKS: dict[str, _Facts] = {
    "time_copy.OffsetCopy.time_back_to_back": _offset_copy,
    "time_copy.StrideCopy.time_back_to_back": _stride_copy,
    "time_copy.DeviceCopy.time_back_to_back": _device_copy,
    "time_transpose.Transpose.time_back_to_back": _transpose,
}


def facts(history: History, benchmark: str) -> dict[str, Any]:
    """Useful bytes and predicted share of every configuration of a benchmark, in the order of its axes."""
    axes = history.axes(benchmark)
    combinations = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    found = [BENCHMARKS[benchmark](params) for params in combinations]
    return {"useful_bytes": [useful for useful, _ in found], "predicted_share": [share for _, share in found]}
