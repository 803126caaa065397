"""The records of runs: which run and commit measured each stored number, machine code, and costs of source lines.

They are `.jsonl` files, because asv reads every `.json` file as results. asv drops unknown keys of its files, so a
result cannot name its run. Instead, the record of a run has the start time of each benchmark in milliseconds. asv
stores the same time with the results.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kernelwatch.store import models, reading
from kernelwatch.suite.benchmark_names import measurement_group
from kernelwatch.toolchain import releases as compilers

#: Suffix of the files with the facts of runs: one line per run of a commit.
RUNS_FILE = "runs.jsonl"

#: Suffix of the files with hashes: one line per run, commit and architecture. A line has the SHA-256 of each cubin, and
#: of its machine code alone. Later lines of the same nvcc add to earlier ones. Lines without nvcc are of the default
#: compiler.
CUBINS_FILE = "cubins.jsonl"

#: Suffix of the files with fingerprints of measured configurations and origins of reused numbers: one line per run and
#: commit.
FINGERPRINTS_FILE = "fingerprints.jsonl"

#: Suffix of the files with the costs of source lines: one line per kernel.
LINES_FILE = "lines.jsonl"

#: Suffix of a record's files -> the model of its lines.
RECORDS: dict[str, type[models.Record]] = {
    RUNS_FILE: models.RunLine,
    CUBINS_FILE: models.CubinsLine,
    FINGERPRINTS_FILE: models.FingerprintsLine,
    LINES_FILE: models.CostsLine,
}

#: Number of samples per round in runs from 2026-11-21 16:00 to 2026-11-23, which did not record this number.
SAMPLES_PER_ROUND = 10


def list_record_paths(folder: Path, suffix: str, commit: str = "") -> list[Path]:
    """Return the paths of a machine's files whose names end with `suffix`.

    The file of all runs before 2026-11-26 comes first. The files of single commits follow; with `commit`, only those of
    this commit.
    """
    file_of_all_runs = folder / suffix
    return [
        *([file_of_all_runs] if file_of_all_runs.exists() else ()),
        *reading.list_paths(folder, commit[:8], f".{suffix}"),
    ]


def read_records(
    results_dir: str | Path, machine: str, suffix: str = RUNS_FILE, commit: str = ""
) -> list[dict[str, Any]]:
    """Return the lines of a machine's record, oldest first; with `commit`, only lines that contain this commit.

    `suffix` is that of the record's files, a key of RECORDS. Lines without a start time come first, as in the files.
    """
    paths = list_record_paths(Path(results_dir, machine), suffix, commit)
    lines = (line for path in paths for line, _ in reading.iter_lines(path, RECORDS[suffix], commit))
    return sorted(map(json.loads, lines), key=lambda line: line.get("started", ""))


def find_origins(
    results_dir: str | Path, machine: str, commit: str, compiler: str | None = None
) -> dict[str, dict[str, str]]:
    """Return the origins of reused numbers at a commit: `measurement_group` -> parameters -> commit that measured them.

    `compiler` is the name of the compiler, None for the default. Later lines of the record replace earlier ones.
    """
    reused: dict[str, dict[str, str]] = {}
    for line in read_records(results_dir, machine, FINGERPRINTS_FILE, commit):
        if (line["commit"], compilers.series_name(line.get("nvcc"))) != (commit, compiler):
            continue
        for group in {*line["fingerprints"], *line["reused"]}:
            sources = reused.setdefault(measurement_group(group), {})
            for params in line["fingerprints"].get(group, ()):  # these were measured, not reused
                sources.pop(params, None)
            for source, configurations in line["reused"].get(group, {}).items():
                sources |= dict.fromkeys(configurations, source)
    return reused


def find_round_sizes(run: Mapping[str, Any], commit: str, benchmark: str, params: str, total: int) -> tuple[int, ...]:
    """Return the number of samples of each round of a configuration, from the record of its run.

    Runs before 2026-11-23 did not record it: SAMPLES_PER_ROUND is assumed. asv itself does not record it either: the
    result is (), as for a missing record ({}). `total` is the number of stored samples.
    """
    by_sizes: dict[str, list[str]] = run.get("processes", {}).get(commit, {}).get(benchmark, {})
    if not by_sizes:
        if not run or "began" in run:  # asv itself took the samples, and does not record rounds
            return ()
        return (SAMPLES_PER_ROUND,) * (total // SAMPLES_PER_ROUND)
    default_sizes = next((sizes for sizes, configurations in by_sizes.items() if not configurations), "")
    own_sizes = (sizes for sizes, configurations in by_sizes.items() if params in configurations)
    return tuple(map(int, next(own_sizes, default_sizes).split()))


def find_measuring_runs(
    runs: Iterable[dict[str, Any]], commit: str, benchmark: str, began: float
) -> list[dict[str, Any]]:
    """Return the runs that measured the stored numbers of a benchmark at a commit, oldest first.

    There are several if later runs measured only some configurations. `began` is the stored start time of the run that
    wrote the numbers last, in milliseconds.
    """
    candidates = [run for run in runs if commit in run["commits"] and _has_measured(run, commit, benchmark, began)]
    with_began = [
        index for index, run in enumerate(candidates) if run.get("began", {}).get(commit, {}).get(benchmark) == began
    ]
    if not with_began:
        return [run for run in candidates if "began" not in run]
    last = with_began[-1]
    complete = [index for index in range(last + 1) if not list_selected(candidates[index], benchmark)]
    if complete and complete[-1] == last:  # it replaced all earlier numbers
        return [candidates[last]]
    first = complete[-1] if complete else 0
    return [candidates[first], *(run for run in candidates[first + 1 :] if list_selected(run, benchmark))]


def _has_measured(run: Mapping[str, Any], commit: str, benchmark: str, began: float) -> bool:
    if run.get("selected") and benchmark not in run["selected"]:
        return False  # runs of fleets before 2026-11-26 have a time in `began` if only its copy ratio was selected
    if "began" in run:
        return benchmark in run["began"].get(commit, {})
    if run.get("selected") or not {"started", "ended"} <= set(run):
        return True
    # Runs before 2026-11-23 recorded whole seconds.
    first, last = (datetime.fromisoformat(run[name]).timestamp() for name in ("started", "ended"))
    return first - 1 <= began / 1000 <= last + 1


def has_selected(run: Mapping[str, Any], benchmark: str, params: str) -> bool:
    """Return whether a run measured a configuration; `params` is the text of the configuration's values in reports."""
    selected = list_selected(run, benchmark)
    return not selected or any(text.replace("'", "") == params for text in selected)


def format_generators(run: Mapping[str, Any]) -> str:
    """Return the versions of the PTX generators of a run, such as "triton 3.9.0"; empty without any."""
    return ", ".join(f"{name} {version}" for name, version in sorted(run.get("generators", {}).items()))


def list_selected(run: Mapping[str, Any], benchmark: str) -> list[str]:
    """Return the configurations of a benchmark that a partial run selected, as asv writes them; none for other runs."""
    selected: list[str] = run.get("selected", {}).get(benchmark, [])
    return selected
