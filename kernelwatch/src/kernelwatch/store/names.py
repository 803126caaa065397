"""What benchmarks are called: which of them stored numbers belong together, by their names alone."""

from __future__ import annotations


def control(name: str) -> str:
    """Return the name of the benchmark that holds a timed one's times in copies of the same bytes."""
    return f"track_control.{name.split('.')[1]}.track_copy_ratio"


def measurement(name: str) -> str:
    """Return what benchmarks have in common whose numbers one measurement gives: a time and its control, or counts.

    Parameters
    ----------
    name : str
        A benchmark, or what records name: its module and class.
    """
    module, group = name.split(".")[:2]
    return f"time.{group}" if module == "track_control" or module.startswith("time") else f"{module}.{group}"
