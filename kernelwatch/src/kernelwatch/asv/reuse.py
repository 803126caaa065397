"""Knows what earlier commits measured, and answers in place of asv's processes where a commit's plan says so.

`results/<machine>/fingerprints.jsonl` holds a line a run and commit: the fingerprint of each configuration that was
measured, and for each that was not, the commit whose numbers it has. See `kernelwatch.asv.plans`.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from asv.console import log
from asv.results import Results, iter_results_for_machine_and_hash
from asv.runner import BenchmarkResult, ForkServer

from kernelwatch import suite
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Checked, Configuration, Entry, Plan, Stored
from kernelwatch.store import folders, record, rows
from kernelwatch.store.noise import Gpus, Noise
from kernelwatch.store.run_record import RunRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

#: With a value, everything is measured.
MEASURE_ALL = "KERNELWATCH_MEASURE_ALL"

#: What `asv run` may be told that makes stored numbers useless: other samples, a profile, commits in turns.
_OTHERWISE = ("quick", "attribute", "profile", "append_samples", "interleave_rounds", "dry_run")


class Values:
    """The stored numbers of one commit, from asv's results of it."""

    def __init__(self, results: Results) -> None:
        #: Benchmark -> when asv began with it, in milliseconds since 1970.
        self.began: dict[str, float] = results.started_at
        self._results = results
        self._read: dict[str, dict[str, Any]] = {}

    def of(self, benchmark: str) -> dict[str, Any]:
        """Return a benchmark's numbers by parameters: samples where they are kept, and nothing that is no number."""
        if benchmark not in self._read and benchmark in self._results.get_all_result_keys():
            self._read[benchmark] = {
                ", ".join(params): samples or value
                for params, value, samples in rows.each(rows.of(self._results, benchmark))
                if value is not None and not math.isnan(value)
            }
        return self._read.get(benchmark, {})


