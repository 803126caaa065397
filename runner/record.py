"""The facts of one run of asv: one JSON line in `results/<machine>/runs.jsonl`, and which machine code was measured.

asv reads every `.json` under `results/`, and facts there would split its series. It leaves `.jsonl` alone.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import jsonl
from benchmarks.instruments import machine, messages
from gpu_kernels import nvcc
from gpu_kernels.errors import GpuKernelsError

FILE = "runs.jsonl"

#: A line a run, commit and architecture: the SHA-256 of the cubins by configuration. Later lines add to earlier ones.
CUBINS_FILE = "cubins.jsonl"

#: What asv_runner prints when a benchmark's setup raises NotImplementedError.
_SKIP = re.compile(r"asv: skipped: NotImplementedError\((?P<quote>['\"])(?P<reason>.*)(?P=quote)\)")


def skip_reasons(output: str) -> Counter[str]:
    """Why configurations were skipped, and how many each, from the output of a benchmark's processes."""
    return Counter(match["reason"] for match in _SKIP.finditer(output))


class RunRecord:
    """Collects the facts of a run, from its making to `append_to`.

    Parameters
    ----------
    facts : dict of str to object, optional
        More facts of the machine, by name; they may come in later.
    """

    def __init__(self, facts: dict[str, Any] | None = None) -> None:
        self._started = _now()
        self._before = machine.volatile()
        self._facts = {} if facts is None else facts  # an empty one fills up later
        #: (commit, architecture) -> a launch's text without arguments -> SHA-256.
        self._cubins: dict[tuple[str, str], dict[str, str]] = {}
        #: (commit, benchmark, parameters) -> why the GPU held itself back, in the order of asking.
        self._held_back: dict[tuple[str, str, str], list[str]] = {}
        #: Seconds of the measuring process, by what they were spent on.
        self._spent: Counter[str] = Counter()
        #: (commit, benchmark) -> reasons; a later round replaces an earlier one.
        self._skipped: dict[tuple[str, str], Counter[str]] = {}

    def note(self, commit: str, benchmark: str, output: str) -> None:
        """Record what a benchmark's processes printed at a commit."""
        output = output or ""
        self._skipped[commit, benchmark] = skip_reasons(output)
        for said in messages.read(output, "machine code"):
            self._cubins.setdefault((commit, said["arch"]), {})[said["launch"]] = said["sha256"]
        for said in messages.read(output, "spent"):
            self._spent.update(said["seconds"])
        for said in messages.read(output, "held back"):
            reasons = self._held_back.setdefault((commit, benchmark, ", ".join(said["params"])), [])
            if said["reason"] not in reasons:
                reasons.append(said["reason"])

    def line(self) -> dict[str, Any]:
        """The record as it is written."""
        device = machine.gpu()
        return {
            "started": self._started,
            "ended": _now(),
            "commits": sorted({commit for commit, _ in self._skipped}),
            "gpu": device.name if device else None,
            "arch": device.arch if device else None,
            "peak_bytes_per_second": device.peak_bytes_per_second if device else None,
            "nvcc": _nvcc(),
            "asv": version("asv"),
            "asv_runner": version("asv_runner"),
            "host": machine.host(),
            "before": self._before | self._facts,
            "after": machine.volatile(),
            "spent": {what: round(seconds, 3) for what, seconds in self._spent.items()},
            "held_back": [
                {"commit": commit, "configuration": f"{benchmark}({params})", "reasons": reasons}
                for (commit, benchmark, params), reasons in sorted(self._held_back.items())
            ],
            "skipped": [
                {"commit": commit, "benchmark": benchmark, "reason": reason, "configurations": count}
                for (commit, benchmark), reasons in sorted(self._skipped.items())
                for reason, count in sorted(reasons.items())
            ],
        }

    def append_to(self, results_dir: str, name: str) -> None:
        """Append the record to the files of the machine `name`; a run that measured nothing leaves none."""
        if not self._skipped:
            return
        folder = Path(results_dir, name)
        folder.mkdir(parents=True, exist_ok=True)
        cubins = [
            {"commit": commit, "arch": arch, "cubins": dict(sorted(found.items()))}
            for (commit, arch), found in sorted(self._cubins.items())
        ]
        jsonl.append(folder / FILE, self.line())
        if cubins:
            jsonl.append(folder / CUBINS_FILE, *cubins)


def read(results_dir: str | Path, name: str) -> list[dict[str, Any]]:
    """The records of the machine `name`, oldest first; none if it has no file."""
    return jsonl.read(Path(results_dir, name, FILE))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _nvcc() -> str | None:
    """The compiler's own version line."""
    try:
        text = nvcc.version(nvcc.find_nvcc())
    except GpuKernelsError:
        return None
    return next((line for line in text.splitlines() if "release" in line), text.strip())
