"""The data of the charts, in pieces that a page loads when it shows them.

    index.js                           benchmarks and machines, with the facts of each commit
    values/MACHINE/BENCHMARK.js        the values of every configuration on every commit
    commits/MACHINE/COMMIT-KIND.js     the values of all benchmarks of a kind on one commit
    changes/HASH.js                    the compared configurations of the changed kernels, for a commit's page
    cubins/MACHINE-ARCH.js             where each kernel's machine code changed, for one architecture

MACHINE, BENCHMARK, COMMIT and ARCH are numbers: names from results make no file names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from kernelwatch.show.site import configurations
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.show.site.site_folder import SiteFolder
from kernelwatch.show.site.words import SIGNS, shorten_machines
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import History
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark

#: Name of a GPU whose run recorded no UUID.
UNKNOWN_GPU = "unknown"

#: The configurations' values on one commit, in the order of the axes.
ConfigurationValues = list[float | None]


def write_data(site: SiteFolder, benchmarks: Mapping[str, Any], machines: Mapping[str, ShownMachine]) -> None:
    """Write the index and each machine's pieces.

    Parameters
    ----------
    site : SiteFolder
        The site, of whose folder `data` the pages load pieces.
    benchmarks : mapping
        The benchmarks by name, from `configurations.describe_benchmark`, with their numbers as `id`.
    machines : mapping
        The machines by name.
    """
    ids = {name: fields["id"] for name, fields in benchmarks.items()}
    short_names, machine_fields, pieces = shorten_machines(machines), {}, dict[str, Any]()
    for number, (name, machine) in enumerate(machines.items()):
        archs, commits = machine.cubins.archs, machine.history.list_commits()
        facts = [_describe_commit(machine, commit, ids) for commit in commits]
        described = {"id": number, "short": short_names[name], "archs": archs, "noise": list(machine.noise.items())}
        machine_fields[name] = {**described, "commits": facts}
        for place, arch in enumerate(archs):
            pieces[f"cubins/{number}-{place}"] = _shorten_hashes(machine.cubins.list_hash_changes(commits, arch))
        for benchmark in dict.fromkeys(
            measured for commit_values in machine.values.values() for measured in commit_values
        ):
            pieces[f"values/{number}/{ids[benchmark]}"] = _describe_benchmark(machine, benchmark)
        for place, commit in enumerate(commits):
            by_kind: dict[str, dict[str, ConfigurationValues]] = defaultdict(dict)
            for benchmark, values in machine.values[commit].items():
                if kind := benchmarks[benchmark]["shared"]["kind"]:  # null of a benchmark that the suite lacks
                    by_kind[kind][str(ids[benchmark])] = values
            pieces |= {f"commits/{number}/{place}-{kind}": values for kind, values in by_kind.items()}
    pieces |= _list_changes(machines)
    pieces["index"] = {
        **_share_facts(benchmarks),
        "machines": machine_fields,
        "another_gpu": ANOTHER_GPU,
        "signs": SIGNS,
        "unverified": configurations.list_unverified_kernels(),
    }
    for stem, piece in pieces.items():
        site.write_text(f"data/{stem}.js", format_script(piece))


def format_script(data: Any) -> str:
    """Return a script that passes data to the page as JSON text, since a page opened as a file can load only scripts.

    NaN and infinities become null. A JavaScript literal would not do: in it `__proto__` is no ordinary key. Quotes of
    JSON need no escape within single ones.
    """
    text = orjson.dumps(data).decode().replace("\\", "\\\\").replace("'", "\\'")
    return f"arrived('{text}');\n"


def _share_facts(benchmarks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the benchmarks, each with the number of its facts among all that several benchmarks share."""
    keys = {name: orjson.dumps(fields["shared"]) for name, fields in benchmarks.items()}  # with the order of axes
    shared = list(dict.fromkeys(keys.values()))
    described = {name: {**fields, "shared": shared.index(keys[name])} for name, fields in benchmarks.items()}
    return {"shared": [orjson.Fragment(facts) for facts in shared], "benchmarks": described}


def _shorten_hashes(changes: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, list[list[Any]]]:
    """Return the changes of machine code with the first digits of each hash, of which a page shows eight."""
    return {name: [[place, code_hash and code_hash[:8]] for place, code_hash in runs] for name, runs in changes.items()}


