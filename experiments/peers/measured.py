"""What a tool found of one configuration, and tools that take configurations one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from experiments.peers.configurations import Configuration


@dataclass(frozen=True)
class Measured:
    """One configuration in one process.

    Parameters
    ----------
    configuration : which.
    samples : seconds a launch.
    seconds : host time that it took in all: buffers, code, warm-up and samples.
    """

    configuration: Configuration
    samples: list[float]
    seconds: float


#: (configurations, folder of notes on what was verified, settings by name) -> a Measured each.
Measure = Callable[..., Iterator[Measured]]


def one_by_one(samples_of: Callable[..., Sequence[float]]) -> Measure:
    """Make a Measure of a function (configuration, folder, settings by name) -> samples in seconds."""

    @wraps(samples_of)
    def measure(configurations: Sequence[Configuration], verified: Path, **settings: Any) -> Iterator[Measured]:
        for configuration in configurations:
            begin = time.perf_counter()
            samples = samples_of(configuration, verified, **settings)
            yield Measured(configuration, list(samples), time.perf_counter() - begin)

    return measure
