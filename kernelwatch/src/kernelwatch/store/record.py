"""The records beside asv's results, and whose the stored numbers are that they tell of.

asv reads every `.json` under `results/`, and facts there would split its series. It leaves `.jsonl` alone. It keeps no
key of its files that it does not know, so a result cannot name its run. The record of a run holds when asv began with
each benchmark, to the millisecond, and asv stores the same moment with the results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kernelwatch.store import models, reading
from kernelwatch.toolchain import releases as compilers

#: What the names of records end in: a line a run of a commit.
FILE = "runs.jsonl"

#: A line a run, commit and architecture: the SHA-256 of the cubins by configuration, and of their machine code alone.
#: Later lines of the same nvcc add to earlier ones. A line that names none is of the compiler of asv's plain results.
CUBINS_FILE = "cubins.jsonl"

#: A line a run and commit: which configurations were measured, by fingerprint, and which have whose numbers.
FINGERPRINTS_FILE = "fingerprints.jsonl"

#: A line a kernel: what each line of its source costs.
LINES_FILE = "lines.jsonl"

#: The records, and what a line of each is.
RECORDS: dict[str, type[models.Record]] = {
    FILE: models.Run,
    CUBINS_FILE: models.Cubins,
    FINGERPRINTS_FILE: models.Fingerprints,
    LINES_FILE: models.Lines,
}

#: Samples that each round took of a time, where no record says: in all runs from 2026-11-21 16:00 to 2026-11-23.
SAMPLES_ONCE = 10


#: Modules in benchmarks' names that say what is measured, in whatever file a class stands. All others are of times.
COUNTED, COMPILED, CONTROL = "track_counted", "track_compiled", "track_control"


def control(name: str) -> str:
    """Return the name of the benchmark that holds a timed one's times in copies of the same bytes."""
    return f"{CONTROL}.{name.split('.')[1]}.track_copy_ratio"


def measurement(name: str) -> str:
    """Return what benchmarks have in common whose numbers one measurement gives: a time and its control, or counts.

    `name` is a benchmark, or what records name: its module and class.
    """
    module, group = name.split(".")[:2]
    return f"{module}.{group}" if module in (COUNTED, COMPILED) else f"time.{group}"


def paths(folder: Path, file: str, commit: str = "") -> list[Path]:
    """Return a machine's files of a record: what all runs shared until 2026-11-26, then those of each commit or one."""
    return [*reading.listed(folder, file), *reading.listed(folder, f"{commit[:8] or '????????'}-*.{file}")]


def read(results_dir: str | Path, name: str, file: str = FILE, commit: str = "") -> list[dict[str, Any]]:
    """Return the lines of a record of the machine `name`, or those that name a commit, oldest first."""
    model, places = RECORDS[file], paths(Path(results_dir, name), file, commit)
    lines = (line for path in places for line, _ in reading.lines(path, model, commit))
    return sorted(map(json.loads, lines), key=lambda line: line.get("started", ""))


def origins(results_dir: str | Path, name: str, commit: str, compiler: str | None = None) -> dict[str, dict[str, str]]:
    """Return what a compiler did not measure at a commit: measurement -> parameters -> the commit that has measured."""
    reused: dict[str, dict[str, str]] = {}
    for line in read(results_dir, name, FINGERPRINTS_FILE, commit):
        if (line["commit"], compilers.series_name(line.get("nvcc"))) != (commit, compiler):
            continue
        for group in {*line["fingerprints"], *line["reused"]}:
            sources = reused.setdefault(measurement(group), {})
            for params in line["fingerprints"].get(group, ()):
                sources.pop(params, None)
            for source, several in line["reused"].get(group, {}).items():
                sources |= dict.fromkeys(several, source)
    return reused


def counts(run: Mapping[str, Any], commit: str, benchmark: str, params: str, total: int) -> tuple[int, ...]:
    """Return how many samples each round of a run took of a configuration, of which so many are stored."""
    known: dict[str, list[str]] = run.get("processes", {}).get(commit, {}).get(benchmark, {})
    if not known:
        if "began" in run:  # asv's own rounds
            return ()
        return (SAMPLES_ONCE,) * (total // SAMPLES_ONCE)
    others = next((each for each, some in known.items() if not some), "")
    return tuple(map(int, next((each for each, some in known.items() if params in some), others).split()))


def wrote(runs: Iterable[dict[str, Any]], commit: str, benchmark: str, began: float) -> list[dict[str, Any]]:
    """Return, of a machine's records, the runs whose numbers are stored of a benchmark at a commit, oldest first.

    They are several if later ones selected some configurations. `began` is when asv began with the benchmark, in
    milliseconds, as it is stored with the numbers: which run wrote them last.
    """
    found = [run for run in runs if commit in run["commits"] and _measured(run, commit, benchmark, began)]
    last = [place for place, run in enumerate(found) if run.get("began", {}).get(commit, {}).get(benchmark) == began]
    if not last:
        return [run for run in found if "began" not in run]
    whole = [place for place in range(last[-1] + 1) if not _some(found[place], benchmark)]
    if whole[-1:] == last[-1:]:
        return [found[last[-1]]]
    first = whole[-1] if whole else 0
    return [found[first], *(run for run in found[first + 1 :] if _some(run, benchmark))]


def _measured(run: Mapping[str, Any], commit: str, benchmark: str, began: float) -> bool:
    if run.get("selected") and benchmark not in run["selected"]:
        return False  # a fleet of before 2026-11-26 began with it for its control only
    if "began" in run:
        return benchmark in run["began"].get(commit, {})
    return bool(run.get("selected")) or during(run, began)


def during(run: Mapping[str, Any], began: float) -> bool:
    """Whether a moment, in milliseconds, lies within a run of before 2026-11-23, whose record has whole seconds."""
    if not {"started", "ended"} <= set(run):
        return True
    first, last = (datetime.fromisoformat(run[name]).timestamp() for name in ("started", "ended"))
    return first - 1 <= began / 1000 <= last + 1


def selects(run: Mapping[str, Any], benchmark: str, params: str) -> bool:
    """Whether a run that measured a benchmark measured that configuration of it, as reports print its parameters."""
    some = _some(run, benchmark)
    return not some or any(text.replace("'", "") == params for text in some)


def _some(run: Mapping[str, Any], benchmark: str) -> list[str]:
    """The configurations that a run selected of a benchmark; none if it selected all."""
    found: list[str] = run.get("selected", {}).get(benchmark, [])
    return found
