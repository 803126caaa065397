"""Conditions of bulk copies and tensor maps: recorded outcomes, on this device and in ptxcount."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import zip_longest

import pytest

from experiments import condition_launches, conditions, cubins
from experiments.condition_cases import CONDITIONS, RUNS, Condition
from tests.ptxcount.test_tensor_maps import RECORD, find_differences

pytestmark = pytest.mark.gpu

#: Numbers of encodings, which share a process, and of launches, each in a process of its own.
ENCODINGS, LAUNCHES = 12, 42


def choose_conditions(count: int, *, launches: bool) -> list[Condition]:
    """Return up to `count` conditions with or without a launch, spread evenly over and within the groups."""
    groups: dict[str, list[Condition]] = {}
    for condition in CONDITIONS:
        if bool(condition.kernel) == launches:
            groups.setdefault(condition.group, []).append(condition)
    share = -(-count // len(groups))
    spread = [members[:: max(1, len(members) // share)][:share] for members in groups.values()]
    return [condition for turn in zip_longest(*spread) for condition in turn if condition][:count]


def test_device_gives_recorded_outcomes(report_share: Callable[[str, int, int], None]) -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))["outcomes"]
    cubin = cubins.compile_cubin(condition_launches.SOURCE, condition_launches.ARCH)
    encodings, launches = (choose_conditions(n, launches=n == LAUNCHES) for n in (ENCODINGS, LAUNCHES))
    wrong = []
    for batch in [encodings, *([condition] for condition in launches)]:
        for condition, (outcome, arrays) in zip(batch, conditions.iter_outcomes(batch, cubin), strict=True):
            digest = condition_launches.digest_arrays(arrays) if outcome == RUNS else ""
            recorded = record[condition.group][condition.name]
            if [outcome, digest] != recorded:
                wrong.append(f"{condition.name}: {outcome} {digest}, recorded {recorded}")
    count = len(encodings) + len(launches)
    report_share("conditions of copies and maps as recorded", count - len(wrong), count)
    assert not wrong, "\n".join(wrong)


def test_ptxcount_gives_recorded_outcomes(report_share: Callable[[str, int, int], None]) -> None:
    """Ptxcount gives the recorded outcome of every condition. Tests without a GPU try only some conditions."""
    wrong = find_differences(CONDITIONS)
    report_share("conditions of copies and maps by ptxcount", len(CONDITIONS) - len(wrong), len(CONDITIONS))
    assert not wrong, "\n".join(wrong)
