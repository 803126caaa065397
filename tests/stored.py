"""Write results of imaginary benchmarks with asv's classes, and review them."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from asv.benchmarks import Benchmarks
from asv.results import Results
from asv.runner import BenchmarkResult
from asv.util import write_json

from kernelwatch.cli.compare import compare as main
from kernelwatch.review.commit_review import Review
from kernelwatch.store.models import Document
from kernelwatch.store.results import History
from kernelwatch.toolchain.releases import VARIABLE
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import select_commits

#: Outcome of a configuration: samples, a value without samples, None (failed) or NaN (skipped).
Outcome = list[float] | float | None

#: Commit -> benchmark -> case -> outcome. A benchmark's name may end in `@version`.
Suite = dict[str, dict[str, dict[str, Outcome]]]

BASE, HEAD = "b" * 40, "c" * 40

TIME, COUNT = "time_x.X.time_back_to_back", "track_counted.X.track_sectors"

#: A machine, and the record of a run there.
MACHINE = "gpu"
RUN = {
    "started": "2026-01-02T03:04:05+00:00",
    "ended": "2026-01-02T03:05:05+00:00",
    "commits": [HEAD],
    "gpu": "a GPU",
    "peak_bytes_per_second": 1e12,
    "before": {"driver": "580.1"},
    "after": {"driver": "580.1", "throttle_reasons": []},
    "skipped": [],
}


def samples(seconds: float, count: int = 40, noise: float = 0.001, seed: int = 0) -> list[float]:
    """Return samples around a median, in seconds, with as many digits as are stored."""
    scatter = np.random.default_rng(seed).normal(0, noise, count)
    return [float(f"{sample:.7g}") for sample in seconds * (1 + scatter - np.median(scatter))]


def pair(base: Outcome, head: Outcome, benchmark: str = TIME) -> Suite:
    return {BASE: {benchmark: {"one": base}}, HEAD: {benchmark: {"one": head}}}


def write_lines(path: Path, *lines: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path.parent


def find_results(root: Path, commit: str) -> tuple[History, Document]:
    history = History(MACHINE, root)
    results = history.find_commit(commit)
    assert results is not None
    return history, results


def review_stored(root: Path) -> Review:
    (selection,) = select_commits(BASE, HEAD, None, root)
    return review_selection(selection, root)


def review_as_json(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a review; assert that it is strict JSON."""
    code = main([*(words or (BASE, HEAD)), "--format", "json"], root)
    return code, json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def write(
    root: Path, suite: Suite, machine: str = "gpu", environment: str = "python3.11", compiler: str = "",
    began: Mapping[tuple[str, str], datetime] = MappingProxyType({}),
    axes: Mapping[str, Mapping[str, Sequence[str]]] = MappingProxyType({}),
) -> Path:  # fmt: skip
    """Write `asv.conf.json` and `results/` to a project's folder, as asv does; return this folder.

    With `compiler`, the results are those of this release of CUDA. `began` has the start of a benchmark at a commit,
    now by default. `axes` has the axes of a benchmark, whose outcomes are those of all combinations, in asv's order.
    """
    variables = {VARIABLE: compiler} if compiler else {}
    environment += "".join(f"-{name}{value}" for name, value in variables.items())
    (root / "asv.conf.json").write_text(json.dumps({"version": 1, "project": "p", "repo": ".", "branches": ["main"]}))
    folder = root / "results"
    write_json(str(folder / machine / "machine.json"), {"machine": machine}, 1)
    written_benchmarks: dict[str, Any] = {}
    for date, (commit, benchmarks) in enumerate(suite.items()):
        results = Results({"machine": machine}, {}, commit, date, "3.11", environment, variables)
        for label, cases in benchmarks.items():
            benchmark = _benchmark(label, axes.get(label, {"case": list(cases)}))
            written_benchmarks[benchmark["name"]] = benchmark
            moment = began.get((commit, benchmark["name"]))
            results.add_result(benchmark, _result(list(cases.values())), record_samples=True, started_at=moment)
        results.save(str(folder))
    write_json(str(folder / "benchmarks.json"), written_benchmarks, Benchmarks.api_version)
    return root


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change_document(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    document = json.loads(path.read_bytes())
    return {name: dict(zip(document["result_columns"], row, strict=False)) for name, row in document["results"].items()}


def documents(folder: Path) -> dict[str, Any]:
    """Return asv's result files without start times and durations, by the first eight digits of their commits."""
    results = {}
    for path in sorted(folder.glob("*/????????-*.json")):
        results[path.name[:8]] = json.loads(path.read_text(), parse_constant=str)
        results[path.name[:8]]["durations"] = {}
        for row in results[path.name[:8]]["results"].values():
            row[3:5] = [None, None]
    return results


def _benchmark(label: str, axes: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    name, _, version = label.partition("@")
    timed = name.startswith("time")
    return {
        "name": name,
        "version": version or "1",
        "type": "time" if timed else "track",
        "unit": "seconds" if timed else "sectors",
        # asv's quotes, which may differ from those of repr.
        "params": [[f"'{value}'" for value in axis] for axis in axes.values()],
        "param_names": list(axes),
    }


def _result(outcomes: list[Outcome]) -> Any:
    recorded = [outcome if isinstance(outcome, list) else None for outcome in outcomes]
    values = [float(np.median(outcome)) if isinstance(outcome, list) else outcome for outcome in outcomes]
    numbers = [None if recorded_samples is None else 1 for recorded_samples in recorded]
    return BenchmarkResult(values, recorded, numbers, 0, "", None)