class Reuse:
    """What one run reuses, if it `is_on`, and what it did, which a record takes.

    The run writes to the folder `results` of all machines, and reads all places of `folders`. asv says what is `known`
    of it, its machine and its benchmarks, once it has begun.
    """

    def __init__(self, results: Path, known: Mapping[str, Any], record: RunRecord, *, is_on: bool) -> None:
        self._results, self._known, self._record, self._is_on = results, known, record, is_on
        self._prepared: tuple[str | None, str] | None = None
        self._plans: dict[str, dict[tuple[str, int], tuple[str, Configuration]]] = {}
        self._asked: Counter[tuple[str, str]] = Counter()

    @cached_property
    def _machine(self) -> str:
        return str(self._known["machine_params"]["machine"])

    def asked(self, name: str) -> Mapping[str, Any] | None:
        """Return the benchmark of that name as the run under way asks for it; None where it does not."""
        found: Mapping[str, Any] | None = self._known.get("benchmarks", {}).get(name)
        return found

    def prepare(self, commit: str | None, environment: str) -> None:
        """Write what is stored of other commits for a commit's plans, where the run's processes look for it.

        Of no commit, which is the working tree with --python=same, everything is measured. All classes of a commit are
        told the same: what counts ahead has read it before the others begin.
        """
        if self._prepared == (commit, environment):
            return
        self._prepared = commit, environment
        with folders.joined(self._results) as folder:
            entries = dict(self._entries(folder, commit, environment)) if self._is_on and commit else {}
        path = Path(os.environ[plans.STORED])
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(Stored(entries, commit or "", self._selected())))
        new.replace(path)  # who is killed here leaves none that is torn

    def _selected(self) -> dict[str, list[int]]:
        benchmarks = self._known["benchmarks"]
        places = benchmarks.benchmark_selection
        return {
            name: sorted({place for each in benchmarks.keys() & set(together) for place in places[each] or ()})
            for name, together in suite.TOGETHER.items()
        }

    def _entries(self, folder: Path, commit: str, environment: str) -> Iterator[tuple[str, Entry]]:
        """Yield what is stored, the newest last. The times of a commit that is measured again are measured."""
        wanted = {name: self._wanted(name, each) for name, each in suite.TOGETHER.items()}
        own = self._values(folder, commit, environment)
        timed = {name for name, each in wanted.items() if each and suite.BENCHMARKS[each[0]][0] is suite.Kind.TIMED}
        again = {name for name in timed if own and own.of(wanted[name][0])}
        wanted = {name: each for name, each in wanted.items() if each and name not in again}
        noise = Noise(folder / self._machine)
        lines = [*record.read(folder, self._machine, record.FINGERPRINTS_FILE), *self._record.fingerprint_lines()]
        runs = [*record.read(folder, self._machine), self._record.identity()]
        for place, line in enumerate(lines):
            values = self._values(folder, line["commit"], environment)
            if values is None:
                continue
            of_commit = [run for run in runs if line["commit"] in run["commits"]]
            own_run = next((run for run in of_commit if "run" in line and run.get("run") == line["run"]), {})
            for name in set(line["fingerprints"]) & (set(wanted) - (timed if line["commit"] == commit else set())):
                for params, found in _own(line, of_commit, name, wanted[name][0], values).items():
                    entry = _entry(line["commit"], values, wanted[name], params, noise)
                    if entry is not None and self._falls_into_processes(entry, own_run, params):
                        entry.run = place
                        yield plans.key(name, found), entry

    def _falls_into_processes(self, entry: Entry, run: Mapping[str, Any], params: str) -> bool:
        """Whether stored times are of as many processes as this run would start."""
        for name, stored in entry.values.items():
            asked = self._known["benchmarks"].get(name, {})  # a time may be there for its ratio's sake only
            if asked.get("type") == "time":
                count = len(stored) if isinstance(stored, list) else 0
                if len(record.counts(run, entry.commit, name, params, count)) != asked["rounds"]:
                    return False
        return True

    def _wanted(self, name: str, benchmarks: Sequence[str]) -> list[str]:
        """Return those benchmarks of a class that the run has; the time is always there, which others are about."""
        asked = [each for each in benchmarks if each in self._known["benchmarks"]]
        return list(dict.fromkeys([benchmarks[0], *asked])) if asked else []

    def _values(self, folder: Path, commit: str, environment: str) -> Values | None:
        found = iter_results_for_machine_and_hash(str(folder), self._machine, commit)
        return next((Values(each) for each in found if each.env_name == environment), None)

    def answer(self, commit: str, name: str, folder: Path) -> tuple[Any, str] | None:
        """Return what a process of asv's would return and print, and record what becomes of the configuration.

        None if a process must be run. The commit is the installed one, the name is the benchmark's with the number of
        the configuration behind a hyphen, and the folder is the process's own.
        """
        benchmark, _, place = name.rpartition("-")
        found = self._plan(commit, folder).get((benchmark, int(place))) if benchmark else None
        if found is None:
            return None
        group, one = found
        self._record.note_configuration(commit, group, one)
        if one.skipped:
            return _skipped(one.skipped)
        answers = one.answers.get(benchmark)
        if not answers:
            return _of_agent(folder, benchmark, int(place))
        self._asked[commit, name] += 1
        return answers[(self._asked[commit, name] - 1) % len(answers)], ""

    def _plan(self, commit: str, folder: Path) -> dict[tuple[str, int], tuple[str, Configuration]]:
        if str(folder) not in self._plans:
            plan = plans.read(folder) or Plan({})
            self._record.note_plan(commit, plan)
            for each in plan.checked:
                if each.differs:
                    log.warning(f"everything is measured: {_told(each)}")
            self._plans[str(folder)] = dict(_by_benchmark(plan))
        return self._plans[str(folder)]


def _skipped(reason: str, said: str = "") -> tuple[Any, str]:
    return math.nan, f"{said}asv: skipped: {NotImplementedError(reason)!r}"


def _of_agent(folder: Path, benchmark: str, place: int) -> tuple[Any, str] | None:
    from kernelwatch.asv import agent  # noqa: PLC0415 -- it reads the suite, which the run begins without

    found = agent.ask(folder, benchmark, place)
    if found is None:
        return None
    if found.skipped:
        return _skipped(found.skipped, found.said)
    return None if found.failed else {"samples": found.samples, "number": 1}, found.said


def _told(each: Checked) -> str:
    found = "could not be measured" if each.ratio is None else f"took {each.ratio:.4f} of the time that is stored"
    return f"{each.configuration}, whose machine code and conditions are the same, {found}"


