"""What the pages read: pieces that hold what was stored, and scripts beside asv's own files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.config import Config

from kernelwatch import suite
from kernelwatch.project import ROOT
from kernelwatch.show.site import configurations, data
from kernelwatch.show.site.configurations import combinations
from kernelwatch.show.site.overview import Shown
from kernelwatch.store import record
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.results import History
from tests.site import known, made_up
from tests.site.known import MACHINE, TRANSPOSE
from tests.stored import BASE, COUNT, Suite, write

PRODUCT = "time_kernel.MatrixProduct.time_back_to_back"


def handed_over(path: Path) -> Any:
    """What a script hands over; JSON in the strict sense, without NaN."""
    match = re.fullmatch(r"arrived\((\".*\")\);\n", path.read_text(encoding="utf-8"))
    assert match is not None, path
    return json.loads(json.loads(match[1]), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def folder(site: Path) -> Path:
    """Where the pieces are."""
    return site / "data"


@pytest.fixture(scope="module")
def index(folder: Path) -> Any:
    """The piece that names the others."""
    return handed_over(folder / "index.js")


def test_values_are_the_stored_ones(folder: Path, index: Any, stored: Path) -> None:
    """Seconds and counts as they were stored, by commit and in the order of the axes; and the names of machine code."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.results_dir = str(stored)
    for name, machine in index["machines"].items():
        history = History(name, config=config)
        assert [commit["commit"] for commit in machine["commits"]] == history.commits()
        for benchmark, described in index["benchmarks"].items():
            path = folder / "values" / str(machine["id"]) / f"{described['id']}.js"
            has = [described["id"] in commit["has"] for commit in machine["commits"]]
            assert path.exists() == any(has)
            if not any(has):
                continue
            piece = handed_over(path)
            assert [row is not None for row in piece["values"]] == has
            every = combinations(described["axes"])
            for params, code in zip(every, piece["machine_code"], strict=True):
                if "kernel" in params:
                    assert code == " ".join(params[axis] for axis in ("kernel", "dtype", "flags"))
            for commit, row in zip(history.commits(), piece["values"], strict=True):
                results = history.commit(commit)
                assert results is not None
                for params, value in list(zip(every, row or (), strict=False))[::11]:
                    assert history.value(results, benchmark, params) == value


def test_of_several_pythons_the_last_counts(tmp_path: Path) -> None:
    """By its name; where it has no value, the one before. What failed is told from what is not there."""
    nothing = float("nan")
    for version, cases in {"3.9": (1.0, 2.0, None), "3.11": (3.0, 4.0, None), "3.10": (5.0, nothing, None)}.items():
        made: Suite = {BASE: {COUNT: dict(zip(("one", "two", "three", "four"), (*cases, nothing), strict=True))}}
        root = write(tmp_path, made, environment=f"python{version}")
    history = History("gpu", root)
    told = data.pieces(Shown(history, data.values(history, [COUNT]), []), {COUNT: 0})
    data.write(tmp_path / "data", {}, {"gpu": told})
    piece = handed_over(tmp_path / "data" / "values" / "0" / "0.js")
    assert (piece["values"], piece["failed"]) == ([[1.0, 2.0, None, None]], [{"2": "failed"}])


def test_order_of_benchmarks() -> None:
    """The suite's; what it does not know, or no longer, comes last."""
    known = list(suite.BENCHMARKS)
    assert sorted(["a.A.time_a", *reversed(known), "z.Z.time_z"], key=data._place) == [
        *known,
        "a.A.time_a",
        "z.Z.time_z",
    ]


def test_what_configurations_do(index: Any) -> None:
    """Bytes of all, operations of what computes: in the order of the axes."""
    assert set(index["benchmarks"][TRANSPOSE]["flops"]) == {None}
    axes = {axis: list(map(str, values)) for axis, values in suite.BENCHMARKS[PRODUCT][1].axes.items()}
    stored: Any = SimpleNamespace(axes=lambda _: axes, title=str, unit=str, type=lambda _: "time")
    shown = configurations.described(stored, PRODUCT)
    for params, flops, moved in zip(combinations(axes), shown["flops"], shown["useful_bytes"], strict=True):
        side = int(params["rows x inner x columns"].partition("x")[0])
        assert (flops, moved) == (2 * side**3, 3 * 4 * side**2)


def test_facts_of_a_commit(index: Any) -> None:
    """Oldest first, each once, with those of the run that measured it."""
    newest = index["machines"][MACHINE]["commits"][-1]
    runs = [run for run in record.read(ROOT / "results", MACHINE) if newest["commit"] in run["commits"]]
    assert newest["peak_bytes_per_second"] == runs[-1]["peak_bytes_per_second"]
    assert newest["driver"] == runs[-1]["after"]["driver"]
    assert (newest["l2_bytes"], newest["arch"]) == (made_up.L2_BYTES, "sm_90")
    timed = {one["id"] for name, one in index["benchmarks"].items() if name.startswith(("time_", "track_control."))}
    for commit in index["machines"][MACHINE]["commits"]:
        assert {gpu: set(ids) for gpu, ids in commit["gpus"].items()} == {
            known.gpu(commit["commit"]): timed & set(commit["has"])
        }
    assert not any(commit["gpus"] for commit in index["machines"]["no-gpu-x86_64"]["commits"])


def test_machine_code(folder: Path, index: Any, stored: Path) -> None:
    """The hashes by architecture."""
    machine = index["machines"][MACHINE]
    assert machine["archs"] == [*made_up.ARCHS, made_up.HOSTILE]  # another machine's come last
    runs = handed_over(folder / "cubins" / f"{machine['id']}.js")["sm_90"]
    assert runs[f"{made_up.CHANGED} int8 -Xptxas -O3"] == [[0, made_up.OLD], [1, made_up.NEW]]
    assert len(runs) == len(Cubins(stored / MACHINE).runs(History(MACHINE).commits(), "sm_90"))


@pytest.mark.parametrize("text", ['{"__proto__": "</script>"}', '"\u2028\\u2028"', '[1.5, null, "\\""]'])
def test_script_hands_over_any_json(text: str, tmp_path: Path) -> None:
    """Whatever the text holds, the script is one call with one argument."""
    (tmp_path / "piece.js").write_text(data.script(json.loads(text)), encoding="utf-8")
    assert handed_over(tmp_path / "piece.js") == json.loads(text)


def test_hostile_machine_name(site: Path, index: Any) -> None:
    """The name is data: in no page as it is, and in what the pages read as a JSON text."""
    assert not [path for path in site.rglob("*.html") if made_up.HOSTILE in path.read_text(encoding="utf-8")]
    assert made_up.HOSTILE in index["machines"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_number_is_missing(value: float, tmp_path: Path) -> None:
    """What JSON does not know reaches a page as what it shows as missing, never as a text that no page can read."""
    (tmp_path / "piece.js").write_text(data.script({"values": [1.5, value]}), encoding="utf-8")
    assert r"{\"values\":[1.5,null]}" in (tmp_path / "piece.js").read_text(encoding="utf-8")
