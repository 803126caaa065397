"""Copies, misaligned and strided, and the plain copy that is everyone's ceiling: seconds a launch, back to back."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import axes, values
from benchmarks.instruments import tools
from benchmarks.instruments.experiment import Work
from benchmarks.timed import _Timed, kernel_work


class OffsetCopy(_Timed):
    """Every element lies `offset` elements further on than alignment would have it."""

    version = "2"
    params = [axes.OFFSETS, axes.OFFSET_COPY_SIZES, axes.DTYPES, axes.COPY_FLAG_SETS]
    param_names = ["offset", "size", "dtype", "flags"]

    def work(self, offset: int, size: int, dtype: str, flag_set: str) -> Work:
        return kernel_work("offset_copy", dtype, flag_set, size=size, offset=offset)

    def time_back_to_back(self, *_: Any) -> None:
        self.replay()

    time_back_to_back.pretty_name = "Offset copy, DRAM: time a launch, back to back"  # type: ignore[attr-defined]


class StrideCopy(_Timed):
    """The elements lie `stride` elements apart."""

    version = "2"
    params = [axes.STRIDES, axes.STRIDE_COPY_SIZES, axes.DTYPES, axes.COPY_FLAG_SETS]
    param_names = ["stride", "size", "dtype", "flags"]

    def work(self, stride: int, size: int, dtype: str, flag_set: str) -> Work:
        return kernel_work("stride_copy", dtype, flag_set, size=size, stride=stride)

    def time_back_to_back(self, *_: Any) -> None:
        self.replay()

    time_back_to_back.pretty_name = "Stride copy, DRAM: time a launch, back to back"  # type: ignore[attr-defined]


class MatrixSizedCopy(_Timed):
    """The copies over as many elements as the largest matrix has, at all optimisation levels."""

    version = "2"
    params = [axes.MATRIX_SIZED_COPIES, ["float32"], axes.FLAG_SETS]
    param_names = ["copy", "dtype", "flags"]

    def work(self, copy: str, dtype: str, flag_set: str) -> Work:
        kernel, arguments = values.matrix_sized_copy(copy)
        return kernel_work(kernel, dtype, flag_set, **arguments)

    def time_back_to_back(self, *_: Any) -> None:
        self.replay()

    time_back_to_back.pretty_name = "Copies of 12800 x 12800 elements, DRAM: time a launch, back to back"  # type: ignore[attr-defined]


class DeviceCopy(_Timed):
    """A copy by the widest accesses, perfectly coalesced: the ceiling for a kernel that moves as many bytes.

    Not the driver's: as a node of a graph, its copies of some sizes from 512 MiB on reach two thirds of the bandwidth
    that they have outside of it (docs/measurements.md).
    """

    version = "3"
    params = [axes.MATRICES, axes.DTYPES]
    param_names = ["rows x columns", "dtype"]

    def work(self, matrix: str, dtype: str) -> Work:
        length = values.elements(matrix) * np.dtype(dtype).itemsize
        copy = tools.copier()
        title = f"device copy, {matrix}, {dtype}"
        return Work(
            name=title,
            identity=title,
            dtype="int8",
            output_shape=(length,),
            input_shape=(length,),
            useful_bytes=2 * length,
            launch=lambda output, input, stream: copy(output, input, length, stream),
            reference=lambda before, source: source,
        )

    def time_back_to_back(self, *_: Any) -> None:
        self.replay()

    time_back_to_back.pretty_name = "Device copy, DRAM: time a launch, back to back"  # type: ignore[attr-defined]
