"""Runs of a repository with two kernels, without a GPU: arguments, results, messages and exit codes."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from asv.util import load_json

from kernelwatch.store import record
from tests import stored
from tests.kernelwatch.strangers import STRANGERS, Project, Stranger, assert_search_finds, make_project, texts
from tests.stored import contents

MACHINE = "no-gpu-x86_64"

STORES = "track_counted.Brighten.track_store_sectors"
REGISTERS = "track_compiled.Compiled.track_registers"
TIMES = "time_kernel.Brighten.time_back_to_back"

#: A package that needs a build before its import: the build writes its version.
BUILT = {
    "setup.py": """\
from pathlib import Path
from setuptools import setup
from setuptools.command.build_py import build_py

class Build(build_py):
    def run(self):
        super().run()
        Path(self.build_lib, "imaging", "_built.py").write_text("FACTOR = 4")

setup(cmdclass={"build_py": Build})
""",
    "imaging/__init__.py": "from imaging._built import FACTOR\n",
}


def read_rows(project: Project, commit: str) -> Mapping[str, Any]:
    (path,) = (project.path / "results" / MACHINE).glob(f"{commit[:8]}-*.json")
    return stored.read_rows(path)


def read_record(project: Project, file: str = record.RUNS_FILE) -> list[Any]:
    return record.read_records(project.path / "results", MACHINE, file)


def list_measured_commits(project: Project) -> set[str]:
    return {path.name[:8] for path in (project.path / "results" / MACHINE).glob("*-*.json")}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, list[str]]:
    """Return a project and its five commits. The third commit spoils coalescing, the fifth does not compile."""
    project, commits = make_project(STRANGERS["a PyCUDA package"], tmp_path_factory.mktemp("runs"))
    project.write("imaging/brighten.cu", texts.CUDA.replace("* 4;", "* four;"))
    return project, [*commits, project.commit("does not compile")]


@pytest.fixture
def repository(template: tuple[Project, list[str]], tmp_path: Path) -> tuple[Project, list[str]]:
    project = Project(tmp_path)
    shutil.rmtree(project.path)
    shutil.copytree(template[0].path, project.path, symlinks=True, ignore=shutil.ignore_patterns("results", ".asv"))
    return project, template[1]


def test_range_is_measured_and_recorded(repository: tuple[Project, list[str]]) -> None:
    """The third commit is spoiled. A second run measures only a share of the counts."""
    project, commits = repository
    _, base, spoiled, *_ = commits
    done = project.run("asv", "run", f"{commits[0]}..{spoiled}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "· no GPU can be used: time_* and track_control benchmarks are skipped, all others run",
        *(f"· project {spoiled[:8]} <main~2>: 48 benchmarks", *SUMMARY),
        *(f"· project {base[:8]} <main~3>: 48 benchmarks", *SUMMARY),
    ]
    check_numbers(project, base, spoiled)
    check_records(project, base, spoiled)
    again = project.run("asv", "run", f"{commits[0]}^!")
    assert again.returncode == 0, again.stderr
    assert read_rows(project, commits[0])[STORES]["result"] == [4.0]
    (last,) = (line for line in read_record(project, record.FINGERPRINTS_FILE) if line["commit"] == commits[0])
    counts = [len(fingerprints) for fingerprints in last["fingerprints"].values()]
    assert counts == [1], "one of the reusable launches is measured again"
    review = project.run("kernelwatch", "compare", "--all", base, spoiled)
    assert review.returncode == 1, review.stdout + review.stderr
    assert review.stdout.startswith("WORSE")
    assert all(kernel in review.stdout for kernel in ("brighten", "darken"))
    assert_search_finds(spoiled, commits[0], spoiled, STRANGERS["a PyCUDA package"], project)
    assert project.run("git", "status", "--porcelain").stdout == "?? results/\n"
    check_idle_run(project, commits[0])


#: Outcomes of a commit's benchmarks without a GPU, as a run prints them.
SUMMARY = [
    "· time_kernel: 4 n/a",
    "· track_control: 4 n/a",
    "· track_compiled: 8 measured",
    "· track_counted: 36 measured",
    "· 8 n/a: no GPU can be used: libcuda.so.1 of NVIDIA's driver is missing",
]


def check_numbers(project: Project, base: str, spoiled: str) -> None:
    """Assert that counts and resources of two commits are stored, and NaN for times."""
    rows = read_rows(project, base)
    assert rows[STORES]["result"] == [4.0]
    assert read_rows(project, spoiled)[STORES]["result"] == [32.0]
    axes = [["'brighten'", "'darken'"], ["'float32'"], ["'-Xptxas -O3'"], ["'sm_90'"]]
    assert rows[REGISTERS]["params"] == axes
    assert all(count > 0 for count in rows[REGISTERS]["result"])
    assert math.isnan(rows[TIMES]["result"][0])
    (path,) = (project.path / "results" / MACHINE).glob(f"{base[:8]}-*.json")
    document = json.loads(path.read_text())
    assert document["params"].items() >= {"machine": MACHINE, "python": document["python"]}.items()


def check_records(project: Project, base: str, spoiled: str) -> None:
    """Assert that skips, hashes of machine code, blocks and fingerprints of two commits are recorded."""
    runs = read_record(project)
    assert {tuple(run["commits"]) for run in runs} == {(base,), (spoiled,)}
    skipped = {(name, 1) for name in read_rows(project, base) if name.startswith(("time_", "track_control"))}
    for run in runs:
        assert {(skip["benchmark"], skip["configurations"]) for skip in run["skipped"]} == skipped
        assert len({skip["reason"] for skip in run["skipped"]}) == 1
    lines = read_record(project, record.CUBINS_FILE)
    code = {line["commit"]: line["cubins"] for line in lines}
    assert code[base].keys() == code[spoiled].keys()
    assert code[base] != code[spoiled]
    assert [line["blocks"] for line in lines] == [{"brighten float32": [256, 0], "darken float32": [256, 0]}] * 2
    first, second = (line["fingerprints"] for line in read_record(project, record.FINGERPRINTS_FILE))
    assert set(first) == set(second) == {"track_counted.Brighten", "track_counted.Darken"}
    assert len(read_record(project, "lines.jsonl")) == 0, "lines are counted only at HEAD"


def check_idle_run(project: Project, commit: str) -> None:
    """Assert that a run whose benchmarks are all excluded changes no file."""
    contents_before = contents(project.path / "results")
    idle = project.run("asv", "run", f"{commit}^!", "--skip-existing-successful", "--skip-existing-failed")
    excluded = "the --skip-existing options exclude all selected benchmarks"
    assert idle.returncode == 0
    assert idle.stdout.splitlines()[1:] == [f"· nothing to measure at {commit[:8]}: {excluded}"]
    assert contents(project.path / "results") == contents_before


#: Arguments, standard input, exit code, measured commits by number, and a message.
TYPED: dict[str, tuple[tuple[str, ...], str, int, set[int], str]] = {
    "a file of hashes": (("HASHFILE:-",), "C0\nno-such\n", 0, {0}, "'no-such' in HASHFILE:- is not"),
    "one that does not compile": (("C4^!",), "", 2, {4}, 'brighten.cu(5): error: identifier "four" is undefined'),
    "no benchmark": (("C0^!", "--bench", "no_such"), "", 1, set(), "no benchmark is selected; correct --bench"),
    "nothing is to be stored": (("C0^!", "--dry-run", "--machine", "mine"), "", 0, set(), "track_counted: 1 measured"),
    "interleaved dry run": (("C0^!", "--interleave-rounds", "--dry-run"), "", 1, set(), "has no --dry-run"),
    "another machine": (("C0^!", "--machine", "mine"), "", 0, set(), "track_counted: 1 measured"),
}


@pytest.mark.parametrize("case", TYPED)
def test_arguments_decide_what_is_stored(case: str, repository: tuple[Project, list[str]]) -> None:
    """Only benchmarks that --bench selects are counted, and a dry run stores nothing."""
    project, commits = repository
    words, standard_input, code, stored, message = TYPED[case]

    def fill_hashes(text: str) -> str:
        for index, commit in enumerate(commits):
            text = text.replace(f"C{index}", commit)
        return text

    bench = () if "--bench" in words else ("--bench", "Brighten.track_store_sectors")
    done = project.ask(fill_hashes(standard_input), "asv", "run", *map(fill_hashes, words), *bench)
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert list_measured_commits(project) == {commits[index][:8] for index in stored}
    for index in stored:
        assert set(read_rows(project, commits[index])) == {STORES}
    counted = [set(line["fingerprints"]) for line in read_record(project, record.FINGERPRINTS_FILE)]
    assert all(classes <= {"track_counted.Brighten"} for classes in counted)
    other_machine = project.path / "results" / "mine"
    assert (other_machine / "machine.json").exists() == (case == "another machine")
    assert (project.path / "results").exists() == ("--dry-run" not in words)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("benchmark_dir", "benchmark_dir of asv.conf.json, nope, is not a folder; correct it"),
        ("repo", "repo of asv.conf.json, nope, cannot be cloned: "),
    ],
)
def test_wrong_configuration_is_one_line(setting: str, message: str, repository: tuple[Project, list[str]]) -> None:
    project, _ = repository
    conf = load_json(str(project.path / "asv.conf.json"), js_comments=True)
    (project.path / "asv.conf.json").write_text(json.dumps({**conf, setting: "nope"}))
    done = project.run("asv", "run", "HEAD^!")
    assert done.returncode == 1
    assert message in (done.stdout + done.stderr).splitlines()[-1]


def test_run_by_asv_continues_the_history(repository: tuple[Project, list[str]]) -> None:
    """An option that only asv supports changes neither the machine nor the numbers."""
    project, commits = repository
    project.run("git", "checkout", "--quiet", "--detach", commits[0])
    done = project.run("asv", "run", "--python=same", "--set-commit-hash", commits[0], "--bench", STORES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_rows(project, commits[0])[STORES]["result"] == [4.0]
    assert [path.name for path in (project.path / "results").glob("*/machine.json")] == ["machine.json"]


def test_run_measures_head(repository: tuple[Project, list[str]]) -> None:
    """HEAD is measured without uncommitted changes, also if it is detached, and in a hook of another repository.

    The costs of source lines are counted once.
    """
    project, commits = repository
    project.run("git", "checkout", "--quiet", "--detach", commits[1])
    project.write("imaging/brighten.cu", "changed")
    environment = {name: text for name, text in project.environment.items() if name != "HOME"}
    project.environment = {**environment, "GIT_DIR": "/no/such/repository"}  # as in a hook of another repository
    done = project.run("kernelwatch", "run", "--bench", "Brighten.track_store", "--bench", "track_registers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list_measured_commits(project) == {commits[1][:8]}
    assert read_rows(project, commits[1])[STORES]["result"] == [4.0]
    assert "HEAD is measured without these uncommitted changes: imaging/brighten.cu" in done.stdout
    (source_line,) = read_record(project, "lines.jsonl")
    assert source_line["launch"].startswith("brighten h=64 w=128")
    assert project.run("asv", "run", "--bench", "Brighten.track_store", "HEAD^!").returncode == 0
    assert read_record(project, "lines.jsonl") == [source_line], "stored source lines were counted again"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("benchmarks/kernels.py", "\nnothing\n", "benchmarks/kernels.py:24: NameError: name 'nothing'"),  # the end
        ("imaging/__init__.py", "1 / 0\n", "imaging/__init__.py:1: ZeroDivisionError"),
    ],
)
def test_import_error_is_one_line(file: str, text: str, message: str, repository: tuple[Project, list[str]]) -> None:
    """The line names the file and the line number. Nothing is stored."""
    project, _ = repository
    path = project.path / file
    path.write_text(path.read_text() + text)
    kernels = project.path / "benchmarks" / "kernels.py"
    kernels.write_text(f"import imaging\n{kernels.read_text()}")
    commit = project.commit("broken")
    project.run("git", "branch", "--force", "main", commit)
    done = project.run("asv", "run", f"{commit}^!")
    assert done.returncode == 1, done.stdout + done.stderr
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not list_measured_commits(project)


def test_package_is_built_in_an_environment_of_asv(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """A benchmark without kernels runs there, too, and the result is in the same file."""
    stranger = STRANGERS["a PyCUDA package"]
    plain = {"benchmarks/__init__.py": "", "benchmarks/plain.py": "def track_seven():\n    return 7\n"}
    files = {**stranger.files, **BUILT, **plain}
    benchmarks = f"import imaging\n{stranger.benchmarks}".replace("image * 4", "image * imaging.FACTOR")
    project, commits = make_project(Stranger(benchmarks, files, stranger.spoiled), tmp_path)
    configuration = json.loads((project.path / "asv.conf.json").read_text())
    configuration["install_command"] = [
        "in-dir={env_dir} /usr/bin/env kernelwatch provide {env_dir}",
        "in-dir={env_dir} python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall {build_dir}",
    ]
    project.write("asv.conf.json", json.dumps(configuration))
    project.copy_environments(tmp_path_factory)
    names = ("--bench", "Brighten.track_store_sectors", "--bench", "seven")
    done = project.run("asv", "run", f"{commits[1]}^!", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = read_rows(project, commits[1])
    assert rows[STORES]["result"] == [4.0], "not 32, the number of the checkout"
    assert rows["plain.track_seven"]["result"] == [7]
