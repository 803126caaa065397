"""Data of the charts: scripts with the stored values."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.show.site import configurations, data
from kernelwatch.show.site.measured import load_commits
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.show.site.packed import pack_numbers, read_number
from kernelwatch.show.site.site_folder import SiteFolder
from kernelwatch.store.results import History
from kernelwatch.suite import registry
from tests.stored import BASE, COUNT, Suite, write


def read_script(path: Path) -> Any:
    """Return the data of a script. Assert that the data are strict JSON, without NaN."""
    match = re.fullmatch(r"arrived\('((?:[^'\\\n\r]|\\['\\])*)'\);\n", path.read_text(encoding="utf-8"))
    assert match is not None, path
    return json.loads(re.sub(r"\\(.)", r"\1", match[1]), parse_constant=pytest.fail)


def test_values_of_the_last_python_are_shown(tmp_path: Path) -> None:
    """Names are compared as text, so that 3.9 is the last. Failed and missing values are empty."""
    nothing = float("nan")
    for version, cases in {"3.9": (1.0, 2.0, None), "3.11": (3.0, 4.0, None), "3.10": (5.0, nothing, None)}.items():
        stored: Suite = {BASE: {COUNT: dict(zip(("one", "two", "three", "four"), (*cases, nothing), strict=True))}}
        root = write(tmp_path, stored, environment=f"python{version}")
    history = History("gpu", root)
    described = {COUNT: {"id": 0, **configurations.describe_benchmark(history, COUNT)}}
    machines = {"gpu": ShownMachine(history, load_commits(history, [COUNT], root, root))}
    commits = tmp_path / "site" / "data" / "commits"
    data.write_data(SiteFolder(tmp_path / "site"), described, machines)
    assert not commits.exists()  # the suite lacks the benchmark
    described[COUNT]["shared"]["kind"] = "counted"
    data.write_data(SiteFolder(tmp_path / "site"), described, machines)
    piece = read_script(tmp_path / "site" / "data" / "values" / "0" / "0.js")
    assert (piece["values"], piece["failed"]) == (["1,2,,"], [{"2": "failed"}]), "only number 2, `three`, failed"
    noise = read_script(tmp_path / "site" / "data" / "index.js")["machines"]["gpu"]["noise"]
    assert noise == [[2e-5, 0.01], [0, 0.05]], "the threshold is 1 % for launches from 20 µs on, else 5 %"
    assert read_script(commits / "0" / "0-counted.js") == {"0": "1,2,,"}


@pytest.mark.parametrize(
    ("value", "is_time", "text"),
    [
        (3.815431e-6, True, "3.81543"), (1.234567, True, "1234570"), (2.0, True, "2000000"), (1e-13, True, "0.0000001"),
        (64.0, False, "64"), (1.2173181818181817, False, "1.2173181818181817"), (0.0, False, "0"), (0.0, True, "0"),
        (1e22, False, "1e+22"), (None, True, ""),
    ],
)  # fmt: skip
def test_packed_number_is_read_as_written(value: float | None, is_time: bool, text: str) -> None:
    """Times are in microseconds with six digits; other numbers have all digits."""
    packed_text = pack_numbers([None, value], is_time=is_time, digits=6 if is_time else None)
    assert packed_text == f",{text}"
    read = read_number(packed_text, 1, is_time=is_time)
    assert read == (value if value is None or not is_time else float(f"{value:.6g}"))


def test_benchmarks_are_in_order_of_the_suite() -> None:
    """Benchmarks that the suite lacks come last."""
    benchmarks = list(registry.current_suite().benchmarks)
    numbered = data.number_benchmarks(["a.A.time_a", *reversed(benchmarks), "z.Z.time_z"])
    assert list(numbered) == [*benchmarks, "a.A.time_a", "z.Z.time_z"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *((value, value) for value in ({"__proto__": "</script>"}, "\u2028\\u2028", [1.5, None, '\\""'])),
        *(([1.5, value], [1.5, None]) for value in (math.nan, math.inf, -math.inf)),
    ],
)
def test_script_may_have_any_json(written: Any, read: Any, tmp_path: Path) -> None:
    """NaN and infinities become null; all else stays."""
    (tmp_path / "piece.js").write_text(data.format_script(written), encoding="utf-8")
    assert read_script(tmp_path / "piece.js") == read
