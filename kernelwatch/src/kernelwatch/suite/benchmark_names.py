"""Names of benchmarks: the kind of number that one holds, and the benchmarks that one measurement fills."""

from __future__ import annotations

from enum import Enum

#: Modules in benchmarks' names, in whatever file a class stands. All others hold times.
COUNTED_MODULE, COMPILED_MODULE, CONTROL_MODULE = "track_counted", "track_compiled", "track_control"


class Kind(Enum):
    """Kind of a benchmark's numbers."""

    TIMED = "timed"
    #: Times, as multiples of a copy's time.
    CONTROL = "control"
    COUNTED = "counted"
    COMPILED = "compiled"


_KINDS = {COUNTED_MODULE: Kind.COUNTED, COMPILED_MODULE: Kind.COMPILED, CONTROL_MODULE: Kind.CONTROL}

#: Names of the kinds that a review shows: times vary, all others are exact.
TIMED = Kind.TIMED.value
EXACT = (Kind.COUNTED.value, Kind.COMPILED.value)
KINDS = (TIMED, *EXACT)


def find_kind(name: str) -> Kind:
    """Return the kind of a benchmark, or of a class of benchmarks: "track_counted.Transpose"."""
    return _KINDS.get(name.partition(".")[0], Kind.TIMED)


def classify_benchmark(name: str) -> str:
    """Return one of KINDS; the times of copies beside a kernel's are times, too."""
    kind = find_kind(name).value
    return kind if kind in EXACT else TIMED


def control_name(name: str) -> str:
    """Return the name of the benchmark that holds a timed one's times in copies of the same bytes."""
    return f"{CONTROL_MODULE}.{name.split('.')[1]}.track_copy_ratio"


def measurement_group(name: str) -> str:
    """Return the key that all benchmarks of one measurement share: a time and its control, or counts.

    `name` is a benchmark, or the module and class that records name.
    """
    group = name.split(".")[1]
    kind = find_kind(name)
    return f"time.{group}" if kind in (Kind.TIMED, Kind.CONTROL) else f"{name.split('.', maxsplit=1)[0]}.{group}"
