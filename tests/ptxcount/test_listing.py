"""Tables and listings of counters, in full."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ptxcount import format_counters
from ptxcount.counting.counters import LOCAL_CAVEATS, Access, LaunchCounters
from ptxcount.report import listing
from ptxcount.report.costs import format_costs
from ptxcount.report.totals_table import format_table
from ptxcount.util.errors import Source
from ptxcount.util.findings import Finding

#: Name of a file, its number of lines, and the name of a missing file.
FILE, LINES, OTHER = "folder/kernel.cu", 20, "gone.cuh"


def _access(line: int, space: str, kind: str, file: str = FILE, **counted: Any) -> Access:
    useful = counted.get("useful_bytes", 0)
    if useful:  # lanes with different addresses
        counted |= {"ideal_sectors": -(-useful // 32), "ideal_lines": max(counted["requests"], -(-useful // 128))}
    return Access(Source(100 + line, file, line), space, kind, 4, **counted)


LAUNCH = LaunchCounters(
    threads=64,
    accesses=[
        _access(1, "global", "load", requests=2, sectors=64, lines=64, useful_bytes=256),
        _access(8, "shared", "load", requests=2, wavefronts=4, conflict_free=2),
        _access(8, "shared", "store", requests=2, wavefronts=2, conflict_free=2),
        _access(12, "local", "store", requests=2, sectors=12),
        _access(20, "global", "store", requests=1, sectors=4, lines=1, useful_bytes=128),
        _access(20, "global", "store", requests=1, sectors=4, lines=1, useful_bytes=128),
        _access(5, "global", "atomic", OTHER, requests=2, sectors=2, lines=2, useful_bytes=8, together=5),
        _access(6, "shared", "atomic", OTHER, requests=1, wavefronts=2, conflict_free=2, together=1, loops=1),
    ],
    thread_instructions=160,
    warp_instructions=5,
)
LISTING = """\
kernel.cu:
>>    1  text 1
>>       ^ load: 32.00 sectors per request, ideal 4.00; 32.00 cache lines, ideal 1.00
      2  text 2
      3  text 3
        ...
      6  text 6
      7  text 7
>>    8  text 8
>>       ^ shared load: 2.00 wavefronts per request, 1.00 without bank conflicts
         ^ shared store: 1.00 wavefronts per request, 1.00 without bank conflicts
      9  text 9
     10  text 10
     11  text 11
     12  text 12
         ^ store: local memory, 6.00 sectors per request
     13  text 13
     14  text 14
        ...
     18  text 18
     19  text 19
     20  text 20
         ^ store: 4.00 sectors per request, ideal 4.00; 1.00 cache lines, ideal 1.00 (2 instructions)
gone.cuh:
>>    5
>>       ^ atomic: 1.00 sectors per request, ideal 0.50; 1.00 cache lines, ideal 1.00; 2.50 lanes on one address
      6
         ^ shared atomic: 2.00 wavefronts per request, 2.00 without bank conflicts; 1.00 lanes on one address; \
