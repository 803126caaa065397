"""The review of this repository's own results: it agrees with asv, tells the stories that are known, and knows GB/s."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from asv import _stats
from asv.commands.compare import Compare
from asv.config import Config

from kernelwatch.asv import suite
from kernelwatch.project import ROOT
from kernelwatch.store.results import History, machines
from kernelwatch.toolchain import releases as compilers
from tests.stored import reviewed


class _Kept(dict[Any, Any]):
    """A table that asv does not get to clear: it fills the same one again and again."""

    def clear(self) -> None:
        """Stay as it is."""


@pytest.fixture(autouse=True, scope="module")
def counts() -> Iterator[None]:
    """The orderings that asv's test of significance counts, counted once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stats, "_mann_whitney_u_memo", _Kept())
        yield


@pytest.mark.parametrize(
    ("machine", "base", "head"),
    [
        ("nvidia-h200", "f22cf79", "740a787"),
        ("nvidia-h200", "f22cf79", "926c240"),
        ("nvidia-h200", "926c240", "740a787"),
        ("no-gpu-x86_64", "f22cf79", "926c240"),
        ("no-gpu-x86_64", "926c240", "740a787"),
    ],
)
def test_agrees_with_asv(machine: str, base: str, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever `asv compare` marks as changed in the stored results changed in the same direction here."""
    _, found = reviewed(ROOT, capsys, base, head, "--machine", machine)
    ours = {row["configuration"]: row["verdict"].replace("NOTED", "SLOW") for row in found["rows"]}
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(ROOT / "results")
    commits = (found[side]["commit"] for side in ("base", "head"))
    Compare.print_table(config, *commits, factor=1.1, split=False, machine=machine, commit_names={})
    marked: dict[str, str] = {}
    for line in capsys.readouterr().out.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        ratio = "track_control." in line  # stands beside the time here
        if len(cells) == 5 and cells[0] in ("+", "-") and not ratio:
            marked[cells[4].replace("'", "")] = {"+": "SLOW", "-": "FAST"}[cells[0]]
    assert len(marked) > 10
    assert {name: ours[name] for name in marked} == marked


def test_padding_was_an_improvement(capsys: pytest.CaptureFixture[str]) -> None:
    """The tile kernel is faster in f22cf79 -> 740a787; f22cf79 -> 926c240 took its bank conflicts."""
    _, found = reviewed(ROOT, capsys, "f22cf79", "740a787", "--machine", "nvidia-h200")
    row = _row(
        found,
        "time_transpose.Transpose.time_back_to_back(transpose_read_write_coalesced, 12800x12800, float32, -Xptxas -O3)",
    )
    assert row["verdict"] == "FAST"
    assert row["ratio"] == pytest.approx(0.725, abs=0.001)
    assert row["bytes_per_second"] == pytest.approx([1234e9, 1703e9], rel=0.001)
    assert row["share_of_peak"] == pytest.approx([0.256, 0.354], abs=0.001)

    code, found = reviewed(ROOT, capsys, "f22cf79", "926c240", "--machine", "no-gpu-x86_64")
    conflicts = "track_counted.Transpose.track_bank_conflicts(transpose_read_write_coalesced,"
    assert {row["verdict"] for row in found["rows"] if row["configuration"].startswith(conflicts)} == {"FAST"}
    assert code == 0, "the padding takes shared memory, but as many blocks fit on a multiprocessor"


def test_nothing_but_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """f22cf79 -> 926c240, on one GPU: every change of a time is of the one kernel that was padded."""
    _, found = reviewed(ROOT, capsys, "f22cf79", "926c240", "--machine", "nvidia-h200")
    assert not any(note.startswith("not one GPU") for note in found["notes"])
    times = {row["configuration"]: row["verdict"] for row in found["rows"] if row["kind"] == "timed"}
    assert Counter(times.values()) == {"SAME": 437, "FAST": 113, "UNDECIDED": 1}
    faster = [name for name, verdict in times.items() if verdict == "FAST"]
    assert all("(transpose_read_write_coalesced," in name for name in faster)


def test_two_gpus_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """f22cf79 -> 740a787: where one GPU measured one commit and another the other, little counts, and it is said."""
    _, found = reviewed(ROOT, capsys, "f22cf79", "740a787", "--machine", "nvidia-h200")
    told = [note.rpartition("kind, measured ")[2] for note in found["notes"] if note.startswith("not one GPU")]
    assert told == [
        "7 of 7 timed benchmarks: no threshold is below 8 %; "
        "to judge smaller changes measure both on one GPU: make measure BASE=f22cf79d HEAD=740a7872"
    ]


def test_less_than_one_percent_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """f22cf79 -> 952ced2, on one GPU: by its kind's noise, a copy's 0.6 % counts; what no commit changes is left alone.

    Of the copies that changed at all, only those did whose flag chooses another load since then.
    """
    code, found = reviewed(ROOT, capsys, "f22cf79", "952ced2", "--machine", "nvidia-h200")
    row = _row(found, "time_copy.OffsetCopy.time_back_to_back(0, 67108864, float16, -Xptxas -dlcm=cg)")
    assert row["verdict"] == "SLOW"
    assert 1.006 < row["interval"][0] < row["ratio"] < row["interval"][1] < 1.007
    copies = [row for row in found["rows"] if row["configuration"].startswith("time_copy.DeviceCopy.")]
    assert len(copies) == 35
    assert {row["verdict"] for row in copies} == {"SAME"}
    changed = [row["configuration"] for row in found["rows"] if row["verdict"] != "SAME"]
    copies_changed = [name for name in changed if name.startswith("time_copy.")]
    assert len(copies_changed) == 19
    assert all(name.endswith("-Xptxas -dlcm=cg)") for name in copies_changed)
    assert code == 1


def _row(found: dict[str, Any], configuration: str) -> dict[str, Any]:
    row: dict[str, Any]
    (row,) = (row for row in found["rows"] if row["configuration"] == configuration)
    return row


#: Benchmark, parameters, the bytes that it must move, and its machine code.
CONFIGURATIONS = [
    ("Transpose", {"kernel": "transpose_read_coalesced", "rows x columns": "3x5"}, 120, "transpose_read_coalesced"),
    ("OffsetCopy", {"offset": "3", "size": "10"}, 80, "offset_copy"),
    ("OffsetCopy", {"offset": "-1", "size": "10"}, None, "offset_copy"),
    ("StrideCopy", {"stride": "3", "size": "10"}, 80, "stride_copy"),
    ("StrideCopy", {"stride": "3"}, None, "stride_copy"),
    ("MatrixSizedCopy", {"copy": "stride_copy stride=2"}, 8 * 12800 * 12800, "stride_copy"),
    ("MatrixSizedCopy", {"copy": "unheard"}, None, "unheard"),
    ("DeviceCopy", {"rows x columns": "3x5"}, 120, None),
    ("DeviceCopy", {"rows x columns": "3"}, None, None),
    # Of another suite.
    ("Other", {"kernel": "unknown", "rows x columns": "3x5"}, None, "unknown"),
    ("Other", {"kernel": "transpose_read_coalesced", "arch": "sm_90"}, None, "transpose_read_coalesced"),
    ("Other", {}, None, None),
]


@pytest.mark.parametrize(("title", "params", "expected", "code"), CONFIGURATIONS)
def test_launches(title: str, params: dict[str, str], expected: int | None, code: str | None) -> None:
    """Every element once in and once out; None for what the catalog does not know."""
    benchmark = next((name for name in suite.BENCHMARKS if f"time_copy.{title}." in name), "")
    benchmark = benchmark or f"time_transpose.{title}.time_back_to_back"
    given = {**params, "dtype": "float32", "flags": "-O"}
    assert suite.useful_bytes(benchmark, given) == expected
    assert suite.machine_code(benchmark, given) == (code and f"{code} float32 -O")


@pytest.mark.parametrize("machine", machines(ROOT / "results"))
def test_stored_values_are_found(machine: str) -> None:
    """Each value that any file under `results/` holds is found by asv's own reading of it, for today's axes.

    What is compared are the files themselves with what asv and the pages' reader make of them. Times of the protocol
    before the measuring process are another version's: asv leaves them alone.
    """
    found, histories = 0, dict[str | None, History]()
    versions = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    for path in (ROOT / "results" / machine).glob("*-*.json"):
        stored = json.loads(path.read_text(encoding="utf-8"))
        compiler = compilers.of_results(stored["env_vars"])
        if compiler not in histories:
            histories[compiler] = History(machine, compiler=compiler)
        history = histories[compiler]
        results = history.commit(stored["commit_hash"])
        assert results is not None
        for benchmark, row in stored["results"].items():
            columns = dict(zip(stored["result_columns"], row, strict=False))
            assert columns["version"] == versions[benchmark]["version"]
            every = list(itertools.product(*([text.strip("'") for text in axis] for axis in columns["params"])))
            numbers = columns["result"] or [None] * len(every)
            kept = {
                params: value
                for params, value in zip(every, numbers, strict=True)
                if value is not None and not math.isnan(value)
            }
            axes = history.axes(benchmark)
            seen = dict(zip(itertools.product(*axes.values()), history.values(results, benchmark), strict=True))
            assert {params: seen[params] for params in kept} == kept, f"{path.name}: {benchmark}"
            points = {tuple(point.params.values()): point.value for point in history.points(results, benchmark)}
            assert {params: points[params] for params in kept} == kept
            found += len(kept)
    assert found > 1000


def test_useful_bytes_of_every_timed_benchmark() -> None:
    """A timed benchmark whose parameters tell nothing would show no GB/s."""
    stored = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    for name, each in stored.items():
        if isinstance(each, dict) and each["type"] == "time":
            first = dict(zip(each["param_names"], (axis[0].strip("'") for axis in each["params"]), strict=True))
            assert suite.useful_bytes(name, first), name
