"""Names of benchmarks: they tell the kind of the numbers, and which benchmarks share one measurement."""

from enum import Enum
from functools import cache

#: Modules of the benchmarks of each kind: the first parts of their names. Benchmarks of other modules are timed.
COUNTED_MODULE, COMPILED_MODULE, COPY_RATIO_MODULE = "track_counted", "track_compiled", "track_control"


class Kind(Enum):
    """Kind of a benchmark's numbers."""

    TIMED = "timed"
    #: Times divided by the copy's time.
    COPY_RATIO = "control"
    COUNTED = "counted"
    COMPILED = "compiled"


_KIND_OF_MODULE = {COUNTED_MODULE: Kind.COUNTED, COMPILED_MODULE: Kind.COMPILED, COPY_RATIO_MODULE: Kind.COPY_RATIO}

#: Kinds in a review: times vary, counted and compiled numbers are exact.
TIMED = Kind.TIMED.value
EXACT = (Kind.COUNTED.value, Kind.COMPILED.value)
KINDS = (TIMED, *EXACT)


def find_kind(name: str) -> Kind:
    """Return the kind of a benchmark, or of a class of benchmarks, from a name such as "track_counted.Transpose"."""
    return _KIND_OF_MODULE.get(name.partition(".")[0], Kind.TIMED)


@cache
def classify_benchmark(name: str) -> str:
    """Return the kind of a benchmark's numbers in a review, one of KINDS; a copy ratio is a time."""
    kind = find_kind(name).value
    return kind if kind in EXACT else TIMED


def copy_ratio_name(name: str) -> str:
    """Return the name of the benchmark that divides the times of a timed benchmark by the copy's."""
    return f"{COPY_RATIO_MODULE}.{name.split('.')[1]}.track_copy_ratio"


def measurement_group(name: str) -> str:
    """Return the key of the benchmarks that share a measurement: a time and its copy ratio, or all numbers of a class.

    `name` is a benchmark, or the module and class as in records.
    """
    module, class_name = name.split(".")[:2]
    is_time = find_kind(name) in (Kind.TIMED, Kind.COPY_RATIO)
    return f"{'time' if is_time else module}.{class_name}"
