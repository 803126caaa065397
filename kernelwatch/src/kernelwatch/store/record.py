"""The facts of one run of asv: one JSON line in `results/<machine>/runs.jsonl`, and which machine code was measured.

asv reads every `.json` under `results/`, and facts there would split its series. It leaves `.jsonl` alone.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelwatch.asv import steady
from kernelwatch.command import one_line
from kernelwatch.counting import source_lines
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import machine, messages
from kernelwatch.store import folders, jsonl
from kernelwatch.store.names import measurement
from kernelwatch.toolchain import nvcc
from kernelwatch.toolchain import releases as compilers

if TYPE_CHECKING:
    from kernelwatch.asv.plans.plan import Configuration, Plan

FILE = "runs.jsonl"

#: A line a run, commit and architecture: the SHA-256 of the cubins by configuration, and of their machine code alone.
#: Later lines of the same nvcc add to earlier ones. A line that names none is of the compiler of asv's plain results.
CUBINS_FILE = "cubins.jsonl"

#: A line a run and commit: which configurations were measured, by fingerprint, and which have whose numbers.
FINGERPRINTS_FILE = "fingerprints.jsonl"

#: A line for each machine code that some run looked at: its instructions by class.
INSTRUCTIONS_FILE = "instructions.jsonl"

#: Samples that each process took of a time, where no record says: in all runs from 2026-11-21 16:00 to 2026-11-23.
SAMPLES_ONCE = 10

#: What asv_runner prints when a benchmark's setup raises NotImplementedError.
_SKIP = re.compile(r"asv: skipped: NotImplementedError\((?P<quote>['\"])(?P<reason>.*)(?P=quote)\)")


#: What Python prints of an exception behind its calls, and what asv says of a benchmark that has none.
_FAILURE = re.compile(r"^(?:Traceback .*\n(?:\s.*\n)+|asv: (?=benchmark timed out))(?P<reason>\S.*)", re.MULTILINE)

#: Begins what asv prints of each configuration.
_EACH = re.compile(r"^For parameters: ", re.MULTILINE)


def skip_reasons(output: str) -> Counter[str]:
    """Why configurations were skipped, and how many each, from the output of a benchmark's processes."""
    return Counter(match["reason"] for match in _SKIP.finditer(output))


def failures(output: str) -> Counter[str]:
    """Why configurations failed, each by its last error, and how many, from the output of a benchmark's processes."""
    found = (list(_FAILURE.finditer(each)) for each in _EACH.split(output))
    return Counter(one_line(each[-1]["reason"]).encode("ascii", "replace").decode() for each in found if each)


