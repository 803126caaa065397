"""The folder of results: tracked files stay unchanged, and the files of all runs are read together."""

import hashlib
import json
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from asv.results import iter_results_for_machine_and_hash

from kernelwatch.config.project_root import ROOT
from kernelwatch.store import folders, git, index, reading, record
from kernelwatch.store.folders import CommitFiles
from kernelwatch.toolchain.releases import VARIABLE
from tests.commits import begin
from tests.stored import BASE, COUNT, MACHINE, RUN, TIME, Outcome, contents, write

ENVIRONMENT = "python3.11"
NAN = float("nan")
DAY = datetime(2026, 11, 26, tzinfo=timezone.utc)

#: SHA-256 of all values in results/ until 2026-11-26.
STORED = "a93f2c5fb081171b7a51755db8cd4a9fd4a3b8931e5818a58341ab640cd57549"


def _measure(folder: Path, day: int, **benchmarks: dict[str, Outcome]) -> dict[str, object]:
    """Return asv's document of a run at BASE, so many days after DAY, of `time` or `count`."""
    names = {"time": TIME, "count": COUNT}
    suite = {BASE: {names[name]: cases for name, cases in benchmarks.items()}}
    folder.mkdir(parents=True)
    began = {(BASE, name): DAY + timedelta(days=day) for name in names.values()}
    (path,) = (write(folder, suite, began=began) / "results" / MACHINE).glob("*-*.json")
    document: dict[str, object] = json.loads(path.read_bytes())
    return document


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a tracked folder of results of one commit: a time and a count, each with three cases, one skipped."""
    cases: dict[str, Outcome] = {"one": 1.0, "two": 2.0, "three": NAN}
    root = begin(tmp_path / "project")
    write(root, {BASE: {TIME: cases, COUNT: cases}}, began={(BASE, name): DAY for name in (TIME, COUNT)})
    git.text(root, "add", "results")
    return root / "results"


def _values(folder: Path) -> dict[str, str]:
    (document,) = reading.iter_documents(folder / MACHINE)
    return {name: str(row.result) for name, row in document.results.items()}


#: Case -> later runs, one a day, benchmarks of the new file, and changed values that are read. Values that a run skips
#: (NaN) stay.
AGAIN: dict[str, tuple[list[dict[str, dict[str, Outcome]]], set[str], dict[str, str]]] = {
    "the same": ([{"count": {"one": 1.0, "two": 2.0, "three": NAN}}], set(), {}),
    "another number": ([{"count": {"one": 4.0, "two": 2.0, "three": NAN}}], {COUNT}, {COUNT: "[4.0, 2.0, nan]"}),
    "one of them": ([{"count": {"one": 4.0, "two": NAN, "three": NAN}}], {COUNT}, {COUNT: "[4.0, 2.0, nan]"}),
    "it fails now": ([{"time": {"one": None, "two": 2.0, "three": 5.0}}], {TIME}, {TIME: "[None, 2.0, 5.0]"}),
    "two runs": (
        [{"count": {"one": 4.0, "two": NAN, "three": NAN}}, {"time": {"one": NAN, "two": 9.0, "three": NAN}}],
        {COUNT, TIME},
        {COUNT: "[4.0, 2.0, nan]", TIME: "[1.0, 9.0, nan]"},
    ),
}


@pytest.mark.parametrize("name", AGAIN)
def test_later_runs_leave_tracked_files(name: str, results: Path, tmp_path: Path) -> None:
    """Only changed benchmarks are written, to one new file. asv and the review read all files."""
    measured, new, read = AGAIN[name]
    contents_before, values = contents(results), _values(results)
    for day, benchmarks in enumerate(measured, start=1):
        document = _measure(tmp_path / str(day), day, **benchmarks)
        run = {record.RUNS_FILE: [{**RUN, "commits": [BASE], "run": str(day)}]}
        CommitFiles(results / MACHINE, BASE, ENVIRONMENT).save(document, run)
    contents_after = contents(results)
    assert {name: contents_after[name] for name in contents_before} == contents_before
    added = sorted(contents_after.keys() - contents_before.keys())
    assert [name.rpartition("Z.")[2] for name in added] == [*(["json"] if new else []), record.RUNS_FILE]
    assert not new or json.loads(contents_after[added[0]])["results"].keys() == new
    assert len(record.read_records(results, MACHINE)) == len(measured)
    assert _values(results) == values | read
    results_of_asv = iter_results_for_machine_and_hash(str(results), MACHINE, BASE)
    names = {name for result in results_of_asv for name in result.get_all_result_keys()}
    assert names == {TIME, COUNT}, "asv does not read both files"


def test_other_commits_and_environments_have_their_own_files(results: Path, tmp_path: Path) -> None:
    """The names of files have eight digits of a commit, which two commits share here."""
    document = _measure(tmp_path / "1", 1, count={"one": 4.0, "two": 2.0, "three": NAN})
    for commit, environment in ((f"{BASE[:8]}{32 * 'a'}", ENVIRONMENT), (BASE, "other")):
        assert CommitFiles(results / MACHINE, commit, environment).read_merged() is None
        other_document = {**document, "commit_hash": commit, "env_name": environment}
        CommitFiles(results / MACHINE, commit, environment).save(other_document, {})
    documents = reading.iter_documents(results / MACHINE, BASE)
    assert {(merged.commit_hash[-1], merged.env_name, *sorted(merged.results)) for merged in documents} == {
        ("b", ENVIRONMENT, TIME, COUNT), ("a", ENVIRONMENT, COUNT), ("b", "other", COUNT),
    }  # fmt: skip


#: Compilers of a machine's earlier results ("": the default one), the compiler of a run, and the folder and suffix of
#: the run's file: `compilers` for a compiler that is neither the default one nor the only one in the machine's folder.
COMPILERS = [
    ([], "", (".", ".json")),
    ([""], "", (".", ".json")),
    ([""], "13.5.0", ("compilers", ".jsonl")),
    ([], "13.5.0", (".", ".json")),
    (["13.5.0"], "13.5.0", (".", ".json")),
    (["13.5.0"], "13.1.0", ("compilers", ".jsonl")),
    (["13.5.0"], "", (".", ".json")),
    (["13.5.0", "13.1.0"], "13.1.0", ("compilers", ".jsonl")),
]


@pytest.mark.parametrize(("earlier", "compiler", "place"), COMPILERS)
def test_other_compilers_have_a_folder_of_their_own(
    earlier: list[str], compiler: str, place: tuple[str, str], tmp_path: Path
) -> None:
    """Only reviews read this folder, asv does not. A second run adds to the file."""
    machine, variables = tmp_path / "results" / MACHINE, {VARIABLE: compiler} if compiler else {}
    measured = [_measure(tmp_path / str(day), day, count={"one": day}) for day in (1, 2)]
    for number, name in enumerate(earlier):
        document = {**measured[0], "commit_hash": str(number) * 40, "env_vars": {VARIABLE: name} if name else {}}
        CommitFiles(machine, str(number) * 40, ENVIRONMENT).save(document, {})
    for day in (1, 2):
        document = {**measured[day - 1], "env_vars": variables}
        CommitFiles(machine, BASE, ENVIRONMENT).save(document, {})
        ((path, _, stored),) = reading.iter_files(machine, BASE)
        assert (str(path.parent.relative_to(machine)), path.suffix) == place
        assert (stored.env_vars, stored.results[COUNT].result) == (variables, [day])
    assert [entry.commit for entry in index.list_results(machine).values()].count(BASE) == 1
    (machine / "machine.json").write_text(json.dumps({"machine": MACHINE, "version": 1}))
    results_of_asv = iter_results_for_machine_and_hash(str(tmp_path / "results"), MACHINE, BASE[:8])
    assert len(list(results_of_asv)) == (place[1] == ".json")


#: File of descriptions that another run wrote -> its text, and a part of the error.
DESCRIPTIONS = {
    reading.BENCHMARKS_FILE: ('{"version": 2}', ""),
    f"{MACHINE}/machine.json": ('{"machine": "another"}', "describes another machine; name this one otherwise"),
}


@pytest.mark.parametrize("file", DESCRIPTIONS)
def test_only_changed_descriptions_are_written(file: str, results: Path, tmp_path: Path) -> None:
    """Other code is no change. The description of another machine is an error."""
    theirs, (text, error) = tmp_path / "theirs", DESCRIPTIONS[file]
    (theirs / MACHINE).mkdir(parents=True)
    for name in DESCRIPTIONS:
        described = json.loads((results / name).read_bytes())
        for description in (description for description in described.values() if isinstance(description, dict)):
            description["code"], description["setup_cache_key"] = "another", "another.py:7"
        (theirs / name).write_text(json.dumps(described, indent=7))
    contents_before = contents(results)
    folders.copy_descriptions(results, theirs, MACHINE)
    assert contents(results) == contents_before
    (theirs / file).write_text(text)
    with pytest.raises(reading.UnreadableError, match=error) if error else nullcontext():
        folders.copy_descriptions(results, theirs, MACHINE)
        assert (results / file).read_text() == text


def test_stored_values_are_read_as_before() -> None:
    digest = hashlib.sha256()
    for folder in (ROOT / "results" / name for name in ("no-gpu-x86_64", "nvidia-h100-80gb-hbm3", "nvidia-h200")):
        for path, _, document in reading.iter_files(folder):
            if not path.stem.endswith("Z"):
                rows = [(name, document.get_row(name)) for name in sorted(document.results)]
                digest.update(json.dumps([f"{path.stem}.json", document.commit_hash, document.date, rows]).encode())
        for file, model in record.RECORDS.items():
            for line, _ in reading.iter_lines(folder / file, model):
                digest.update(line)
    assert digest.hexdigest() == STORED
