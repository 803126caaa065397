"""Memory transactions of the kernels, counted by executing their PTX: exact, on any machine."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, ClassVar

from benchmarks import axes
from benchmarks.instruments import prebuild
from benchmarks.instruments.counted import Outcome, outcomes

#: Rows of 700 elements begin at any place of a sector, and tiles stick out at both edges.
_MATRIX = {"rows": 1000, "columns": 700}
_ELEMENTS = 1 << 16


#: Metric of `counted.metrics` -> its unit, and what a person calls it. To add a metric: one row.
METRICS = {
    "load_sectors": ("sectors/request", "sectors a load request"),
    "store_sectors": ("sectors/request", "sectors a store request"),
    "bank_conflicts": ("conflicts/request", "bank conflicts a shared memory request"),
    "instructions": ("instructions/thread", "PTX instructions executed a thread"),
}


def _metric(name: str, title: str) -> Callable[..., float]:
    """A benchmark that reports one metric of a case that `setup_cache` executed."""

    def track(self: _Counted, cache: dict[Any, Outcome], *params: Any) -> float:
        return cache[self.case(*params)].metrics[name]

    unit, what = METRICS[name]
    track.unit = unit  # type: ignore[attr-defined]
    track.pretty_name = f"{title}, counted: {what}"  # type: ignore[attr-defined]
    return track


class _Counted:
    """What one launch does to memory.

    A subclass gives its title, its metrics and its axes, and says which case a point on them is.
    """

    version = "1"
    timeout = 120.0
    title: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]] = ("load_sectors", "store_sectors", "instructions")
    params: ClassVar[list[list[Any]]]

    def __init_subclass__(cls) -> None:
        for name in cls.metrics:
            setattr(cls, f"track_{name}", _metric(name, cls.title))

    def case(self, *params: Any) -> tuple[Any, ...]:
        """Kernel, dtype, flag set, and the kernel's arguments as pairs."""
        raise NotImplementedError("a subclass says what is executed")

    def setup_cache(self) -> dict[Any, Outcome]:
        """Compile and execute every case of every subclass once, in parallel; asv shares the result among them."""
        groups = defaultdict(list)  # of cases that have PTX in common
        for one in _Counted.__subclasses__():
            for point in product(*one.params):
                case = one().case(*point)
                groups[one, case[1]].append(case)
        with ProcessPoolExecutor() as pool:
            return dict(ChainMap(*pool.map(outcomes, groups.values())))

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, cache: dict[Any, Outcome], *params: Any) -> None:
        """Skip what the commit lacks; fail what it gets wrong."""
        outcome = cache[self.case(*params)]
        if outcome.missing:
            raise NotImplementedError(f"this commit lacks it: {outcome.missing}")
        if outcome.failure:
            raise RuntimeError(outcome.failure)


class Transpose(_Counted):
    """Transposes of a 1000 x 700 matrix."""

    title = "Transpose"
    metrics = tuple(METRICS)
    params: ClassVar[list[list[Any]]] = [axes.TRANSPOSES, axes.DTYPES, axes.FLAG_SETS]
    param_names = ("kernel", "dtype", "flags")

    def case(self, *params: Any) -> tuple[Any, ...]:
        """The kernel is an axis of its own."""
        return (*params, *_MATRIX.items())


class OffsetCopy(_Counted):
    """Copies of 65536 elements that begin some elements after the start of an array."""

    title = "Offset copy"
    params: ClassVar[list[list[Any]]] = [axes.DTYPES, axes.OFFSETS, axes.FLAG_SETS]
    param_names = ("dtype", "offset", "flags")

    def case(self, *params: Any) -> tuple[Any, ...]:
        """The offset is an axis."""
        dtype, offset, flag_set = params
        return "offset_copy", dtype, flag_set, ("size", _ELEMENTS), ("offset", offset)


class StrideCopy(_Counted):
    """Copies of 65536 elements that lie some elements apart."""

    title = "Stride copy"
    params: ClassVar[list[list[Any]]] = [axes.DTYPES, axes.STRIDES, axes.FLAG_SETS]
    param_names = ("dtype", "stride", "flags")

    def case(self, *params: Any) -> tuple[Any, ...]:
        """The stride is an axis."""
        dtype, stride, flag_set = params
        return "stride_copy", dtype, flag_set, ("size", _ELEMENTS), ("stride", stride)