class RunRecord:
    """Collects the facts of a run, from its making to `append_to`.

    Parameters
    ----------
    facts : dict of str to object, optional
        More facts of the machine, by name; they may come in later.

    Attributes
    ----------
    run : str
        The run's identity, which no other run has.
    started : str
        When it began.
    """

    def __init__(self, facts: dict[str, Any] | None = None) -> None:
        self.run = uuid.uuid4().hex
        self.started = _now()
        self._before = machine.volatile()
        self._nvcc = compilers.version(_nvcc())
        self._facts = {} if facts is None else facts  # an empty one fills up later
        #: (commit, architecture) -> a launch's text without arguments -> SHA-256.
        self._cubins: dict[tuple[str, str], dict[str, str]] = {}
        #: The same of the machine code alone.
        self._codes: dict[tuple[str, str], dict[str, str]] = {}
        #: SHA-256 of machine code -> its instructions by class.
        self._instructions: dict[str, dict[str, int]] = {}
        #: (commit, benchmark, parameters) -> why the GPU held itself back, in the order of asking.
        self._held_back: dict[tuple[str, str, str], list[str]] = {}
        #: Seconds of the measuring process, by what they were spent on.
        self._spent: Counter[str] = Counter()
        #: (commit, benchmark) -> reasons; a later round replaces an earlier one.
        self._skipped: dict[tuple[str, str], Counter[str]] = {}
        self._failed: dict[tuple[str, str], Counter[str]] = {}
        #: commit -> class -> parameters -> fingerprint of what was measured.
        self._measured: dict[str, dict[str, dict[str, str]]] = {}
        #: commit -> class -> parameters -> the commit whose numbers it has.
        self._reused: dict[str, dict[str, dict[str, str]]] = {}
        #: What could be reused and was measured all the same, by commit.
        self._checks: list[dict[str, Any]] = []
        #: Benchmark -> the configurations that the run selected; none stands for all.
        self._selected: dict[str, list[str]] = {}
        #: commit -> benchmark -> when asv began with it, in milliseconds, as asv's results have it.
        self._began: dict[str, dict[str, int]] = {}
        #: (commit, benchmark) -> parameters -> samples that each process took of a time, one process after the other.
        self._samples: dict[tuple[str, str], dict[str, list[int]]] = {}

    def note(self, commit: str, benchmark: str, output: str, selected: Sequence[str] = ()) -> None:
        """Record what a benchmark's processes printed at a commit, and its configurations if not all were selected."""
        output = output or ""
        self._selected[benchmark] = list(selected)
        self._skipped[commit, benchmark] = skip_reasons(output)
        self._failed[commit, benchmark] = failures(output)
        for said in messages.read(output, "machine code"):
            self._cubins.setdefault((commit, said["arch"]), {})[said["launch"]] = said["sha256"]
        for said in messages.read(output, "spent"):
            self._spent.update(said["seconds"])
        for said in messages.read(output, "held back"):
            reasons = self._held_back.setdefault((commit, benchmark, ", ".join(said["params"])), [])
            if said["reason"] not in reasons:
                reasons.append(said["reason"])

    def note_stored(self, commit: str, benchmark: str, began: int, samples: Mapping[str, int]) -> None:
        """Record what a benchmark's stored numbers are recognised and read by: their beginning, samples a process."""
        self._began.setdefault(commit, {})[benchmark] = began
        for params, count in samples.items():
            self._samples.setdefault((commit, benchmark), {}).setdefault(params, []).append(count)

    def note_configuration(self, commit: str, name: str, one: Configuration) -> None:
        """Record whether a configuration of a class is measured or reused at a commit, and its machine code."""
        if one.machine_code:
            sha256, launch, arch, *code = one.machine_code
            self._cubins.setdefault((commit, arch), {})[launch] = sha256
            self._codes.setdefault((commit, arch), {}).update(dict.fromkeys([launch], *code) if code else {})
        kept, what = (self._reused, one.reused) if one.reused else (self._measured, one.fingerprint)
        if what:
            kept.setdefault(commit, {}).setdefault(name, {})[one.params] = what

    def note_plan(self, commit: str, plan: Plan) -> None:
        """Record what a plan measured to see whether stored numbers hold, and what it found in machine code."""
        self._instructions |= plan.instructions
        if plan.checked:
            checked = [msgspec.structs.asdict(each) for each in plan.checked]
            self._checks.append({"commit": commit, "seed": plan.seed, "checked": checked})

    def fingerprint_lines(self) -> list[dict[str, Any]]:
        """Return a line a commit, of what was measured so far; none of a configuration that the GPU held back."""
        held = {(commit, f"{benchmark.rpartition('.')[0]}({params})") for commit, benchmark, params in self._held_back}
        return [
            {
                "run": self.run,
                "commit": commit,
                "started": self.started,
                "ended": _now(),
                "nvcc": self._nvcc,
                "fingerprints": {
                    name: {params: found for params, found in ones.items() if (commit, f"{name}({params})") not in held}
                    for name, ones in sorted(self._measured.get(commit, {}).items())
                },
                "reused": {name: by_commit(ones) for name, ones in sorted(self._reused.get(commit, {}).items())},
            }
            for commit in sorted({*self._measured, *self._reused})
        ]

    def identity(self) -> dict[str, Any]:
        """Return the part of the record by which `kernelwatch.store.identity` knows the numbers that are the run's."""
        found = {"run": self.run, "began": self._began, "commits": sorted({commit for commit, _ in self._skipped})}
        found["processes"] = self._processes()
        # Of a run of all configurations nothing is said: lines stay short, and as they always were.
        return found | ({"selected": dict(sorted(self._selected.items()))} if any(self._selected.values()) else {})

    def line(self) -> dict[str, Any]:
        """The record as it is written."""
        device = machine.gpu()
        found = self.identity() | {
            "started": self.started,
            "ended": _now(),
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
            "checks": self._checks,
            "held_back": [
                {"commit": commit, "configuration": f"{benchmark}({params})", "reasons": reasons}
                for (commit, benchmark, params), reasons in sorted(self._held_back.items())
            ],
            "skipped": _listed(self._skipped),
        }
        # Of a run without failures nothing is said.
        return found | ({"failed": failed} if (failed := _listed(self._failed)) else {})

    def _processes(self) -> dict[str, dict[str, dict[str, list[str]]]]:
        """Commit -> benchmark -> samples of each process, as "5 5" -> configurations; none stands for all others."""
        found: dict[str, dict[str, dict[str, list[str]]]] = {}
        for (commit, benchmark), taken in sorted(self._samples.items()):
            counts = by_commit({params: " ".join(map(str, each)) for params, each in taken.items()})
            most = max(counts, key=lambda each: len(counts[each]))
            found.setdefault(commit, {})[benchmark] = counts | {most: []}
        return found

    def append_to(self, results_dir: str, name: str) -> None:
        """Append the record to the files of the machine `name`; a run that measured nothing leaves none."""
        if not self._skipped:
            return
        folder = Path(results_dir, name)
        folder.mkdir(parents=True, exist_ok=True)
        jsonl.append(folder / FILE, self.line())
        lines = {
            CUBINS_FILE: self._cubin_lines(),
            INSTRUCTIONS_FILE: self._instruction_lines(results_dir, name),
            FINGERPRINTS_FILE: self.fingerprint_lines(),
            source_lines.FILE: self._source_lines(results_dir, name),
        }
        for file, each in lines.items():
            if found := list(each):
                jsonl.append(folder / file, *found)

    def _source_lines(self, results_dir: str, name: str) -> Iterator[dict[str, Any]]:
        if any(kind.startswith("track_counted.") for _, kind in self._skipped):
            yield from source_lines.missing(*(place / name for place in folders.places(Path(results_dir))))

    def _cubin_lines(self) -> Iterator[dict[str, Any]]:
        for (commit, arch), cubins in sorted(self._cubins.items()):
            line = {"commit": commit, "arch": arch, "nvcc": self._nvcc, "cubins": dict(sorted(cubins.items()))}
            codes = self._codes.get((commit, arch), {})
            yield line | ({"code": dict(sorted(codes.items()))} if codes else {})

    def _instruction_lines(self, results_dir: str, name: str) -> Iterator[dict[str, Any]]:
        places = folders.places(Path(results_dir))
        known = {line["code"] for place in places for line in jsonl.read(place / name / INSTRUCTIONS_FILE)}
        for code, found in sorted(self._instructions.items()):
            if code not in known:
                yield {"code": code, "instructions": found}


