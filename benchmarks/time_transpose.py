"""Transposes: seconds a launch, from DRAM and from the L2 cache."""

from __future__ import annotations

from typing import Any

from benchmarks import axes
from benchmarks.instruments.experiment import Work
from benchmarks.timed import _Timed, kernel_work


class _Transpose(_Timed):
    param_names = ["kernel", "rows x columns", "dtype", "flags"]

    def work(self, kernel: str, matrix: str, dtype: str, flag_set: str) -> Work:
        rows, columns = map(int, matrix.split("x"))
        return kernel_work(kernel, dtype, flag_set, rows=rows, columns=columns)


class Transpose(_Transpose):
    """Every launch finds its data in DRAM."""

    version = "1"
    params = [axes.TRANSPOSES, axes.MATRICES, axes.DTYPES, axes.FLAG_SETS]

    def time_launch(self, *_: Any) -> None:
        self.replay()

    time_launch.pretty_name = "Transpose, DRAM: time a launch"  # type: ignore[attr-defined]


class TransposeInL2(_Transpose):
    """Every launch finds its data in the L2 cache."""

    version = "1"
    in_l2 = True
    params = [axes.TRANSPOSES, axes.MATRICES_IN_L2, ["float32"], ["-Xptxas -O3"]]

    def time_launch(self, *_: Any) -> None:
        self.replay()

    time_launch.pretty_name = "Transpose, L2 cache: time a launch"  # type: ignore[attr-defined]
