"""The benchmarks that results may be of: asv's `benchmarks.json`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks

from runner.accept import strict
from runner.accept.strict import is_text, require

FILE = "benchmarks.json"

#: Configurations that a benchmark may have; this suite's largest has 420.
_MOST = 100_000
#: Characters of a benchmark's source, which the site shows.
_LONGEST_CODE = 50_000

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


@dataclass(frozen=True)
class Benchmark:
    """What a result of a benchmark must agree with: its version and the values of its axes."""

    version: str
    params: list[list[str]]

    @property
    def configurations(self) -> int:
        """How many there are: one without any axis."""
        return math.prod(map(len, self.params))


def load(path: Path) -> dict[str, Benchmark]:
    """The benchmarks by name.

    Raises
    ------
    RefusedError
        The file is not as asv writes it.
    """
    require(path.is_file(), path, "is missing")
    document = strict.read(path)
    require(isinstance(document, dict), path, "is no mapping")
    version = document.pop("version", None)
    require(version == Benchmarks.api_version, path, f"has version {version!r}, not {Benchmarks.api_version}")
    return {name: _benchmark(name, described, f"{path}: {name[:80]!r}") for name, described in document.items()}


def _benchmark(name: str, described: Any, where: str) -> Benchmark:
    require(_NAME.fullmatch(name), where, "is no benchmark's name")
    require(isinstance(described, dict) and described.get("name") == name, where, "is called otherwise inside")
    code = described.pop("code", "")
    require(isinstance(code, str) and len(code) <= _LONGEST_CODE, where, "has no source, or too long a one")
    strict.check_facts(described, where)
    params, names = described.get("params"), described.get("param_names")
    require(
        isinstance(params, list)
        and isinstance(names, list)
        and len(params) == len(names)
        and all(isinstance(axis, list) and all(map(is_text, axis)) for axis in params)
        and all(map(is_text, names)),
        where,
        "has axes that are no lists of texts",
    )
    require(is_text(described.get("version"), 100), where, "has no version")
    require(described.get("type") in ("time", "track"), where, f"is of type {described.get('type')!r}")
    benchmark = Benchmark(described["version"], described["params"])
    require(benchmark.configurations <= _MOST, where, f"has more than {_MOST} configurations")
    return benchmark
