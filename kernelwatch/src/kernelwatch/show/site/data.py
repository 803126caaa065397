"""What the pages read, in pieces that are loaded when they are shown.

    index.js                           benchmarks and machines, with the facts of each commit
    values/MACHINE/BENCHMARK.js        the values of every configuration on every commit
    cubins/MACHINE.js                  where each kernel's machine code changed, by architecture

MACHINE and BENCHMARK are numbers: names from results make no file names.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from kernelwatch.show.site import configurations
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.show.site.words import shorten_machines
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import History
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark

#: What a GPU is called where the record of a run has no UUID.
UNKNOWN_GPU = "unknown"

#: The configurations' values on one commit, in the order of the axes.
ConfigurationValues = list[float | None]


def write_data(folder: Path, benchmarks: Mapping[str, Any], machines: Mapping[str, ShownMachine]) -> None:
    """Write the index, and of each machine its pieces, into a folder of the site.

    Parameters
    ----------
    folder : Path
        Where the pages look for them.
    described : mapping
        The benchmarks by name, as `configurations.described` has them, each with its number as `id`.
    machines : mapping
        The machines by name.
    """
    ids = {name: fields["id"] for name, fields in benchmarks.items()}
    short_names, machine_fields, pieces = shorten_machines(machines), {}, dict[str, Any]()
    for number, (name, machine) in enumerate(machines.items()):
        archs, commits = machine.cubins.archs, machine.history.list_commits()
        facts = [_describe_commit(machine, commit, ids) for commit in commits]
        machine_fields[name] = {"id": number, "short": short_names[name], "archs": archs, "commits": facts}
        pieces[f"cubins/{number}"] = {arch: machine.cubins.list_hash_changes(commits, arch) for arch in archs}
        for benchmark in dict.fromkeys(measured for commit_values in machine.values.values() for measured in commit_values):
            pieces[f"values/{number}/{ids[benchmark]}"] = _describe_benchmark(machine, benchmark)
    pieces["index"] = {
        "benchmarks": benchmarks,
        "machines": machine_fields,
        "another_gpu": ANOTHER_GPU,
        "unverified": configurations.list_unverified_kernels(),
    }
    for stem, piece in pieces.items():
        path = folder / f"{stem}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(format_script(piece), encoding="utf-8")


def format_script(data: Any) -> str:
    """Return a script that hands data over as a JSON text: a page that was opened as a file may load nothing else.

    NaN and infinities, which JSON does not know, become null. As JavaScript, `__proto__` would be no name like any
    other.
    """
    return f"arrived({json.dumps(orjson.dumps(data).decode())});\n"


def number_benchmarks(benchmarks: Iterable[str]) -> dict[str, int]:
    """Return the number of each benchmark, in the suite's order; what it does not know comes last, by name."""
    places = {name: place for place, name in enumerate(registry.current_suite().benchmarks)}
    ordered = sorted(benchmarks, key=lambda name: (places.get(name, len(places)), name))
    return {name: number for number, name in enumerate(ordered)}


def load_values(history: History, benchmarks: Iterable[str]) -> dict[str, dict[str, ConfigurationValues]]:
    """Return by commit the values of the benchmarks that have any; of several Pythons, the last by name counts."""
    return {commit: _load_commit_values(history, commit, benchmarks) for commit in history.list_commits()}


def _load_commit_values(history: History, commit: str, benchmarks: Iterable[str]) -> dict[str, ConfigurationValues]:
    by_benchmark: dict[str, ConfigurationValues] = {}
    for results in history.load_environments(commit).values():
        for benchmark in benchmarks:
            measured = history.list_values(results, benchmark)
            if any(value is not None for value in measured):
                previous = by_benchmark.get(benchmark, measured)
                by_benchmark[benchmark] = [old if new is None else new for old, new in zip(previous, measured, strict=True)]
    return by_benchmark


def _describe_benchmark(machine: ShownMachine, benchmark: str) -> dict[str, Any]:
    """A benchmark's values by commit, the names of its machine code, and what is told of some configurations.

    `origins` are the commits whose numbers configurations have that were not measured again, `gpus` who measured each,
    where several shared a benchmark of a commit, and `failed` those that have none since they failed; all by commit and
    by the configuration's place.
    """
    all_params = configurations.list_combinations(machine.history.find_axes(benchmark))
    places = {tuple(params.values()): str(place) for place, params in enumerate(all_params)}
    remarks = [_list_remarks(machine.history, commit, benchmark, places) for commit in machine.history.list_commits()]
    return {
        "values": [machine.values[commit].get(benchmark) for commit in machine.history.list_commits()],
        "machine_code": [registry.find_code_name(benchmark, params) for params in all_params],
        **{key: [commit_remarks.get(key, {}) for commit_remarks in remarks] for key in sorted({key for commit_remarks in remarks for key in commit_remarks})},
    }


def _list_remarks(history: History, commit: str, benchmark: str, places: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    """What is told of a commit's configurations, by what it is and their places."""
    remarks: dict[str, dict[str, str]] = defaultdict(dict)
    for results in history.load_environments(commit).values():
        row = results.results.get(benchmark)
        are_several = len(history.list_gpus(results, benchmark=benchmark)) > 1
        if (
            row
            and row.result
            and None not in row.result
            and not are_several
            and not history.find_origins(commit, benchmark)
        ):
            continue  # a site has a million configurations; of most there is nothing to tell
        for point in history.iter_points(results, benchmark):
            uuids = history.list_gpus(results, benchmark=benchmark, point=point) if are_several else set()
            uuid = uuids.pop() if len(uuids) == 1 else None
            facts = {"origins": point.origin[:8], "gpus": _shorten_uuid(uuid or ""), "failed": "failed" * point.failed}
            for key, remark in facts.items():
                if remark and tuple(point.params.values()) in places:
                    remarks[key][places[tuple(point.params.values())]] = remark
    return remarks


def _shorten_uuid(uuid: str) -> str:
    return uuid.removeprefix("GPU-")[:8]


def _describe_commit(machine: ShownMachine, commit: str, ids: Mapping[str, int]) -> dict[str, Any]:
    """What is known of a commit: what it has, and of the last run that took its times, or of the last of all.

    `gpus` are the times, and ratios to copies, that each GPU took, by the first digits of its UUID.
    """
    history, measured = machine.history, machine.values[commit]
    environments = list(history.load_environments(commit).values())
    timed = [
        environment
        for environment in environments
        if any(not history.explain_absence(environment, name) for name in history.list_benchmarks("time"))
    ]
    last = (timed or environments)[-1]
    run = history.find_last_timed_run(last)
    gpus: dict[str, list[int]] = defaultdict(list)
    for benchmark in (name for name in measured if classify_benchmark(name) == TIMED):
        for uuid in history.list_gpus(*environments, benchmark=benchmark):
            gpus[UNKNOWN_GPU if uuid is None else _shorten_uuid(uuid)].append(ids[benchmark])
    return {
        "commit": commit,
        "date": last.date,
        "branch": history.graph.branches[commit],
        "driver": run.get("after", {}).get("driver"),
        **{fact: run.get(fact) for fact in ("gpu", "arch", "nvcc", "peak_bytes_per_second")},
        "has": [ids[name] for name in measured],
        "values": [sum(value is not None for value in values) for values in measured.values()],
        "gpus": dict(sorted(gpus.items())),
    }