def _list_changes(machines: Mapping[str, ShownMachine]) -> dict[str, list[dict[str, Any]]]:
    """Return the compared configurations of each commit with changes, by the name of their piece."""
    pieces: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, machine in machines.items():
        for change in machine.changes:
            if change["compared"]:
                pieces[f"changes/{change['head']}"].append({"machine": name, "compared": change["compared"]})
    return pieces


def number_benchmarks(benchmarks: Iterable[str]) -> dict[str, int]:
    """Assign numbers to benchmarks in the suite's order; unknown benchmarks follow by name."""
    places = {name: place for place, name in enumerate(registry.current_suite().benchmarks)}
    ordered = sorted(benchmarks, key=lambda name: (places.get(name, len(places)), name))
    return {name: number for number, name in enumerate(ordered)}


def load_values(history: History, benchmarks: Iterable[str]) -> dict[str, dict[str, ConfigurationValues]]:
    """Return each commit's values by benchmark; of several Pythons, the last by name counts.

    Times have the digits that a page can show.
    """
    return {commit: _load_commit_values(history, commit, benchmarks) for commit in history.list_commits()}


def _load_commit_values(history: History, commit: str, benchmarks: Iterable[str]) -> dict[str, ConfigurationValues]:
    by_benchmark: dict[str, ConfigurationValues] = {}
    for results in history.load_environments(commit).values():
        for benchmark in benchmarks:
            measured = history.list_values(results, benchmark) if benchmark in results.results else []
            if any(value is not None for value in measured):
                if classify_benchmark(benchmark) == TIMED:
                    measured = [value if value is None else float(f"{value:.6g}") for value in measured]
                previous = by_benchmark.get(benchmark, measured)
                by_benchmark[benchmark] = [
                    old if new is None else new for old, new in zip(previous, measured, strict=True)
                ]
    return by_benchmark


def _describe_benchmark(machine: ShownMachine, benchmark: str) -> dict[str, Any]:
    """Return a benchmark's values by commit, the names of its machine code, and remarks on configurations.

    `machine_code` has each configuration's place in `code_names`. Remarks are stored by commit and by the
    configuration's place. `origins` are the commits whose numbers were reused. `gpus` are the GPUs that measured a
    configuration, if several GPUs shared the benchmark. `failed` marks configurations that failed.
    """
    all_params = configurations.list_combinations(machine.history.find_axes(benchmark))
    places = {tuple(params.values()): str(place) for place, params in enumerate(all_params)}
    names = [registry.find_code_name(benchmark, params) for params in all_params]
    places_by_code = {name: place for place, name in enumerate(dict.fromkeys(names))}
    remarks = [_list_remarks(machine.history, commit, benchmark, places) for commit in machine.history.list_commits()]
    return {
        "values": [machine.values[commit].get(benchmark) for commit in machine.history.list_commits()],
        "code_names": list(places_by_code),
        "machine_code": [places_by_code[name] for name in names],
        **{
            key: [commit_remarks.get(key, {}) for commit_remarks in remarks]
            for key in sorted({key for commit_remarks in remarks for key in commit_remarks})
        },
    }


def _list_remarks(
    history: History, commit: str, benchmark: str, places: Mapping[tuple[str, ...], str]
) -> dict[str, Any]:
    """Return the remarks on a commit's configurations, by kind of remark and place."""
    remarks: dict[str, dict[str, str]] = defaultdict(dict)
    for results in history.load_environments(commit).values():
        row = results.results.get(benchmark)
        if row is None:
            continue
        are_several = len(history.list_gpus(results, benchmark=benchmark)) > 1
        if row.result and None not in row.result and not are_several and not history.find_origins(commit, benchmark):
            continue  # a site has a million configurations, most of them without remarks
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
    """Return the facts on a commit and on its last run that took times, or else its last run.

    `gpus` are the benchmarks that each GPU timed, by the first digits of its UUID.
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
        "position": history.graph.positions.get(commit),
        "driver": run.get("after", {}).get("driver"),
        **{fact: run.get(fact) for fact in ("gpu", "arch", "nvcc", "peak_bytes_per_second")},
        "has": [ids[name] for name in measured],
        "values": [sum(value is not None for value in values) for values in measured.values()],
        "gpus": dict(sorted(gpus.items())),
    }