def _by_benchmark(plan: Plan) -> Iterator[tuple[tuple[str, int], tuple[str, Configuration]]]:
    for name, ones in plan.configurations.items():
        # What is skipped has no answers: the benchmarks of its class are those of the others.
        benchmarks = {*suite.TOGETHER.get(name, []), *(benchmark for one in ones for benchmark in one.answers)}
        for place, one in enumerate(ones):
            for benchmark in benchmarks:
                yield (benchmark, place), (name, one)


def _own(
    line: Mapping[str, Any], runs: Sequence[dict[str, Any]], name: str, benchmark: str, values: Values
) -> dict[str, str]:
    """Return a class's fingerprints by parameters, of numbers of a line's run that no later one has replaced."""
    found: dict[str, str] = line["fingerprints"][name]
    began = values.began.get(benchmark)
    if began is None or "run" not in line:
        return found if began is not None and record.during(line, began) else {}
    wrote = record.wrote(runs, line["commit"], benchmark, began)
    last = {params: [run for run in wrote if record.selects(run, benchmark, params)][-1:] for params in found}
    return {params: found[params] for params, run in last.items() if [each.get("run") for each in run] == [line["run"]]}


def _entry(commit: str, values: Values, benchmarks: Sequence[str], params: str, noise: Noise) -> Entry | None:
    """Return what is stored of a configuration; None if a number is missing."""
    found = {benchmark: values.of(benchmark).get(params) for benchmark in benchmarks}
    if None in found.values():
        return None
    first = found[benchmarks[0]]
    if not isinstance(first, list):
        return Entry(commit, found)
    # One process against the two that are stored: they differ by more than two against two, which thresholds are for.
    threshold = noise.threshold(f"{benchmarks[0]}({params})", statistics.median(first), Gpus.ALIKE)
    return Entry(commit, found, threshold)


def is_wanted(options: Mapping[str, Any]) -> bool:
    """Whether a run may reuse numbers, as it was called."""
    return not os.environ.get(MEASURE_ALL) and not any(options.get(name) for name in _OTHERWISE)


def preparing(current: Sequence[Reuse], create: Any) -> Any:
    """Wrap `ForkServer.create_setup_cache`: what is stored is told before. `current` has the run under way."""

    @functools.wraps(create)
    def wrapped(self: ForkServer, *args: Any, **kwargs: Any) -> Any:
        for reuse in current:
            reuse.prepare(self.env.installed_commit_hash, self.env.name)
        return create(self, *args, **kwargs)

    return wrapped


def answering(current: Sequence[Reuse], run: Any) -> Any:
    """Wrap `_run_benchmark_single_param` of asv: a plan answers without a process. `current` has the run under way."""

    @functools.wraps(run)
    def wrapped(benchmark: dict[str, Any], spawner: Any, param_idx: int, **asked: Any) -> BenchmarkResult:
        """Give the answer that a plan has; else run the process."""
        if not asked["profile"] and asked["cwd"] is not None:
            if not hasattr(spawner, "commit"):  # asv reads a file for it; a spawner is of one commit
                spawner.commit = spawner.env.installed_commit_hash
            name = f"{benchmark['name']}-{param_idx}" if benchmark["params"] else benchmark["name"]
            for reuse in current:
                answer = reuse.answer(spawner.commit, name, Path(asked["cwd"]))
                if answer is not None:
                    return _result(benchmark, param_idx, *answer)
        return run(benchmark, spawner, param_idx, **asked)

    return wrapped


def _result(benchmark: dict[str, Any], place: int, returned: Any, said: str) -> BenchmarkResult:
    """What asv makes of a process that returned and said this."""
    if said and benchmark["params"]:
        (params,) = itertools.islice(itertools.product(*benchmark["params"]), place, place + 1)
        said = f"For parameters: {', '.join(params)}\n{said}"
    found = json.loads(json.dumps(returned))
    is_timed = isinstance(found, dict) and {"samples", "number"} <= found.keys()
    samples, number = (found["samples"], found["number"]) if is_timed else (None, None)
    return BenchmarkResult(
        result=[True if is_timed else found],
        samples=[samples],
        number=[number],
        errcode=int(found is None),
        stderr=said.strip(),
        profile=None,
    )
