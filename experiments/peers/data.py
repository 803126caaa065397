"""The kept data: JSON lines, the first with the facts of the run, then one a method, configuration and process."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.instruments import machine
from experiments import facts as common
from experiments.peers.configurations import DTYPE, FLAG_SET, Configuration
from experiments.peers.methods import Method

#: Distributions whose versions matter to a method.
DISTRIBUTIONS = (
    "asv_runner",
    "cuda-bench",
    "cuda-bindings",
    "cupy-cuda13x",
    "numpy",
    "pycuda",
    "torch",
    "triton",
)


@dataclass(frozen=True)
class Reading:
    """One configuration in one process.

    Parameters
    ----------
    method : its name.
    process : the round that the process belongs to, from 0.
    kernel, side : the configuration.
    us : median of the samples, microseconds a launch.
    samples : how many.
    seconds : host time that the configuration took in the process.
    start : seconds from the start of the process to a context, imports included.
    cubin : SHA-256 of the machine code.
    defaults : measured for `seconds` alone, with the method's own default settings.
    """

    method: str
    process: int
    kernel: str
    side: int
    us: float
    samples: int
    seconds: float
    start: float
    cubin: str
    defaults: bool = False

    @property
    def configuration(self) -> Configuration:
        """The configuration."""
        return Configuration(self.kernel, self.side)


@dataclass(frozen=True)
class Failure:
    """A process that did not measure all it should have, and why."""

    method: str
    process: int
    error: str
    defaults: bool = False


@dataclass(frozen=True)
class Run:
    """All that a file holds."""

    facts: dict[str, Any]
    readings: list[Reading]
    failures: list[Failure]


def facts(gpu: machine.Gpu, ncu: str | None, methods: Mapping[str, Method]) -> dict[str, Any]:
    """The facts of a run that begins now.

    Parameters
    ----------
    gpu : what measures.
    ncu : Nsight Compute's version.
    methods : those that take part, by name.
    """
    return {
        **common.now(gpu),
        "versions": {
            "Python": platform.python_version(),
            "Nsight Compute": ncu,
            **{name: _version(name) for name in DISTRIBUTIONS},
        },
        "dtype": DTYPE,
        "flags": FLAG_SET,
        "settings": {name: method.settings for name, method in methods.items()},
        "state": machine.volatile(),
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def line(entry: dict[str, Any] | Reading | Failure) -> str:
    """An entry as it is written."""
    return json.dumps(entry if isinstance(entry, dict) else asdict(entry)) + "\n"


def read(path: Path) -> Run:
    """What a file holds.

    Raises
    ------
    FileNotFoundError, ValueError : there is no such file, or it is empty.
    """
    entries = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    if not entries:
        raise ValueError(f"{path} is empty; run: python -m experiments.peers")
    first, *rest = entries
    failures = [Failure(**entry) for entry in rest if "error" in entry]
    return Run(first, [Reading(**entry) for entry in rest if "error" not in entry], failures)
