"""A new kernel needs one file and one row; results and pages follow."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from tests.repository import SMALL_KERNELS, SMALL_VALUES, Repository
from tests.stored import contents, read_rows

BENCHMARKS = "ARGS=--bench track_counted --bench track_compiled"

#: A difference of two vectors, in dtypes of its own.
SUBTRACT = """\
extern "C" __global__ void subtract(
    ELEMENT* __restrict__ output, const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, long long size)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size) output[i] = a[i] - b[i];
}
"""
SUBTRACT_ROW = """\
        _make_row(
            "subtract",
            "subtract",
            _LINE,
            ("size",),
            arguments=[outputs("output", "size"), inputs("a", "size"), inputs("b", "size"), scalar("size", least=1)],
            options=["-DELEMENT={T}"],
            dtypes=("float16", "float32", "int32"),
            flops="size",
            reference=references.subtract,
        ),
"""
SUBTRACT_REFERENCE = """

def subtract(a: Array, b: Array) -> Array:
    return a - b
"""
#: Code appended to each module of benchmarks.
SUBTRACT_CLASSES = {
    "time_kernel": """

class Subtract(kw.BackToBack):
    \"\"\"Difference of two vectors, DRAM.\"\"\"

    param_names = ("kernel", "size", "dtype", "flags")
    params = (("subtract",), (1 << 20,), ("float16", "float32", "int32"), DEFAULT_FLAGS)
""",
    "track_control": """

class Subtract(kw.Control):
    timed = time_kernel.Subtract
""",
    "track_counted": """

class Subtract(kw.CountedWithShared):
    \"\"\"Difference of two vectors.\"\"\"

    param_names = _AXES
    params = (("subtract",), ("float16", "float32", "int32"), FLAG_SETS)
    fixed = {"size": ELEMENTS}
""",
}
END = "    )\n}\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return the project with few kernels and the new one, counted, compiled and published."""
    kernels_at_last = (*SMALL_KERNELS, "subtract")
    grown = Repository(tmp_path_factory.mktemp("growth"), kernels_at_last, SMALL_VALUES)
    grown.commit("as it is")
    kernels = grown.path / "gpu_kernels"
    (kernels / "kernels" / "subtract.cu").write_text(SUBTRACT, encoding="utf-8")
    grown.replace("gpu_kernels/catalog.py", END, f"{SUBTRACT_ROW}{END}")
    with (kernels / "references.py").open("a", encoding="utf-8") as file:
        file.write(SUBTRACT_REFERENCE)
    for module, text in SUBTRACT_CLASSES.items():
        with (grown.path / "benchmarks" / f"{module}.py").open("a", encoding="utf-8") as file:
            file.write(text)
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
    for dtype, expected in (("float16", 32 * 2 / 32), ("int32", 32 * 4 / 32)):  # sectors of 32 bytes per warp
        assert registers["subtract", dtype, "-Xptxas -O3", "sm_90"] > 4
        assert sectors["subtract", dtype, "-Xptxas -O3"] == expected
    pages = repository.path / "html" / "watch"
    index = (pages / "data" / "index.js").read_text(encoding="utf-8")
    for group, method in (("time_kernel", "time_back_to_back"), ("track_counted", "track_load_sectors")):
        assert f'"prefix":"{group}.Subtract."' in index
        assert f'["{method}",' in index
    sources = (pages / "transactions.html").read_text(encoding="utf-8")
    assert "subtract size=65536 float16 -Xptxas -O3" in sources
    assert "output[i] = a[i] - b[i];" in sources


def test_wrong_kernel_is_not_counted(repository: Repository) -> None:
    assert repository.python("kernelwatch", "count", "subtract", "size=1000", "int32").returncode == 0
    repository.replace("gpu_kernels/kernels/subtract.cu", "a[i] - b[i]", "a[i] + b[i]")
    wrong = repository.python("kernelwatch", "count", "subtract", "size=1000", "int32")
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
