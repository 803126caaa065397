"""What the readings of a run amount to: medians, bias, spread, seconds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import cached_property

from experiments.peers.configurations import Configuration, all_of
from experiments.peers.data import Reading, Run
from experiments.peers.methods import METHODS, TRUTH

#: Sides at which the seconds of methods are compared: with NVBench's defaults, the smallest would take 15 s each.
COSTED_SIDES = (1024, 4096)


def costed(kernels: Sequence[str], sides: Sequence[int]) -> tuple[list[str], list[int]]:
    """The kernel, and those of the sides, by which the seconds of methods are compared."""
    return list(kernels[-1:]), [side for side in sides if side in COSTED_SIDES] or list(sides)


class Summary:
    """The figures of a run, in microseconds a launch, seconds and shares; None where there is nothing to tell."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._medians: dict[tuple[str, Configuration], list[float]] = {}
        for reading in run.readings:
            if not reading.defaults:
                self._medians.setdefault((reading.method, reading.configuration), []).append(reading.us)

    @cached_property
    def configurations(self) -> list[Configuration]:
        """All that were measured, smallest sides first, kernels in the order of the readings."""
        found = dict.fromkeys(configuration for _, configuration in self._medians)
        return sorted(found, key=lambda configuration: configuration.side)

    @property
    def sides(self) -> list[int]:
        """All sides."""
        return list(dict.fromkeys(configuration.side for configuration in self.configurations))

    @property
    def costed(self) -> list[Configuration]:
        """Those by which seconds are compared."""
        kernels = dict.fromkeys(configuration.kernel for configuration in self.configurations)
        return all_of(*costed(list(kernels), self.sides))

    @property
    def methods(self) -> list[str]:
        """The methods that measured something, in the order of their table."""
        return [name for name in METHODS if any(name == method for method, _ in self._medians)]

    def processes(self, method: str) -> int:
        """The most fresh processes in which it measured a configuration."""
        return max(len(values) for (name, _), values in self._medians.items() if name == method)

    def median(self, method: str, configuration: Configuration) -> float | None:
        """The median over processes of each process's median."""
        values = self._medians.get((method, configuration))
        return statistics.median(values) if values else None

    def bias(self, method: str, configuration: Configuration) -> float | None:
        """The median less Nsight Compute's."""
        here, truth = self.median(method, configuration), self.median(TRUTH, configuration)
        return None if here is None or truth is None else here - truth

    def relative_bias(self, method: str, configuration: Configuration) -> float | None:
        """The bias as a share of Nsight Compute's median."""
        bias, truth = self.bias(method, configuration), self.median(TRUTH, configuration)
        return None if bias is None or not truth else bias / truth

    def spread(self, method: str, configuration: Configuration) -> float | None:
        """Largest less smallest process, as a share of the median; from two processes on."""
        values = self._medians.get((method, configuration), [])
        return (max(values) - min(values)) / statistics.median(values) if len(values) > 1 else None

    def deviation(self, method: str, configuration: Configuration) -> float | None:
        """The relative standard deviation between processes; from two processes on."""
        values = self._medians.get((method, configuration), [])
        return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else None

    def start(self, method: str) -> float:
        """Seconds, median, from the start of a process to a context."""
        return statistics.median(reading.start for reading in self.run.readings if reading.method == method)

    def measure(self, method: str) -> float | None:
        """Seconds that a configuration takes in a process, with the method's defaults: mean over those costed."""
        defaults = bool(self.run.facts["settings"].get(method))
        seconds: dict[Configuration, list[float]] = {}
        for reading in self._of(method, defaults):
            if reading.configuration in self.costed:
                seconds.setdefault(reading.configuration, []).append(reading.seconds)
        return statistics.mean(map(statistics.median, seconds.values())) if seconds else None

    def seconds(self, method: str) -> float | None:
        """Seconds of one more configuration as users of the method run it, in fresh processes where they do."""
        measure, processes = self.measure(method), METHODS[method].processes_a_configuration
        return processes * (self.start(method) + measure) if processes and measure is not None else measure

    def _of(self, method: str, defaults: bool) -> list[Reading]:
        return [one for one in self.run.readings if one.method == method and one.defaults == defaults]
