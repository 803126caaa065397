"""The plans of a commit: what is reused, what is measured all the same, and what that decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelwatch.asv import counted, timed
from kernelwatch.asv.agent import Agent
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans import times
from kernelwatch.asv.plans.plan import Check, Configuration, Entry, Plan, Stored
from kernelwatch.asv.sweep import Sweep
from kernelwatch.errors import UnknownDtypeError
from kernelwatch.instrument import device, exchange, skips
from kernelwatch.instrument.job import Job, Outcome, Ready
from kernelwatch.instrument.verification import WrongOutputError

FLAGS = ("-Xptxas -O3", "-Xptxas -O0")

#: The device of the measuring process that stands in for one.
READY = Ready(arch="sm_90", multiprocessors=132, conditions="a GPU")


def _decided(known: Stored, measure: Callable[[Sequence[Check]], Sequence[float | None]], count: int = 120) -> Plan:
    """A class of some configurations, the last of which has no fingerprint."""
    ones = [Configuration(str(place), f"f{place}") for place in range(count - 1)]
    plan = Plan({"time_a.A": [*ones, Configuration("last")]})
    plans.decide(plan, known, measure, lambda _, values: {name: [value] for name, value in values.items()})
    return plan


def _ones(plan: Plan) -> list[Configuration]:
    return [one for ones in plan.configurations.values() for one in ones]


def _differing(plan: Plan) -> int:
    return sum(each.differs for each in plan.checked)


def _known(*places: int) -> Stored:
    return Stored({plans.key("time_a.A", f"f{place}"): Entry(f"c{place}", {"b": place}) for place in places})


@pytest.mark.parametrize(("known", "checks"), [(range(119), 3), (range(50), 1), (range(3), 1), (range(1), 1), ((), 0)])
def test_share(known: Sequence[int], checks: int) -> None:
    """A share of what is stored is measured, one at least; the rest is reused, and nothing that is not stored."""
    plan = _decided(_known(*known), lambda checks: [1.0] * len(checks))
    reused = {one.params: one for one in _ones(plan) if one.reused}
    checked = [each.configuration.partition("(")[2].rstrip(")") for each in plan.checked]
    assert (len(checked), _differing(plan)) == (checks, 0)
    assert {*reused, *checked} == {str(place) for place in known}
    assert all((one.reused, one.answers) == (f"c{name}", {"b": [int(name)]}) for name, one in reused.items())


def test_choice() -> None:
    """If one differs, nothing is reused."""
    plan = _decided(_known(*range(119)), lambda checks: [1.0 + place for place, _ in enumerate(checks)])
    assert (len(plan.checked), _differing(plan)) == (3, 2)
    assert not any(one.reused or one.answers for one in _ones(plan))


@pytest.mark.parametrize("count", [1, 7, 50, 80, 525])
def test_each_is_measured_again(count: int) -> None:
    """Within fifty runs each one is, and none a second time before the others; neighbours are measured together."""
    run_of = dict.fromkeys(range(count), 0)
    runs = math.ceil(count / math.ceil(plans.SHARE * count))
    assert runs <= 50
    for run in range(1, runs + 1):
        assert 0 in run_of.values()
        chosen = plans.chosen([Check("A", place, Entry("c", {}, run=found)) for place, found in run_of.items()])
        places = [check.place for check in chosen]
        assert run == runs or places == list(range(places[0], places[0] + len(places)))
        run_of |= dict.fromkeys(places, run)
    assert 0 not in run_of.values()


class Small(timed.Timed):
    """Two flag sets of one transpose."""

    sweep = Sweep(
        "Small", "Small", {"rows": [64], "columns": [32], "flags": list(FLAGS)}, kernel="transpose_read_coalesced"
    )
    params = [list(values) for values in sweep.axes.values()]
    param_names, points = list(sweep.axes), list(sweep.points())


NAME = "time_small.Small.time_back_to_back"


@pytest.fixture
def kept() -> dict[tuple[str, int], Outcome]:
    """What was measured to make the plan."""
    return {}


@pytest.fixture
def planned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kept: dict[tuple[str, int], Outcome]
) -> Callable[..., Plan]:
    """Makes the plan of the class's times where so much is stored and the device answers so."""

    def make(known: Stored | None = None, answer: Any = None, ready: Ready | None = READY) -> Plan:
        def ask(_: str, describe: Callable[[Ready], Job], *__: Any) -> Outcome:
            describe(READY)
            one = answer.pop(0) if isinstance(answer, list) else answer
            if isinstance(one, Exception):
                raise one
            return Outcome(samples=(one,), copies=(1.0,))

        monkeypatch.setattr(exchange, "ready", lambda _: ready)
        monkeypatch.setattr(exchange, "ask", ask)
        monkeypatch.setenv(exchange.ADDRESS, "socket")
        stored = tmp_path / "stored.json"
        stored.write_bytes(msgspec.json.encode(known or Stored()))
        monkeypatch.setenv(plans.STORED, str(stored))
        agent = Agent({NAME: Small})
        times.times(agent, "socket", tmp_path)
        kept.clear()
        kept.update(agent.kept)
        found = plans.read(tmp_path)
        assert found is not None
        return found

    return make


