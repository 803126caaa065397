"""What the process of a commit counts and compiles: what is wanted, and no more."""

from __future__ import annotations

import re
import types
from typing import Any

import pytest

import kernelwatch.benchmarks as kw
from kernelwatch.benchmarks import base
from kernelwatch.counting import transactions
from kernelwatch.errors import CompileError, UnknownKernelError
from kernelwatch.runner import measure_counts
from kernelwatch.runner.protocol import Configuration, Entry, Task
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import control_name, measurement_group

COPY = "track_counted.OffsetCopy"
SECTORS = f"{COPY}.track_load_sectors"

#: float32, at offsets 0 and 1, with all flag sets.
PLACES = list(range(48, 54))


def _task(stored: Any = None, version: str = "1", commit: str = "", **places: list[int]) -> Task:
    groups = {name.replace("__", "."): each for name, each in places.items()}
    return Task(groups, [], dict.fromkeys(groups, version), dict.fromkeys(groups, 1), stored or {}, commit)


def _told(task: Task) -> tuple[list[Configuration], list[Any]]:
    """What is said of each configuration, and all else."""
    said: list[Any] = []
    measure_counts.send_all(task, said.append)  # type: ignore[arg-type]
    ones = [each for each in said if isinstance(each, Configuration)]
    return ones, [each for each in said if not isinstance(each, Configuration)]


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The launches that are executed, here instead of in other processes."""
    found: list[str] = []

    def outcomes(launches: Any) -> Any:
        found.extend(map(str, launches))
        return transactions.outcomes(launches)

    def in_groups(_: Any, function: Any, launches: Any) -> Any:
        return (outcomes if function is transactions.outcomes else function)(list(launches))

    monkeypatch.setattr(measure_counts, "in_groups", in_groups)
    return found


def test_reuse(executed: list[str]) -> None:
    """All that is wanted is executed, and nothing else; then one of six; all if that differs, or by another version."""
    first, _ = _told(_task(track_counted__OffsetCopy=PLACES))
    assert len(executed) == 6
    assert [one.numbers[SECTORS] for one in first] == [4.0, 4.0, 4.0, 5.0, 5.0, 5.0]
    assert {one.params.rpartition(", ")[0] for one in first} == {"float32, 0", "float32, 1"}
    entries = {one.fingerprint: Entry("c0", dict(one.numbers)) for one in first}

    def again(version: str = "1", commit: str = "") -> tuple[int, int, list[bool], list[dict[str, Any]]]:
        executed.clear()
        ones, differences = _told(_task({COPY: entries}, version, commit, track_counted__OffsetCopy=PLACES))
        return len(executed), len(differences), sorted(bool(one.reused) for one in ones), [one.numbers for one in ones]

    numbers = [one.numbers for one in first]
    reused = len(entries) - 1  # configurations whose PTX is the same share a fingerprint
    assert again()[1] == 0
    assert 1 <= again()[0] <= 6 - reused
    assert again()[3] == numbers
    assert again(commit="c0")[2:] == ([False] * 6, numbers), "its own numbers are not another commit's"
    assert again("2")[0] == 6
    for entry in entries.values():
        entry.values[SECTORS] += 1
    assert again()[:2] == (6, 1)


def test_compiled() -> None:
    """What the compiler reported of what is wanted, its machine code, and what the suite or the compiler lacks."""
    sweep = registry.current().compiled
    group, points = f"track_compiled.{sweep.name}", list(sweep.points())
    wanted = {("offset_copy", "float32", "sm_90"): "", ("add_coalesced", "int8", "sm_90"): "is not for int8"}
    places = [
        place
        for place, each in enumerate(points)
        if (each["kernel"], each["dtype"], each["arch"]) in wanted and each["flags"] == "-Xptxas -O3"
    ]
    ones, others = _told(_task(track_compiled__Compiled=places))
    assert not others
    assert [one.place for one in ones] == places
    for one, why in zip(ones, wanted.values(), strict=True):
        assert why in one.skipped
        assert bool(one.skipped) == bool(why)
        assert set(one.numbers) == (set() if why else {f"{group}.track_{name}" for name in registry.RESOURCES})
        assert one.machine_code[1:3] == (() if why else ("offset_copy float32 -Xptxas -O3", "sm_90"))
        assert len(one.machine_code) == (0 if why else 4)


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize(
    ("raises", "skipped", "failed"),
    [
        (CompileError("kernel.cu(3): error: no"), "", r"CompileError: .*offset_copy.cu\(3\): error: no"),
        (UnknownKernelError("kernel 'k' is not known"), "this commit lacks it: kernel 'k' is not known", ""),
    ],
)
def test_none(raises: Exception, skipped: str, failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that does not compile fails, with the file's own name; one that the commit lacks is skipped."""

    def refuse(*_: Any) -> str:
        raise raises

    monkeypatch.setattr(transactions, "ptx", refuse)
    (one,), _ = _told(_task(track_counted__OffsetCopy=PLACES[:1]))
    assert one.skipped == skipped
    assert re.fullmatch(failed, one.failed)
    assert not one.numbers


