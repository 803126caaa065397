"""Stored costs of source lines on the page Transactions."""

from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.counting import launch_counts as counting
from kernelwatch.counting import source_lines
from kernelwatch.instrument import fingerprint
from kernelwatch.show.site import annotated_sources
from kernelwatch.store import folders, record
from kernelwatch.store.models import CostsLine
from kernelwatch.suite import registry
from kernelwatch.toolchain import nvcc_call
from tests.stored import write_lines


def test_uncounted_kernels_are_marked_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other kernels have the share of each line."""
    monkeypatch.setattr(nvcc_call, "compile_with_nvcc", pytest.fail)
    monkeypatch.setattr(counting, "count_launch", pytest.fail)
    for results in (ROOT / "results", tmp_path):
        shown = {source["kernel"]: source for source in annotated_sources.list_sources(results)}
        assert set(shown) == set(registry.current_suite().kernels())
        for source in shown.values():
            share, problem = (1.0, None) if source["lines"] else (0.0, annotated_sources.NOT_COUNTED)
            assert sum(line["share"] for line in source["lines"]) == pytest.approx(share)
            assert source["problem"] == problem
    assert not any(source["lines"] for source in shown.values())


def test_stored_lines_equal_a_new_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only entries of the current counter are not counted again."""
    counted, lines = list(source_lines.iter_missing(tmp_path)), source_lines.read_lines(ROOT / "results").items()
    # Counters before 2026-11-26 added the remark. Those before 2026-11-30 wrote "a request".
    stored_texts = {
        key: line.text.replace("; requests may be split", "").replace(" a request, ", " per request, ")
        for key, line in lines
    }
    stored_costs = {key: line.accesses for key, line in lines if line.accesses}
    counted_texts = {line["key"]: line["text"] for line in counted}
    counted_costs = {line["key"]: msgspec.convert(line, CostsLine).accesses for line in counted}
    facts: Any = ((stored_texts, counted_texts), (stored_costs, counted_costs))
    for stored, now in facts:
        keys = stored.keys() & now.keys()
        assert 2 * len(keys) > len(now), "most lines are not stored"
        assert {key: stored[key] for key in keys} == {key: now[key] for key in keys}
    write_lines(tmp_path / record.LINES_FILE, *counted[1:])
    assert list(source_lines.iter_missing(tmp_path)) == counted[:1]
    monkeypatch.setattr(fingerprint, "_COUNTING_VERSION", "another")
    assert [line["key"] for line in islice(source_lines.iter_missing(tmp_path), 2)] == [*counted_texts][:2]


#: Case -> counters and texts of a key by machine, the text that is read is "right". The current counter is "new".
READ = {
    "an older one of a later machine": {"a": [("new", "right")], "b": [("old", "wrong")]},
    "an older one behind it": {"a": [("new", "right"), ("old", "wrong")]},
    "a later one that says otherwise": {"a": [("new", "right"), ("new", "wrong")], "b": [("new", "wrong")]},
    "none of today": {"a": [("old", "wrong"), ("older", "right"), ("older", "wrong")]},
}


@pytest.mark.parametrize("name", READ)
def test_lines_of_the_current_counter_are_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first text of the current counter is, else the first text of the last other counter."""
    monkeypatch.setattr(fingerprint, "format_counter_version", lambda: "new")
    access = {"file": 0, "line": 1, "unit": "sectors", "amount": 1}  # the newest counter has no accesses here
    for machine, entries in READ[name].items():
        lines = [
            {"key": "k", "counter": counter, "launch": "l", "text": text, "accesses": [access] * (counter != "new")}
            for counter, text in entries
        ]
        (tmp_path / machine).mkdir()
        folders.append_lines(tmp_path / machine / record.LINES_FILE, *lines)
    assert source_lines.read_lines(tmp_path)["k"].text == "right"
