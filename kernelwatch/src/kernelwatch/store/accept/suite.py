"""The benchmarks that results may be of: asv's `benchmarks.json`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from asv.benchmarks import Benchmarks

from kernelwatch.store.accept.models import Benchmark
from kernelwatch.store.accept.refusal import convert, read, require

FILE = "benchmarks.json"

#: Configurations that all benchmarks may have together, and so the results of one commit. This suite has 5,513.
MOST = 100_000


def require_few(axes: Iterable[Sequence[Sequence[str]]], where: object) -> int:
    """Return how many configurations some benchmarks have together; refuse more than MOST. Nothing is expanded."""
    count = sum(math.prod(map(len, each)) for each in axes)
    require(count <= MOST, where, f"has {count} configurations, more than {MOST}")
    return count


def load(path: Path) -> dict[str, Benchmark]:
    """The benchmarks by name.

    Raises
    ------
    RefusedError
        The file is not as asv writes it.
    """
    document = convert(read(path), dict, path)
    version = document.pop("version", None)
    require(version == Benchmarks.api_version, path, f"has version {version!r}, not {Benchmarks.api_version}")
    found = {name: convert(each, Benchmark, f"{path}: {name[:80]!r}") for name, each in document.items()}
    for name, benchmark in found.items():
        require(benchmark.name == name, f"{path}: {name!r}", "is called otherwise inside")
    require_few((benchmark.params for benchmark in found.values()), path)
    return found


def require_same_axes(new: Mapping[str, Benchmark], stored: Mapping[str, Benchmark], where: object) -> None:
    """Refuse a benchmark whose axes are others than the stored one's of its version: no stored value could be found."""
    for name, benchmark in new.items():
        known = stored.get(name, benchmark)
        require(
            known.version != benchmark.version or known.param_names == benchmark.param_names,
            f"{where}: {name!r}",
            f"has the axes {benchmark.param_names}; stored, in the same version, are {known.param_names}: "
            "give it another version, or the new axis to a benchmark of another name",
        )
