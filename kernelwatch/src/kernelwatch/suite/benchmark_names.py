"""Names of benchmarks: they tell the kind of the numbers, and which benchmarks share one measurement."""

from enum import Enum
from functools import cache

#: Modules of the benchmarks of each kind: the first parts of their names. Benchmarks of other modules are timed.
COUNTED_MODULE, COMPILED_MODULE, CONTROL_MODULE = "track_counted", "track_compiled", "track_control"


class Kind(Enum):
    """Kind of a benchmark's numbers."""

    TIMED = "timed"
    #: Times divided by the copy's time.
    CONTROL = "control"
    COUNTED = "counted"
    COMPILED = "compiled"


_KIND_OF_MODULE = {COUNTED_MODULE: Kind.COUNTED, COMPILED_MODULE: Kind.COMPILED, CONTROL_MODULE: Kind.CONTROL}

#: Kinds in a review: times vary, counted and compiled numbers are exact.
TIMED = Kind.TIMED.value
EXACT = (Kind.COUNTED.value, Kind.COMPILED.value)
KINDS = (TIMED, *EXACT)


def find_kind(name: str) -> Kind:
    """Return the kind of a benchmark, or of a class of benchmarks, from a name such as "track_counted.Transpose"."""
    return _KIND_OF_MODULE.get(name.partition(".")[0], Kind.TIMED)


@cache
def classify_benchmark(name: str) -> str:
    """Return the kind of a benchmark's numbers in a review, one of KINDS; a control is a time."""
    kind = find_kind(name).value
    return kind if kind in EXACT else TIMED


def control_name(name: str) -> str:
    """Return the name of a timed benchmark's control, which has the times divided by the copy's."""
    return f"{CONTROL_MODULE}.{name.split('.')[1]}.track_copy_ratio"


def measurement_group(name: str) -> str:
    """Return the key that the benchmarks of one measurement share: a time and its control, or all numbers of a class.

    `name` is a benchmark, or the module and class as in records.
    """
    module, class_name = name.split(".")[:2]
    is_time = find_kind(name) in (Kind.TIMED, Kind.CONTROL)
    return f"{'time' if is_time else module}.{class_name}"
