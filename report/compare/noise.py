"""By how much a time may change on a machine before it means anything."""

from __future__ import annotations

import json
import math
from pathlib import Path

#: Beside the results. Not `.json`: asv takes every such file for results, and warns about it in each command.
FILE = "noise.jsonl"

#: Seconds from which on, and relative change up to which, a time is SAME, longest first: two runs of an H200 agreed
#: to 0.13 % from 20 µs on and to 5 % below (docs/measurements.md).
DEFAULTS = ((20e-6, 0.01), (0.0, 0.05))


class Noise:
    """The thresholds of one machine.

    Its file holds a line a configuration: `{"configuration": "benchmark(parameter, ...)", "threshold": 0.004}`. Of two
    lines for one configuration the later counts; what it does not name has the default.

    Parameters
    ----------
    folder : the machine's folder under `results/`.

    Raises
    ------
    ValueError : a line is not as above.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._known: dict[str, float] = {}
        if self.path.exists():
            for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), start=1):
                if line.strip():
                    self._read(number, line)

    def _read(self, number: int, line: str) -> None:
        try:
            entry = json.loads(line)
            name, threshold = entry["configuration"], entry["threshold"]
            if not isinstance(name, str) or isinstance(threshold, bool) or not math.isfinite(threshold):
                raise ValueError
            if threshold < 0:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{self.path}, line {number}: not of the form "
                f'{{"configuration": "name(parameters)", "threshold": 0.01}}: {line[:200]!r}'
            ) from None
        self._known[name] = float(threshold)

    def threshold(self, configuration: str, value: float) -> float:
        """Relative change up to which a configuration is SAME; `value` is base's, in seconds."""
        default = next((threshold for least, threshold in DEFAULTS if value >= least), DEFAULTS[-1][1])
        return self._known.get(configuration, default)

    def source(self) -> str:
        """Where the thresholds come from, for a reader."""
        default = ", ".join(
            f"{threshold * 100:g} % " + (f"from {least * 1e6:g} µs on" if least else "below")
            for least, threshold in DEFAULTS
        )
        known = f"{FILE} for {len(self._known)} configurations, else " if self._known else ""
        return f"{known}{default}"