@pytest.mark.parametrize(
    ("raises", "skipped", "failed"),
    [
        (CompileError("a.cu(3): error: no"), "", "CompileError: a.cu(3): error: no"),
        (NotImplementedError("nvcc knows no sm_99"), "nvcc knows no sm_99", ""),
    ],
)
def test_not_compiled(raises: Exception, skipped: str, failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel that does not compile, or that the compiler knows no architecture for, there is no number."""

    def refuse(*_: Any) -> str:
        raise raises

    monkeypatch.setattr(measure_counts, "cubin", refuse)
    (one,), _ = _told(_task(track_compiled__Compiled=[0]))
    assert (one.skipped, one.failed, one.numbers, one.machine_code) == (skipped, failed, {}, ())


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ({"a": 4.0, "b": 2.0}, {"a": 4.0}, 1.0),
        ({"a": 3.0}, {"a": 0.0}, 4.0),
        ({"a": 0.0}, {"a": 0.0}, 1.0),
        ({"a": 5.0, "b": 2.0}, {"a": 4.0, "b": 4.0}, 0.5),
        ({"b": 1.0}, {"a": 1.0}, None),
        ({"a": 1.0}, {}, 1.0),
    ],
)
def test_ratio(now: dict[str, float], before: dict[str, float], expected: float | None) -> None:
    """The number that differs most; what was nothing and is something differs, and one that is missing is no ratio."""
    assert measure_counts._ratio(now, before) == expected


def test_what_is_found() -> None:
    """Every class of a module, in its order, as asv finds them: none that it imports, hides or leaves without axes."""
    module = types.ModuleType("mine")
    axes = {"kernel": "k", "param_names": ("n",), "params": ((1,),)}
    two, one, hidden, other = (
        type(name, (kw.Counted,), {"__module__": where, **axes})
        for name, where in (("Two", "mine"), ("One", "mine"), ("_Hidden", "mine"), ("Other", "other"))
    )
    vars(module).update(Two=two, Base=kw.Counted, _Hidden=hidden, Other=other, n=3, One=one)
    assert list(base.found(module)) == [two, one]


@pytest.mark.parametrize(("kind", "module"), [(kw.Counted, "track_counted"), (kw.Compiled, "track_compiled")])
def test_names_say_what_is_measured(kind: Any, module: str) -> None:
    """In whatever file a class stands; records put a time, in whatever module, and its control together."""
    one = type("One", (kind,), {"kernel": "k", "param_names": ("n",), "params": ((1,),)})
    method = next(name for name in vars(kind) if name.startswith("track_"))
    assert getattr(one, method).benchmark_name == f"{module}.One.{method}"
    assert measurement_group(f"{module}.One") == f"{module}.One"
    assert measurement_group("speed.One") == measurement_group(control_name("speed.One.time_x")) == "time.One"