retries between warps are not counted"""


def test_listing_has_two_lines_of_context() -> None:
    def lines_of(name: str) -> list[str] | None:
        return [f"text {number}" for number in range(1, LINES + 1)] if name == FILE else None

    assert listing.format_listing(LAUNCH, lines_of) == LISTING


def test_instructions_of_a_line_share_a_row() -> None:
    """Wasteful loads have a row of their own. The other three have 4 + 8 + 13 sectors in 6 requests."""
    loads = []
    for n in (1, 2, 3):
        counted = {"requests": n, "sectors": 4 * n + n // 3, "lines": n, "useful_bytes": 128 * n}
        loads.append(_access(1, "global", "load", FILE, **counted))
    stray = _access(1, "global", "load", requests=2, sectors=64, lines=64, useful_bytes=256)
    bulk = [_access(1, "bulk", "load", requests=1, sectors=9, shifted_sectors=[9, 8]) for _ in range(2)]
    bulk.append(_access(1, "bulk", "load", requests=1, sectors=10))  # by a tensor map: no advice
    text = listing.format_listing(LaunchCounters(32, [*loads[:2], stray, loads[2], *bulk]), lambda name: None)
    assert [row for row in text.splitlines() if "^" in row] == [
        "         ^ load: 4.17 sectors per request, ideal 4.00; 1.00 cache lines, ideal 1.00 (3 instructions)",
        ">>       ^ load: 32.00 sectors per request, ideal 4.00; 32.00 cache lines, ideal 1.00",
        "         ^ bulk load: 9.33 sectors per request; 8.67 instead of 9.33 if the shared buffer is moved by 16 bytes"
        " (3 instructions)",
    ]


def test_rows_sum_to_the_headlines() -> None:
    copies = [_access(9, "shared", "copy", requests=2, wavefronts=8, conflict_free=6)]
    launch = replace(LAUNCH, accesses=[*LAUNCH.accesses, *copies])
    sums: Counter[str] = Counter()
    for part in format_table(launch).split("\n\n")[:-1]:
        (_, _, unit, *_), *rows = map(str.split, part.splitlines())
        sums[unit] += sum(int(row[2]) for row in rows)
    headlines = re.findall(r"(?m)^(\d+) (\w+)$", format_costs(launch, [], lambda name: None))
    assert headlines == [(str(sums[unit]), unit) for unit in ("sectors", "wavefronts")]


def test_merged_accesses_have_a_row_if_they_differ() -> None:
    merged = replace(LAUNCH, merged={"load": (2, 4), "store": (1, 2)})  # requests and wavefronts; loads as without
    rows = format_table(merged).splitlines()
    assert [row.split()[:3] for row in rows if "as ptxas would merge" in row] == [["store", "1", "2"]]


def test_json_has_totals_and_caveats() -> None:
    without_atomics = replace(LAUNCH, accesses=LAUNCH.accesses[:4])
    caveats = {"local store": LOCAL_CAVEATS[None]}
    printed = json.loads(listing.format_json(without_atomics))
    assert [(line["line"], len(line["accesses"])) for line in printed.pop("lines")] == [(1, 1), (8, 2), (12, 1)]
    assert printed == {**without_atomics.totals(), "caveats": caveats, "findings": []}
    printed = json.loads(listing.format_json(LAUNCH))
    assert printed.pop("lines")[-1]["file"] == OTHER
    caveats["shared atomic"] = "retries between warps are not counted"
    assert printed == {**LAUNCH.totals(), "caveats": caveats, "findings": []}


@pytest.mark.parametrize(("lanes", "aggregated", "note"), [
    (96, 3, "  (warp-aggregated by ptxas)"), (3, 3, ""), (96, 0, "  (lanes on one address are serialized)"),
    (96, 1, "  (lanes on one address are serialized, except in 1 warp-aggregated requests)"),
])  # fmt: skip
def test_aggregation_of_several_lanes_is_printed(lanes: int, aggregated: int, note: str) -> None:
    """There are three requests."""
    access = Access(Source(1), "global", "atomic", 4, requests=3, sectors=3, together=lanes, aggregated=aggregated)
    row = next(row for row in format_table(LaunchCounters(96, [access])).splitlines() if row.startswith("  atomic"))
    assert row.endswith(f"0.00{note}")
    is_described = f"warp-aggregated by ptxas: {aggregated} request" in listing.describe_cost(access)
    assert is_described == (lanes == 96 and aggregated > 0)


@pytest.mark.parametrize(("fetched", "printed"), [(33026, 33026), (None, 33025)])  # unknown: the distinct sectors
def test_minimum_traffic_is_printed(fetched: int | None, printed: int) -> None:
    counters = LaunchCounters(32, distinct_sectors=(33025, 32768), fetched_sectors=fetched)
    rows = format_table(counters).splitlines()
    assert "distinct sectors: 33025 read, 32768 written" in rows
    (minimum,) = [row for row in rows if "minimum" in row]
    assert minimum.partition(" (")[0].endswith(f"cold caches: {printed} sectors read, 32768 written")


def test_launch_without_threads_has_dashes() -> None:
    rows = [line.split() for line in format_table(LaunchCounters(threads=0)).splitlines()]
    assert rows[1:3] == [["load", "0", "0", "-", "-"], ["store", "0", "0", "-", "-"]]
    assert rows[-1] == ["0", "threads,", "0.0", "PTX", "instructions", "each"]
    assert listing.format_listing(LaunchCounters(threads=0), lambda name: None) == ""


@pytest.mark.parametrize("name", ["gone.cu", "folder", "circle", "x" * 300, "a\0b"])
def test_unreadable_files_are_not_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    shown = [Path(file) for file in ("gone.cu", "folder")]
    assert listing.read_source_lines(shown)(name) is None


@pytest.mark.parametrize(("sources", "shown"), [
    (["."], ["a.py"]), ([".", "../b"], ["a.py", "b.py"]), (["../b/b.txt"], ["b.txt"]), ([], []),
])  # fmt: skip
def test_only_named_sources_are_shown(
    sources: list[str], shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PTX may name any file. A folder stands for the sources in it, by their suffixes; a file for itself."""
    accesses = []
    for name in ("a/a.py", "a/.env", "b/b.py", "b/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"content of {name[2:]}\n")
        accesses.append(Access(Source(1, str(tmp_path / name), 1), "global", "load", 4, requests=1, sectors=4, lines=1))
    monkeypatch.chdir(tmp_path / "a")
    text = format_counters(LaunchCounters(32, accesses), sources)
    assert [line.rpartition(" ")[2] for line in text.splitlines() if "content of" in line] == shown


def test_findings_end_the_text() -> None:
    findings = [Finding(code, Source(line), "text") for line, code in ((1, "heap"), (2, "printf"))]
    text = format_counters(LaunchCounters(32, findings=findings), [])
    assert text.endswith(f"\n\n{findings[0]}\n{findings[1]}")