def _stored(plan: Plan, count: int = 20) -> Stored:
    """Both configurations, with so many samples and their ratios."""
    (ones,) = plan.configurations.values()
    values = {NAME: [2.0] * count, "track_control.Small.track_copy_ratio": [0.5] * count}
    return Stored({plans.key("time_small.Small", one.fingerprint): Entry("c0", values, 0.01) for one in ones})


def test_times(planned: Callable[..., Plan], kept: dict[tuple[str, int], Outcome]) -> None:
    """One of two is measured all the same, and kept for asv; the other has its samples, ten a process."""
    first = planned()
    ones = first.configurations["time_small.Small"]
    assert [one.params for one in ones] == [f"64, 32, {flags}" for flags in FLAGS]
    assert len({one.fingerprint for one in ones}) == 2
    assert [one.machine_code[1:] for one in ones] == [(f"transpose_read_coalesced float32 {f}", "sm_90") for f in FLAGS]
    plan = planned(_stored(first), 2.01)
    assert (len(plan.checked), _differing(plan)) == (1, 0)
    (reused,) = (one for one in _ones(plan) if one.reused)
    assert reused.answers[NAME] == [{"samples": [2.0] * 10, "number": 1}] * 2
    assert reused.answers["track_control.Small.track_copy_ratio"] == [{"samples": [0.5] * 20, "number": 1}]
    (measured,) = (place for place, one in enumerate(_ones(plan)) if not one.reused)
    assert {key: outcome.samples for key, outcome in kept.items()} == {(NAME, measured): (2.01,)}


@pytest.mark.parametrize(
    ("answer", "differing"),
    [
        (2.03, 1),
        (1.97, 1),
        (WrongOutputError("wrong"), 1),
        (exchange.MeasuringError("gone"), 1),
        ([2.03, 2.0], 0),
        ([2.0, 2.03], 0),
    ],
)
def test_times_that_differ(answer: Any, differing: int, planned: Callable[..., Plan]) -> None:
    """Twice a time beyond the threshold, or an output that is wrong: everything is measured."""
    plan = planned(_stored(planned(), 21), answer)
    assert _differing(plan) == differing
    reused = [one for one in _ones(plan) if one.reused]
    sizes = [[len(each["samples"]) for each in one.answers[NAME]] for one in reused]
    assert sizes == [[11, 10]] * (1 - differing), "as many processes as asv asks for"


