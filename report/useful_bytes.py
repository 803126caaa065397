"""How many bytes each timed benchmark must move, from its parameters: what GB/s are derived from, for show."""

from __future__ import annotations

from collections.abc import Callable

from gpu_kernels import KERNELS, dtypes
from gpu_kernels.errors import GpuKernelsError

Params = dict[str, str]


def _matrix(params: Params) -> dict[str, int]:
    rows, columns = map(int, params["rows x columns"].split("x"))
    return {"rows": rows, "columns": columns}


def _transpose(params: Params) -> int:
    return KERNELS[params["kernel"]].useful_bytes(params["dtype"], **_matrix(params))


def _offset_copy(params: Params) -> int:
    place = {"size": int(params["size"]), "offset": int(params["offset"])}
    return KERNELS["offset_copy"].useful_bytes(params["dtype"], **place)


def _stride_copy(params: Params) -> int:
    place = {"size": int(params["size"]), "stride": int(params["stride"])}
    return KERNELS["stride_copy"].useful_bytes(params["dtype"], **place)


def _matrix_sized_copy(params: Params) -> int:
    kernel, argument = params["copy"].split(" ")
    name, value = argument.split("=")
    return KERNELS[kernel].useful_bytes(params["dtype"], size=12800 * 12800, **{name: int(value)})


def _device_copy(params: Params) -> int:
    """No kernel of the catalog, but it too reads and writes every element once."""
    matrix = _matrix(params)
    return 2 * matrix["rows"] * matrix["columns"] * dtypes.get(params["dtype"]).itemsize


#: To derive GB/s for another timed benchmark: one row.
BENCHMARKS: dict[str, Callable[[Params], int]] = {
    "time_transpose.Transpose.time_launch": _transpose,
    "time_transpose.TransposeInL2.time_launch": _transpose,
    "time_copy.OffsetCopy.time_launch": _offset_copy,
    "time_copy.StrideCopy.time_launch": _stride_copy,
    "time_copy.MatrixSizedCopy.time_launch": _matrix_sized_copy,
    "time_copy.DeviceCopy.time_launch": _device_copy,
}


def of(benchmark: str, params: Params) -> int | None:
    """Bytes a launch must move; None for a benchmark or a configuration that is not known here.

    Results may be older or newer than the catalog, so what it does not know is no error.
    """
    try:
        return BENCHMARKS[benchmark](params)
    except (KeyError, ValueError, GpuKernelsError):
        return None
