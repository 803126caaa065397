"""Transposes: seconds a launch, back to back from DRAM and from the L2 cache, and isolated."""

from __future__ import annotations

from typing import Any

from benchmarks import axes, values
from benchmarks.instruments.experiment import Work
from benchmarks.instruments.isolated import Isolated
from benchmarks.instruments.replay import Cycle
from benchmarks.timed import _Timed, kernel_work


class _Transpose(_Timed):
    param_names = ["kernel", "rows x columns", "dtype", "flags"]

    def work(self, kernel: str, matrix: str, dtype: str, flag_set: str) -> Work:
        return kernel_work(kernel, dtype, flag_set, **values.matrix(matrix))


class Transpose(_Transpose):
    """Every launch finds its data in DRAM."""

    version = "2"
    params = [axes.TRANSPOSES, axes.MATRICES, axes.DTYPES, axes.FLAG_SETS]

    def time_back_to_back(self, *_: Any) -> None:
        self.replay()

    time_back_to_back.pretty_name = "Transpose, DRAM: time a launch, back to back"  # type: ignore[attr-defined]


class TransposeInL2(_Transpose):
    """Every launch finds its data in the L2 cache."""

    version = "2"
    in_l2 = True
    params = [axes.TRANSPOSES, axes.MATRICES_IN_L2, ["float32"], ["-Xptxas -O3"]]

    def time_back_to_back(self, *_: Any) -> None:
        self.replay()

    time_back_to_back.pretty_name = "Transpose, L2 cache: time a launch, back to back"  # type: ignore[attr-defined]


class IsolatedTranspose(_Transpose):
    """Every launch finds its data in DRAM, an empty L2 cache, and no other launch beside it."""

    version = "2"
    params = [axes.TRANSPOSES, axes.SHORT_MATRICES, axes.DTYPES, ["-Xptxas -O3"]]

    @staticmethod
    def instrument(cycle: Cycle) -> Isolated:
        return Isolated(cycle)

    def time_isolated(self, *_: Any) -> None:
        self.replay()

    time_isolated.pretty_name = "Transpose, DRAM: time of one launch, isolated"  # type: ignore[attr-defined]
