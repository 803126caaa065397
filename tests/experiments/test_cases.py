"""Cases of the experiments on conditions and paths, without a GPU."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments import condition_launches, conditions, path_device
from experiments.condition_cases import CONDITIONS
from experiments.path_cases import METRICS, list_paths


@pytest.mark.parametrize(
    ("source", "cases", "others"),
    [(condition_launches.SOURCE, CONDITIONS, ()), (path_device.SOURCE, list_paths(), path_device.CHAIN_KERNELS)],
)
def test_cases_launch_kernels_of_their_source(source: Path, cases: Sequence[Any], others: Sequence[str]) -> None:
    text = source.read_text(encoding="utf-8")
    kernels = set(re.findall(r"^[A-Z_]+\((\w+)", text, re.MULTILINE))
    assert {case.kernel for case in cases if case.kernel} | {*others} == kernels
    names = [(case.group, case.name) for case in cases]
    assert sorted(set(names)) == sorted(names)
    assert all(case.group in METRICS for case in cases if source == path_device.SOURCE), "a group lacks metrics"


def test_expectations_are_outcomes_of_a_device() -> None:
    outcomes = {"runs", "encoding: invalid value", "misaligned address", "illegal instruction", "launch failed",
                "illegal address"}  # fmt: skip
    assert {condition.expectation for condition in CONDITIONS} == outcomes


def test_without_a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert conditions.main([str(tmp_path / "out")]) == 2
    assert "no GPU can be used: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
