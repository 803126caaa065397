"""Cases of the experiments on conditions and paths: each kernel is there, and each name is used once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments import conditions, path_device
from experiments.condition_cases import CONDITIONS
from experiments.path_cases import METRICS, list_paths


@pytest.mark.parametrize(("source", "cases"), [(conditions.SOURCE, CONDITIONS), (path_device.SOURCE, list_paths())])
def test_cases(source: Path, cases: Sequence[Any]) -> None:
    """A launch that names no kernel of the source, or a name that stands twice, would be lost on a device."""
    text = source.read_text(encoding="utf-8")
    kernels = set(re.findall(r"^(?:KERNEL|[A-Z_]+)\((\w+)", text, re.MULTILINE))
    assert {case.kernel for case in cases if case.kernel} <= kernels
    names = [(case.group, case.name) for case in cases]
    assert sorted(set(names)) == sorted(names)
    assert all(case.group in METRICS for case in cases if source == path_device.SOURCE)


def test_groups_of_conditions() -> None:
    """A guess is an outcome that a device can have."""
    outcomes = {"runs", "encoding: invalid value", "misaligned address", "illegal instruction", "launch failed",
                "illegal address"}  # fmt: skip
    assert {condition.expectation for condition in CONDITIONS} == outcomes
