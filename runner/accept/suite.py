"""The benchmarks that results may be of: asv's `benchmarks.json`."""

from __future__ import annotations

import math
from pathlib import Path

from asv.benchmarks import Benchmarks

from runner.accept.models import Benchmark
from runner.accept.refusal import convert, read, require

FILE = "benchmarks.json"

#: Configurations that a benchmark may have; this suite's largest has 420.
_MOST = 100_000


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
        count = math.prod(map(len, benchmark.params))
        require(count <= _MOST, f"{path}: {name!r}", f"has more than {_MOST} configurations")
    return found