def test_other_conditions(planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another GPU or instrument, another version of the benchmark, another reference: nothing stored is found."""
    known = _stored(planned())
    other = msgspec.structs.replace(READY, conditions="another GPU")
    with monkeypatch.context() as patch:
        patch.setattr(Small, "version", "99")
        assert not planned(known, 2.0).checked
    with monkeypatch.context() as patch:
        patch.setattr(times, "_expected", lambda _: "another reference")
        assert not planned(known, 2.0).checked
    assert not planned(known, 2.0, other).checked
    assert planned(known, 2.0).checked


@pytest.mark.parametrize("ready", [None, msgspec.structs.replace(READY, conditions="")])
def test_no_device(ready: Ready | None, planned: Callable[..., Plan]) -> None:
    """Without a device, or on one that nothing tells from others, nothing has a fingerprint."""
    assert not any(one.fingerprint for one in _ones(planned(ready=ready)))


@pytest.mark.parametrize("reason", ["there is no CUDA driver", None])
def test_without_device(reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every time is skipped with the reason, by its class and place; with a device after all, nothing is planned."""

    def require() -> None:
        if reason:
            raise NotImplementedError(reason)

    monkeypatch.setattr(device, "require", require)
    times.without_device({NAME: Small}, tmp_path)
    plan = plans.read(tmp_path)
    ones = [Configuration(plans.text(point), skipped=reason or "") for point in Small.points]
    assert (plan and plan.configurations) == ({"time_small.Small": ones} if reason else None)


def test_what_a_commit_lacks(planned: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started for it."""
    lacking = Sweep("Small", "Small", {"rows": [64], "columns": [32], "flags": [*FLAGS, "-O9"]}, kernel="no")
    monkeypatch.setattr(Small, "sweep", lacking)
    monkeypatch.setattr(Small, "points", list(lacking.points()))
    assert all("this commit lacks it: kernel 'no' is not known" in one.skipped for one in _ones(planned()))


COPIES = {
    "track_counted.OffsetCopy": Sweep(
        "OffsetCopy", "Copy", {"offset": [0, 1], "flags": list(FLAGS)}, kernel="offset_copy", fixed={"size": 4096},
        shared=False,
    )
}  # fmt: skip


def _counted(known: Stored, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "1") -> tuple[Plan, int]:
    """The plan, and how many launches were executed."""
    stored = folder / "stored.json"
    stored.write_bytes(msgspec.json.encode(known))
    monkeypatch.setenv(plans.STORED, str(stored))
    executed = counted.counts(COPIES, version, folder)
    found = plans.read(folder)
    assert found is not None
    return found, len(executed)


def test_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First all are executed; then one of four; all, if that has another number than is stored, or another version."""
    first, executed = _counted(Stored(), tmp_path, monkeypatch)
    assert executed == 4
    ones = first.configurations["track_counted.OffsetCopy"]
    assert [one.answers["track_counted.OffsetCopy.track_load_sectors"] for one in ones] == [[4.0], [4.0], [5.0], [5.0]]
    entries = {
        plans.key("track_counted.OffsetCopy", one.fingerprint): Entry(
            "c0", {name: value for name, (value,) in one.answers.items()}
        )
        for one in ones
    }
    second, executed = _counted(Stored(entries), tmp_path, monkeypatch)
    assert (executed, len(second.checked), [one.reused for one in _ones(second)].count("c0")) == (1, 1, 3)
    assert [one.answers for one in _ones(second)] == [one.answers for one in ones]
    own, executed = _counted(Stored(entries, "c0"), tmp_path, monkeypatch)
    assert (executed, [one.reused for one in _ones(own)]) == (1, [""] * 4), "its own numbers are not another commit's"
    assert [one.answers for one in _ones(own)] == [one.answers for one in ones]
    assert _counted(Stored(entries), tmp_path, monkeypatch, "2")[1] == 4
    for entry in entries.values():
        entry.values["track_counted.OffsetCopy.track_load_sectors"] += 1
    third, executed = _counted(Stored(entries), tmp_path, monkeypatch)
    assert (executed, _differing(third)) == (4, 1)
    some, executed = _counted(Stored(selected={"track_counted.OffsetCopy": [1, 2]}), tmp_path, monkeypatch)
    assert (executed, [bool(one.answers) for one in _ones(some)]) == (2, [False, True, True, False])
    assert [one.answers for one in _ones(third)] == [one.answers for one in ones]


@pytest.mark.parametrize(
    ("kernel", "dtype", "reason"),
    [
        ("add_coalesced", "int8", f"{skips.NEVER}add_coalesced is not for int8, only for float32, float64"),
        ("add_coalesced", "float32", "this commit lacks it: why"),
        ("no_such_kernel", "int8", "this commit lacks it: why"),
        ("", "", "this commit lacks it: why"),
    ],
)
def test_why_a_name_is_unknown(kernel: str, dtype: str, reason: str) -> None:
    """A dtype that the checkout's own kernel is not for is nothing that a commit lacks."""
    with pytest.raises(NotImplementedError, match=f"^{reason}$"), skips.of_unknown_names(kernel, dtype):
        raise UnknownDtypeError("why")