def _listed(reasons: Mapping[tuple[str, str], Counter[str]]) -> list[dict[str, Any]]:
    return [
        {"commit": commit, "benchmark": benchmark, "reason": reason, "configurations": count}
        for (commit, benchmark), each in sorted(reasons.items())
        for reason, count in sorted(each.items())
    ]


def read(results_dir: str | Path, name: str) -> list[dict[str, Any]]:
    """The records of the machine `name`, oldest first; none if it has no file."""
    return jsonl.read(Path(results_dir, name, FILE))


def fingerprints(results_dir: str | Path, name: str) -> list[dict[str, Any]]:
    """What the machine `name` measured and reused, a line a run and commit, oldest first; none if it has no file."""
    return jsonl.read(Path(results_dir, name, FINGERPRINTS_FILE))


def origins(results_dir: str | Path, name: str, compiler: str | None = None) -> dict[tuple[str, str], dict[str, str]]:
    """What a compiler did not measure: commit, measurement -> parameters -> the commit whose numbers they have."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    lines = fingerprints(results_dir, name)
    for line in (each for each in lines if compilers.name(each.get("nvcc")) == compiler):
        for group in {*line["fingerprints"], *line["reused"]}:
            known = found.setdefault((line["commit"], measurement(group)), {})
            for params in line["fingerprints"].get(group, ()):
                known.pop(params, None)
            for commit, ones in line["reused"].get(group, {}).items():
                known |= dict.fromkeys(ones, commit)
    return found


def by_commit(ones: Mapping[str, str]) -> dict[str, list[str]]:
    """Return parameters by the commit whose numbers they have, or by anything else that several can have."""
    found: dict[str, list[str]] = {}
    for params, commit in ones.items():
        found.setdefault(commit, []).append(params)
    return found


def counts(run: Mapping[str, Any], commit: str, benchmark: str, params: str, total: int) -> tuple[int, ...]:
    """Return how many samples each process of a run took of a configuration, of which so many are stored."""
    known: dict[str, list[str]] = run.get("processes", {}).get(commit, {}).get(benchmark, {})
    others = next((each for each, some in known.items() if not some), "")
    found = tuple(map(int, next((each for each, some in known.items() if params in some), others).split()))
    return found or (SAMPLES_ONCE,) * (total // SAMPLES_ONCE)


def _now() -> str:
    return steady.now().isoformat(timespec="seconds")


def _nvcc() -> str | None:
    """The compiler's own version line."""
    try:
        text = nvcc.version(nvcc.find_nvcc())
    except ERRORS:
        return None
    return next((line for line in text.splitlines() if "release" in line), text.strip())
