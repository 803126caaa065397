"""A new kernel needs one file and one row; results and pages follow."""

import itertools
import json
import re
from typing import Any

import pytest

from tests.docs.test_add_a_kernel import ADDED, extend
from tests.repository import SMALL_KERNELS, SMALL_VALUES, Repository
from tests.stored import contents, read_rows

BENCHMARKS = "ARGS=--bench track_counted --bench track_compiled"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return the project with few kernels and the new one, counted, compiled and published."""
    kernels_at_last = (*SMALL_KERNELS, "subtract")
    grown = Repository(tmp_path_factory.mktemp("growth"), kernels_at_last, SMALL_VALUES)
    grown.commit("as it is")
    for file in ADDED:
        path = grown.path / file
        path.write_text(extend(file, path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")
    grown.commit("grown")
    run = grown.make("history", BENCHMARKS)
    assert run.returncode == 0, run.stdout + run.stderr
    publish = grown.python("kernelwatch", "site")
    assert publish.returncode == 0, publish.stdout + publish.stderr
    return grown


def _read_values(repository: Repository) -> list[dict[str, Any]]:
    commits = repository.git("rev-list", "--reverse", "HEAD").split()
    paths = (path for commit in commits for path in repository.results.glob(f"*/{commit[:8]}-*.json"))
    return [{name: _list_values(row) for name, row in read_rows(path).items()} for path in paths]


def _list_values(row: dict[str, Any]) -> dict[tuple[str, ...], float]:
    points = itertools.product(*([text.strip("'") for text in axis] for axis in row["params"]))
    return dict(zip(points, row["result"], strict=True))


def test_history_without_new_commits_changes_no_results(repository: Repository) -> None:
    contents_before = contents(repository.results)
    idle = repository.make("history", BENCHMARKS)
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert contents(repository.results) == contents_before


def test_new_kernel_is_in_results_and_on_pages(repository: Repository) -> None:
    newest = _read_values(repository)[-1]
    registers = newest["track_compiled.Compiled.track_registers"]
    sectors = newest["track_counted.Subtract.track_load_sectors"]
    for dtype, expected in (("float32", 32 * 4 / 32), ("float64", 32 * 8 / 32)):  # sectors of 32 bytes per warp
        assert registers["subtract", dtype, "-Xptxas -O3", "sm_90"] > 4
        assert sectors["subtract", dtype, "-Xptxas -O3"] == expected
    pages = repository.path / "html" / "watch"
    index = (pages / "data" / "index.js").read_text(encoding="utf-8")
    for group, method in (("time_kernel", "time_back_to_back"), ("track_counted", "track_load_sectors")):
        assert f'"prefix":"{group}.Subtract."' in index
        assert f'["{method}",' in index
    sources = (pages / "transactions.html").read_text(encoding="utf-8")
    assert "subtract size=65536 float32 -Xptxas -O3" in sources
    assert "output[i] = a[i] - b[i];" in sources


def test_wrong_kernel_is_not_counted(repository: Repository) -> None:
    assert repository.python("kernelwatch", "count", "subtract", "size=1000", "float64").returncode == 0
    repository.replace("gpu_kernels/kernels/subtract.cu", "a[i] - b[i]", "a[i] + b[i]")
    wrong = repository.python("kernelwatch", "count", "subtract", "size=1000", "float64")
    repository.replace("gpu_kernels/kernels/subtract.cu", "a[i] + b[i]", "a[i] - b[i]")
    assert wrong.returncode == 2
    reason = r"kernelwatch count: subtract: element \[\d+\] of output is .*; wrong kernels are not counted"
    assert re.match(reason, wrong.stderr)


def test_other_kernels_are_unchanged(repository: Repository) -> None:
    """Numbers and hashes of machine code of the earlier commit stay in the later one."""
    before, after = _read_values(repository)
    for benchmark, old in before.items():
        # NaN, a skip, does not equal itself.
        kept = {key: after[benchmark][key] for key, value in old.items() if value is not None and value == value}
        assert kept == {key: value for key, value in old.items() if key in kept}
    cubins = repository.results.glob("*/*.cubins.jsonl")
    cubins_before, cubins_after = (json.loads(path.read_text().splitlines()[-1])["cubins"] for path in cubins)
    assert cubins_before.items() <= cubins_after.items() or cubins_after.items() <= cubins_before.items()
