"""The data of the charts, in scripts that a page loads when it needs them.

    index.js                           benchmarks and machines, with facts about each commit
    values/MACHINE/BENCHMARK.js        the values of all configurations at all commits
    commits/MACHINE/COMMIT-KIND.js     the values of all benchmarks of a kind at one commit, and at later equal ones
    changes/HASH.js                    the compared configurations of the changed kernels, for a commit's page
    cubins/MACHINE-ARCH.js             the commits that changed a kernel's machine code, for one architecture

MACHINE, BENCHMARK, COMMIT and ARCH are numbers, because names from results are not used as file names.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from kernelwatch.show.site import configurations
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.show.site.packed import count_numbers, pack_runs
from kernelwatch.show.site.site_folder import SiteFolder
from kernelwatch.show.site.words import SIGNS, shorten_machines
from kernelwatch.store.default_thresholds import THRESHOLD_BETWEEN_GPUS
from kernelwatch.suite import launch_facts, registry

#: Facts in `shared` of a benchmark that a time, its copy ratio and its counts have in common.
_SWEEP_FACTS = ("axes", "chosen", "note", "lines", "own", "along", "kernel", "fetched")


def write_data(site: SiteFolder, benchmarks: Mapping[str, Any], machines: Mapping[str, ShownMachine]) -> None:
    """Write the index and the files of all machines.

    Parameters
    ----------
    site : SiteFolder
        The site; the pages load files from its folder `data`.
    benchmarks : mapping
        Name of a benchmark -> its facts from `configurations.describe_benchmark`, with its number as `id`.
    machines : mapping
        The machines by name.
    """
    ids = {name: fields["id"] for name, fields in benchmarks.items()}
    code_names = {
        name: [
            launch_facts.find_code_name(name, params)
            for params in configurations.list_combinations(fields["shared"]["axes"])
        ]
        for name, fields in benchmarks.items()
    }
    short_names, machine_fields, pieces = shorten_machines(machines), {}, dict[str, Any]()
    shared: dict[str, list[Any]] = {"runs": [], "measured": []}
    for machine_id, (name, machine) in enumerate(machines.items()):
        sources, values_by_source = _share_values(machine, benchmarks)
        machine_fields[name] = {
            "id": machine_id,
            "short": short_names[name],
            "archs": machine.cubins.archs,
            "noise": list(machine.noise.items()),
            "commits": [
                {**_describe_commit(machine, commit, ids, shared), "data": sources[commit]}
                for commit in machine.history.list_commits()
            ],
        }
        pieces |= _list_machine_pieces(machine_id, machine, ids, code_names, values_by_source)
    pieces |= _list_changes(machines)
    kernels = registry.current_suite().kernels()
    pieces["index"] = {
        **_share_facts(benchmarks),
        **shared,
        "machines": machine_fields,
        "another_gpu": THRESHOLD_BETWEEN_GPUS,
        "signs": SIGNS,
        "unverified": [name for name, kernel in kernels.items() if kernel.reference is None],
        "generated": [name for name, kernel in kernels.items() if kernel.is_generated],
    }
    for stem, piece in pieces.items():
        site.write_text(f"data/{stem}.js", format_script(piece))


def _list_machine_pieces(
    machine_id: int,
    machine: ShownMachine,
    ids: Mapping[str, int],
    code_names: Mapping[str, Sequence[str | None]],
    values_by_source: Mapping[tuple[str, int], Mapping[str, str]],
) -> dict[str, Any]:
    """Return the data of a machine's files by path."""
    pieces: dict[str, Any] = {}
    for arch_id, arch in enumerate(machine.cubins.archs):
        pieces[f"cubins/{machine_id}-{arch_id}"] = _list_cubin_changes(machine, arch)
    for benchmark in dict.fromkeys(measured for commit in machine.commits.values() for measured in commit.values):
        piece = _describe_benchmark(machine, benchmark, code_names[benchmark])
        pieces[f"values/{machine_id}/{ids[benchmark]}"] = piece
    for (kind, commit_id), values in values_by_source.items():
        pieces[f"commits/{machine_id}/{commit_id}-{kind}"] = values
    return pieces


def format_script(data: Any) -> str:
    """Return a script that passes data to the page as JSON text, because a page opened as a file can load only scripts.

    NaN and infinities become null. A JavaScript literal is not used, because `__proto__` is a special key in a literal.
    Double quotes need no escape within single quotes.
    """
    text = orjson.dumps(data).decode().replace("\\", "\\\\").replace("'", "\\'")
    return f"arrived('{text}');\n"


