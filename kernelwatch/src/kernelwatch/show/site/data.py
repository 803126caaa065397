"""What the pages read, in pieces that are loaded when they are shown.

    index.js                           benchmarks and machines, with the facts of each commit
    values/MACHINE/BENCHMARK.js        the values of every configuration on every commit
    cubins/MACHINE.js                  where each kernel's machine code changed, by architecture

MACHINE and BENCHMARK are numbers: names from results make no file names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from kernelwatch import suite
from kernelwatch.show.site import configurations
from kernelwatch.show.site.overview import Shown
from kernelwatch.show.site.words import short_names
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import TIMED, History, kind

#: What a GPU is called where the record of a run has no UUID.
UNKNOWN = "unknown"

#: The configurations' values on one commit, in the order of the axes.
Values = list[float | None]


def pieces(shown: Shown, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return what the charts tell of a machine: its part of the index, and its pieces by their place below the folder.

    Parameters
    ----------
    shown : Shown
        The machine.
    ids : mapping of str to int
        The number of each benchmark.
    """
    history, commits = shown.history, shown.history.commits()
    pieces: dict[str, Any] = {"cubins/{}": {arch: shown.cubins.runs(commits, arch) for arch in shown.cubins.archs}}
    for benchmark in dict.fromkeys(name for each in shown.values.values() for name in each):
        rows = [shown.values[commit].get(benchmark) for commit in commits]
        pieces[f"values/{{}}/{ids[benchmark]}"] = _piece(history, benchmark, rows)
    entry = {
        "archs": shown.cubins.archs,
        "commits": [
            _facts(history, commit)
            | {
                "has": [ids[one] for one in shown.values[commit]],
                "values": [sum(value is not None for value in each) for each in shown.values[commit].values()],
                "gpus": _gpus(history, commit, {one: ids[one] for one in shown.values[commit]}),
            }
            for commit in commits
        ],
    }
    return {"entry": entry, "pieces": {place: script(each) for place, each in pieces.items()}}


def write(folder: Path, benchmarks: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the index, and of each machine its pieces, into a folder of the site."""
    texts: dict[str, str] = {}
    for number, told in enumerate(machines.values()):
        texts |= {place.format(number): text for place, text in told["pieces"].items()}
    short = short_names(machines)
    index = {
        "benchmarks": benchmarks,
        "machines": {
            name: {"id": number, "short": short[name], **told["entry"]}
            for number, (name, told) in enumerate(machines.items())
        },
        "another_gpu": ANOTHER_GPU,
        "unverified": configurations.unverified(),
    }
    for place, text in {**texts, "index": script(index)}.items():
        path = folder / f"{place}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def script(data: Any) -> str:
    """Return a script that hands data over as a JSON text: a page that was opened as a file may load nothing else.

    NaN and infinities, which JSON does not know, become null. As JavaScript, `__proto__` would be no name like any
    other.
    """
    return f"arrived({json.dumps(orjson.dumps(data).decode())});\n"


def numbered(benchmarks: Iterable[str]) -> dict[str, int]:
    """Return the number of each benchmark, in the order of the pages."""
    return {benchmark: number for number, benchmark in enumerate(sorted(benchmarks, key=_place))}


def _place(benchmark: str) -> tuple[int, str]:
    """The suite's order, then what it does not know."""
    known = list(suite.BENCHMARKS)
    return known.index(benchmark) if benchmark in known else len(known), benchmark


def values(history: History, benchmarks: Iterable[str]) -> dict[str, dict[str, Values]]:
    """Return by commit the values of the benchmarks that have any; of several Pythons, the last by name counts."""
    return {commit: _values(history, commit, benchmarks) for commit in history.commits()}


def _values(history: History, commit: str, benchmarks: Iterable[str]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for results in history.environments(commit).values():
        for benchmark in benchmarks:
            measured = history.values(results, benchmark)
            if any(value is not None for value in measured):
                before = found.get(benchmark, measured)
                found[benchmark] = [old if new is None else new for old, new in zip(before, measured, strict=True)]
    return found


def _piece(history: History, benchmark: str, values: list[Values | None]) -> dict[str, Any]:
    """A benchmark's values by commit, the names of its machine code, and what is told of some configurations.

    `origins` are the commits whose numbers configurations have that were not measured again, `gpus` who measured each,
    where several shared a benchmark of a commit, and `failed` those that have none since they failed; all by commit and
    by the configuration's place.
    """
    every = configurations.combinations(history.axes(benchmark))
    places = {", ".join(params.values()): place for place, params in enumerate(every)}
    piece: dict[str, Any] = {
        "values": values,
        "machine_code": [suite.code_name(benchmark, params) for params in every],
    }
    for what, tell in (("origins", _origins), ("gpus", _gpus_of_series), ("failed", _failed)):
        told = [tell(history, commit, benchmark) for commit in history.commits()]
        if any(told):
            piece[what] = [{str(places[text]): each[text] for text in each if text in places} for each in told]
    return piece


def _origins(history: History, commit: str, benchmark: str) -> dict[str, str]:
    return {text: origin[:8] for text, origin in history.origins(commit, benchmark).items()}


def _failed(history: History, commit: str, benchmark: str) -> dict[str, str]:
    return {
        ", ".join(point.params.values()): "failed"
        for results in history.environments(commit).values()
        for point in history.points(results, benchmark)
        if point.failed
    }


def _gpus_of_series(history: History, commit: str, benchmark: str) -> dict[str, str]:
    return {
        ", ".join(point.params.values()): _short(uuid)
        for results in history.environments(commit).values()
        if len(history.gpus(results, benchmark=benchmark)) > 1
        for point in history.points(results, benchmark)
        if (uuid := history.gpu_of_series(results, benchmark, point)) is not None
    }


def _short(uuid: str) -> str:
    return uuid.removeprefix("GPU-")[:8]


def _gpus(history: History, commit: str, ids: dict[str, int]) -> dict[str, list[int]]:
    """Which times, and ratios to copies, each GPU took of a commit: ids by the first eight digits of its UUID."""
    found: dict[str, list[int]] = {}
    for benchmark, number in ids.items():
        if kind(benchmark) == TIMED:
            for uuid in history.gpus(*history.environments(commit).values(), benchmark=benchmark):
                name = UNKNOWN if uuid is None else _short(uuid)
                found.setdefault(name, []).append(number)
    return dict(sorted(found.items()))


def _facts(history: History, commit: str) -> dict[str, Any]:
    """What is known of a commit, and of the last run that took its times, or of the last of all."""
    environments = list(history.environments(commit).values())
    timed = [
        one for one in environments if any(not history.why_not_run(one, name) for name in history.benchmarks("time"))
    ]
    last = (timed or environments)[-1]
    run = history.timed_run_of(last)
    before, after = run.get("before", {}), run.get("after", {})
    return {
        "commit": commit,
        "date": last.date,
        "branch": history.graph.branches[commit],
        "gpu": run.get("gpu"),
        "arch": run.get("arch"),
        "driver": after.get("driver"),
        "nvcc": run.get("nvcc"),
        "peak_bytes_per_second": run.get("peak_bytes_per_second"),
        "l2_bytes": after.get("l2_bytes") or before.get("l2_bytes"),
    }
