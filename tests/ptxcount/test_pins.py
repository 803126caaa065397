"""Differences between pinned counts and today's, against a slow comparison by text; thresholds."""

import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ptxcount.counting.counters import Access, LaunchCounters
from ptxcount.gate import limits, pins
from ptxcount.gate.counting import LaunchCounts
from ptxcount.gate.diagnostics import FALL, NOT_COUNTED, RISE
from ptxcount.gate.formats import format_markdown
from ptxcount.gate.launches import Launch
from ptxcount.util.errors import Source

#: Pairs of a space and a kind of access.
KINDS = [
    ("global", "load"), ("global", "store"), ("shared", "load"), ("cluster", "load"), ("local", "store"),
    ("texture", "load"), ("surface", "store"), ("bulk", "load"),
]  # fmt: skip


def _row(line: int, text: str, *accesses: dict[str, Any]) -> dict[str, Any]:
    return {"file": "k.cu", "line": line, "text": text, "accesses": list(accesses)}


def _access(space: str, kind: str, requests: int, amount: int) -> dict[str, Any]:
    counts = {"requests": requests, "sectors": amount, "wavefronts": amount}
    return {"space": space, "kind": kind, "width": 4, "ptx_line": 7, **counts}


def _make_rows(lines: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    return [_row(n, text, _access("global", "load", 1, count)) for n, (text, count) in enumerate(lines, 1)]


def _stack(number: int) -> dict[str, Any]:
    return {"space": "stack", "kind": "frame", "width": 0, "ptx_line": 0, "bytes": number}


def _make_counts(rows: list[dict[str, Any]]) -> LaunchCounts:
    launch = Launch(folder=Path(), file="k.cu", grid=[1], block=[1], name="k", label="k")
    description = "k.cu: k <<<1, 1>>> ()"
    return LaunchCounts(launch, description, totals={}, lines=rows, warnings=[], files=[], declared_at=("k.cu", 1))


@pytest.mark.parametrize("seed", range(40))
def test_changes_add_up_to_the_totals(seed: int) -> None:
    draw = random.Random(seed)

    def rows() -> list[dict[str, Any]]:
        built = []
        for line in range(1, draw.randrange(2, 7)):
            accesses = [_access(*draw.choice(KINDS), draw.randrange(1, 3), draw.randrange(1, 4)) for _ in range(2)]
            built.append(_row(line, f"text {draw.randrange(4)}", *accesses))
        return built

    def totals(rows: list[dict[str, Any]]) -> Counter[str]:
        sums: Counter[str] = Counter()
        for access in (access for row in rows for access in row["accesses"]):
            amount = "wavefronts" if access["space"] == "shared" else "sectors"
            for name in ("requests", amount):
                sums[f"{access['space']} {access['kind']} {name}"] += access[name]
        return sums

    pinned, now = rows(), rows()
    changes = [*pins.iter_changes(now, pins.pin_lines(pinned)[0])]
    differences: Counter[str] = Counter()
    for change in changes:
        assert change.now != change.before
        assert (change.line, change.file) in [(row["line"], "k.cu") for row in now]
        differences[change.name] += change.now - change.before
    expected = totals(now)
    expected.subtract(totals(pinned))
    assert {n: c for n, c in differences.items() if c} == {n: c for n, c in expected.items() if c}
    assert not [*pins.iter_changes(pinned, pins.pin_lines(pinned)[0])]


#: Rows before and now, and code, line and end of the finding; None without a finding.
CHANGES = [
    ([("a", 8), ("b", 4)], [("b", 4), ("a", 8)], None),  # moved
    ([("a", 8), ("b", 4)], [("c", 8), ("b", 4)], None),  # another text with equal counts
    ([("a", 8), ("b", 4)], [("c", 4), ("d", 9)], (RISE, 2, "from 8 to 9 in edited lines (8 to 9 per request)")),
    ([("a", 8)], [("c", 2), ("d", 7)], (RISE, 2, "from 8 to 9 in edited lines (8 to 4.5 per request)")),  # 9 / 2
    ([("a", 8), ("a", 8)], [("a", 8), ("a", 9)], (RISE, 2, "from 8 to 9 (8 to 9 per request)")),
]


@pytest.mark.parametrize(("pinned", "now", "expected"), CHANGES)
def test_rise_is_found_among_moved_and_edited_lines(
    pinned: list[tuple[str, int]], now: list[tuple[str, int]], expected: tuple[str, int, str] | None, tmp_path: Path
) -> None:
    pinned_rows, rows = _make_rows(pinned), _make_rows(now)
    pins.write_lock(tmp_path, [_make_counts(pinned_rows)], "13.0.88")
    lock = pins.read_lock(tmp_path)
    assert lock is not None
    findings = [
        (finding.code, finding.line, finding.message.partition(" sectors ")[2].partition(" ")[2])
        for finding in pins.compare_launch(_make_counts(rows), lock)
        if "sectors" in finding.message
    ]
    assert findings == ([expected] if expected else [])
    if expected:  # a change in edited lines has their numbers
        texts, counts = zip(*pinned, strict=True)
        new_lines = {n for n, (text, count) in enumerate(now, 1) if text not in texts and count not in counts}
        changes = pins.iter_changes(rows, pins.pin_lines(pinned_rows)[0])
        assert all({place[1] for place in change.places} in (set(), new_lines) for change in changes)


def test_largest_increase_comes_first() -> None:
    """Shares have two digits: 10 of 6722 are 0.15 %."""
    pinned, rows = (_make_rows(zip("abc", counts, strict=True)) for counts in ((6722, 8, 8), (6732, 4, 80)))
    text = format_markdown([_make_counts(rows)] * 2, [], pins.Lock("", {"k": pins.pin_lines(pinned)[0]}), "")
    assert text.startswith("### Memory transactions: 2 lines rose, 1 fell\n")
    changes = [("80", "+900"), ("80", "+900"), ("6732", "+0.15"), ("6732", "+0.15"), ("4", "-50"), ("4", "-50")]
    assert re.findall(r"from \d+ to (\d+) .*\((\S+) %\)", text) == changes


#: Bytes of stack frames in the lock file and now, and codes of findings; empty without ptxas.
FRAMES = [((0,), (1,), [RISE]), ((8,), (0,), [FALL]), ((), (32,), []), ((0,), (), [NOT_COUNTED])]


@pytest.mark.parametrize(("pinned", "now", "codes"), FRAMES)
def test_frame_is_compared_if_pinned(pinned: tuple[int, ...], now: tuple[int, ...], codes: list[str]) -> None:
    def make_rows(frame: tuple[int, ...]) -> list[dict[str, Any]]:
        return [_row(1, "a", _access("global", "load", 1, 4)), *(_row(2, "void k()", _stack(n)) for n in frame)]

    lock = pins.Lock("13.0.88", {"k": pins.pin_lines(make_rows(pinned))[0]})
    assert [finding.code for finding in pins.compare_launch(_make_counts(make_rows(now)), lock)] == codes


def _make_load(requests: int, sectors: int, ideal: int) -> dict[str, Any]:
    return {**_access("global", "load", requests, sectors), "ideal_sectors": ideal}


def test_limits_may_name_all_counts() -> None:
    """Totals lack some counts if the launch has no such accesses."""
    spaces = ("global", "shared", "cluster", "local", "texture", "surface", "bulk", "constant")
    accesses = [Access(Source(1), space, kind, 4) for space in spaces for kind in ("load", "store", "atomic")]
    limited = Launch(
        folder=Path(), file="k.cu", grid=[1], block=[1], limits=dict.fromkeys(LaunchCounters(0, accesses).totals(), 0)
    )
    counts = _make_counts([])._replace(launch=limited, totals=LaunchCounters(0).totals())
    assert not [*limits.check_launch(counts)]


@pytest.mark.parametrize(("limit", "line"), [(99, 2), ("1 x ideal", 3)])
def test_broken_limit_names_the_worst_line(limit: float | str, line: int) -> None:
    """Line 2 has the most sectors, and line 3 the most above its ideal."""
    rows = [_row(1, "a", _make_load(9, 9, 1)), _row(2, "b", _make_load(9, 90, 80)), _row(3, "c", _make_load(9, 60, 10))]
    counted = _make_counts(rows)._replace(
        launch=Launch(folder=Path(), file="k.cu", grid=[1], block=[1], limits={"load_sectors": limit}),
        totals={"load_requests": 27, "load_sectors": 159, "load_ideal_sectors": 91},
    )
    (finding,) = limits.check_launch(counted)
    assert finding.line == line
