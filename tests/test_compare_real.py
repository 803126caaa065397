"""The review of this repository's own results: it agrees with asv, tells the stories that are known, and knows GB/s."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asv import _stats
from asv.commands.compare import Compare
from asv.config import Config

from report import useful_bytes
from report.results import ROOT
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


@pytest.mark.parametrize(("base", "head"), [("f22cf79", "926c240"), ("926c240", "740a787")])
@pytest.mark.parametrize("machine", ["nvidia-h200", "no-gpu-x86_64"])
def test_agrees_with_asv(machine: str, base: str, head: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever `asv compare` marks as changed in the stored results changed in the same direction here."""
    _, found = reviewed(ROOT, capsys, base, head, "--machine", machine)
    ours = {row["configuration"]: row["verdict"] for row in found["rows"]}
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(ROOT / "results")
    commits = (found[side]["commit"] for side in ("base", "head"))
    Compare.print_table(config, *commits, factor=1.1, split=False, machine=machine, commit_names={})
    marked: dict[str, str] = {}
    for line in capsys.readouterr().out.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in ("+", "-"):
            marked[cells[4].replace("'", "")] = {"+": "SLOW", "-": "FAST"}[cells[0]]
    assert len(marked) > 10
    assert {name: ours[name] for name in marked} == marked


def test_padding_was_an_improvement(capsys: pytest.CaptureFixture[str]) -> None:
    """f22cf79 -> 926c240: the tile kernel is faster, all else is as it was; its bank conflicts went."""
    code, found = reviewed(ROOT, capsys, "f22cf79", "926c240", "--machine", "nvidia-h200")
    changed = {row["configuration"]: row for row in found["rows"] if row["verdict"] != "SAME"}
    assert code == 0
    assert {row["verdict"] for row in changed.values()} == {"FAST"}
    assert all("transpose_read_write_coalesced," in name for name in changed)
    row = changed[
        "time_transpose.Transpose.time_back_to_back(transpose_read_write_coalesced, 12800x12800, float32, -Xptxas -O3)"
    ]
    assert row["ratio"] == pytest.approx(0.710, abs=0.001)
    assert row["bytes_per_second"] == pytest.approx([1223e9, 1724e9], rel=0.001)
    assert row["share_of_peak"] == pytest.approx([0.254, 0.358], abs=0.001)

    code, found = reviewed(ROOT, capsys, "f22cf79", "926c240", "--machine", "no-gpu-x86_64")
    conflicts = "track_counted.Transpose.track_bank_conflicts(transpose_read_write_coalesced,"
    assert {row["verdict"] for row in found["rows"] if row["configuration"].startswith(conflicts)} == {"FAST"}
    assert code == 1, "the padding takes shared memory, which is an increase of an exact number"


def test_three_percent_are_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """926c240 -> 740a787: the tile kernel became 3 % slower, too little for asv's factor."""
    code, found = reviewed(ROOT, capsys, "926c240", "740a787", "--machine", "nvidia-h200")
    name = (
        "time_transpose.Transpose.time_back_to_back(transpose_read_write_coalesced, 12800x12800, float32, -Xptxas -O3)"
    )
    (row,) = (row for row in found["rows"] if row["configuration"] == name)
    assert (row["verdict"], code) == ("SLOW", 1)
    assert row["ratio"] == pytest.approx(1.03, abs=0.001)
    assert 1.028 < row["interval"][0] < row["interval"][1] < 1.032


#: What tells each launch, with the bytes that it must move and its machine code.
CONFIGURATIONS = [
    ({"kernel": "transpose_read_coalesced", "rows x columns": "3x5"}, 120, "transpose_read_coalesced, float32, -O"),
    ({"kernel": "transpose_read_coalesced", "arch": "sm_90"}, None, "transpose_read_coalesced, float32, -O"),
    ({"offset": "3", "size": "10"}, 80, "offset_copy, float32, -O"),
    ({"stride": "3", "size": "10"}, 80, "stride_copy, float32, -O"),
    ({"stride": "3"}, None, "stride_copy, float32, -O"),
    ({"copy": "stride_copy stride=2"}, 8 * 12800 * 12800, "stride_copy, float32, -O"),
    ({"rows x columns": "3x5"}, 120, None),
    ({"rows x columns": "3"}, None, None),
    ({"copy": "unheard"}, None, None),
    ({"offset": "-1", "size": "10"}, None, "offset_copy, float32, -O"),
    ({"kernel": "unknown", "rows x columns": "3x5"}, None, "unknown, float32, -O"),
    ({}, None, None),
]


@pytest.mark.parametrize(("params", "expected", "code"), CONFIGURATIONS)
def test_launches(params: dict[str, str], expected: int | None, code: str | None) -> None:
    """Every element once in and once out; None for what the catalog does not know."""
    given = {**params, "dtype": "float32", "flags": "-O"}
    assert useful_bytes.of(given) == expected
    launched = useful_bytes.configuration(given)
    assert (launched and launched.machine_code) == code


def test_useful_bytes_of_every_timed_benchmark() -> None:
    """A timed benchmark whose parameters tell nothing would show no GB/s."""
    stored = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    for name, each in stored.items():
        if isinstance(each, dict) and each["type"] == "time":
            first = dict(zip(each["param_names"], (axis[0].strip("'") for axis in each["params"]), strict=True))
            assert useful_bytes.of(first), f"{name}: add a row to report/useful_bytes.py"