def _share_facts(benchmarks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the index's lists `benchmarks`, `classes`, `names` and `sweeps`. Facts that several share are stored once.

    A benchmark is its index in `classes`, its index in `names`, and its work. A class has facts, the common beginning
    of its benchmarks' names, and an index in `sweeps`. An entry of `names` has what follows this beginning in the
    benchmark's name, what follows the family in its title, and its unit. Facts that are false are left out.
    """
    shared = {list_name: list[Any]() for list_name in ("sweeps", "classes", "names")}
    described = []
    for name, fields in benchmarks.items():
        method = name.rpartition(".")[2]
        facts = {fact: value for fact, value in fields["shared"].items() if value is not False}
        ending = [method, fields["title"].removeprefix(facts["family"]), fields["unit"]]
        work = {amount: pack_runs(fields[amount]) for amount in ("useful_bytes", "flops") if fields.get(amount)}
        sweep = {fact: facts.pop(fact) for fact in _SWEEP_FACTS if fact in facts}
        facts |= {"prefix": name.removesuffix(method), "sweep": _find_or_append(shared["sweeps"], sweep)}
        if fields.get("computes"):
            facts["computes"] = True
        described.append([_find_or_append(shared["classes"], facts), _find_or_append(shared["names"], ending), work])
    return {**shared, "benchmarks": described}


def _list_cubin_changes(machine: ShownMachine, arch: str) -> dict[str, list[list[Any]]]:
    """Return name of machine code -> its changes, each as [index of a commit, hash]; a page shows eight digits."""
    changes_by_name = machine.cubins.list_hash_changes(machine.history.list_commits(), arch)
    return {
        code_name: [[commit_id, code_hash and code_hash[:8]] for commit_id, code_hash in changes]
        for code_name, changes in changes_by_name.items()
    }


def _share_values(
    machine: ShownMachine, benchmarks: Mapping[str, Any]
) -> tuple[dict[str, dict[str, int]], dict[tuple[str, int], dict[str, str]]]:
    """Return commit -> kind -> index of the first commit with the same values; and (kind, this index) -> the values.

    Values are by the benchmarks' numbers. Benchmarks without a kind, which the suite lacks, are left out.
    """
    sources: dict[str, dict[str, int]] = {}
    values_by_source: dict[tuple[str, int], dict[str, str]] = {}
    first_commits: dict[tuple[str, str], int] = {}
    for commit_id, commit in enumerate(machine.history.list_commits()):
        by_kind: dict[str, dict[str, str]] = defaultdict(dict)
        for name, text in machine.commits[commit].values.items():
            if kind := benchmarks[name]["shared"]["kind"]:
                by_kind[kind][str(benchmarks[name]["id"])] = text
        sources[commit] = {
            kind: first_commits.setdefault((kind, str(values)), commit_id) for kind, values in by_kind.items()
        }
        values_by_source |= {(kind, sources[commit][kind]): values for kind, values in by_kind.items()}
    return sources, values_by_source


def _list_changes(machines: Mapping[str, ShownMachine]) -> dict[str, list[dict[str, Any]]]:
    pieces: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, machine in machines.items():
        for change in machine.changes:
            if change["compared"]:
                pieces[f"changes/{change['head']}"].append({"machine": name, "compared": change["compared"]})
    return pieces


def number_benchmarks(benchmarks: Iterable[str]) -> dict[str, int]:
    """Return benchmark -> its number: first the suite's, in the suite's order, then unknown ones by name."""
    places = {name: place for place, name in enumerate(registry.current_suite().benchmarks)}
    ordered = sorted(benchmarks, key=lambda name: (places.get(name, len(places)), name))
    return {name: number for number, name in enumerate(ordered)}


def _describe_benchmark(machine: ShownMachine, benchmark: str, code_names: Sequence[str | None]) -> dict[str, Any]:
    """Return a benchmark's values by commit, the names of its machine code, and remarks on its configurations.

    `machine_code` has, for each configuration, an index in `code_names`.
    """
    places_by_code = {name: place for place, name in enumerate(dict.fromkeys(code_names))}
    remarks = [commit.remarks.get(benchmark, {}) for commit in machine.commits.values()]
    return {
        "values": _refer_back([commit.values.get(benchmark) for commit in machine.commits.values()]),
        "code_names": list(places_by_code),
        "machine_code": [places_by_code[name] for name in code_names],
        **{
            key: [commit_remarks.get(key, {}) for commit_remarks in remarks]
            for key in sorted(set[str]().union(*remarks))
        },
    }


def _refer_back(rows: Sequence[str | None]) -> list[str | int | None]:
    """Return the rows; replace each repeated text by the index of the first equal one."""
    first_places: dict[str, int] = {}
    referring: list[str | int | None] = []
    for place, row in enumerate(rows):
        first = place if row is None else first_places.setdefault(row, place)
        referring.append(row if first == place else first)
    return referring


def _describe_commit(
    machine: ShownMachine, commit: str, ids: Mapping[str, int], shared: Mapping[str, list[Any]]
) -> dict[str, Any]:
    """Return the facts about a commit. `run` and `measured` are indices in lists of `shared`, which get new facts."""
    graph, measured = machine.history.graph, machine.commits[commit]
    facts = dict(measured.facts)
    date, gpus = facts.pop("date"), facts.pop("gpus")
    generators: dict[str, list[int]] = defaultdict(list)
    for name, versions in measured.generators.items():
        generators[versions].append(ids[name])
    benchmarks = {
        "generators": generators,
        "counts": pack_runs(count_numbers(measured.values.get(name, "")) for name in ids),
        "gpus": {gpu: [ids[name] for name in names] for gpu, names in gpus.items()},
    }
    return {
        "commit": commit,
        "date": date,
        "branch": graph.branches[commit],
        "position": graph.positions.get(commit),
        "run": _find_or_append(shared["runs"], facts),
        "measured": _find_or_append(shared["measured"], benchmarks),
    }


def _find_or_append(shared: list[Any], facts: Any) -> int:
    if facts not in shared:
        shared.append(facts)
    return shared.index(facts)
