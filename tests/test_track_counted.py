"""The counted benchmarks: what asv would see of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from benchmarks import axes, track_counted
from benchmarks.instruments import counted
from benchmarks.instruments.counted import Outcome, outcomes
from gpu_kernels.errors import CompileError

CLASSES = (track_counted.Transpose, track_counted.OffsetCopy, track_counted.StrideCopy)


def _tracked(one: Any) -> list[Any]:
    return [getattr(one, name) for name in dir(one) if name.startswith("track_")]


def test_attributes() -> None:
    """Every benchmark has a unit, a title and a version of its own, and a name for every axis."""
    for cls in CLASSES:
        assert len(cls.params) == len(cls.param_names)
        assert cls.version
        for track in _tracked(cls):
            assert track.unit
            assert track.pretty_name.startswith(f"{cls.title}, counted: ")


@pytest.mark.parametrize(
    ("one", "params", "expected"),
    [
        (track_counted.OffsetCopy(), ("float32", 1, "-Xptxas -O3"), [5.0, 5.0]),
        (track_counted.OffsetCopy(), ("float32", 0, "-Xptxas -O3"), [4.0, 4.0]),
        (track_counted.StrideCopy(), ("float64", 4, "-Xptxas -O3"), [32.0, 32.0]),
    ],
)
def test_values(one: Any, params: tuple[Any, ...], expected: list[float]) -> None:
    """Sectors a request of copies, through setup and track as asv calls them."""
    cache = outcomes([one.case(*params)])
    one.setup(cache, *params)
    assert [one.track_load_sectors(cache, *params), one.track_store_sectors(cache, *params)] == expected
    assert 15 < one.track_instructions(cache, *params) < 30


def test_bank_conflicts() -> None:
    """The unpadded tile has 31 conflicts a store and none a load; the padded one none."""
    one: Any = track_counted.Transpose()
    flag_set = axes.FLAG_SETS[0]
    padded, bare = ((name, "float32", flag_set) for name in axes.TRANSPOSES[2:4])
    cache = outcomes([one.case(*padded), one.case(*bare)])
    assert one.track_bank_conflicts(cache, *padded) == 0
    assert one.track_bank_conflicts(cache, *bare) == pytest.approx(15.5, abs=0.8)


def test_every_point_is_a_case() -> None:
    """No point of the axes is unknown to the executor: all of them are of this catalog."""
    cases = {cls().case(*point) for cls in CLASSES for point in product(*cls.params)}
    assert len(cases) == sum(len(list(product(*cls.params))) for cls in CLASSES)
    assert {case[0] for case in cases} == set(axes.KERNELS)


def test_all_of_them_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    """What processes side by side find is what one by itself finds, of every class, missing or not."""
    flag_sets = axes.FLAG_SETS[:2]
    small = (
        [[axes.TRANSPOSES[0], "no_such_kernel"], ["int8", "float32"], flag_sets],
        [["int8", "float32"], [0, 1], flag_sets],
        [["int8", "float32"], [1, 2], flag_sets],
    )
    for cls, params in zip(CLASSES, small, strict=True):
        monkeypatch.setattr(cls, "params", params)
    found = track_counted.Transpose().setup_cache()
    assert found == outcomes(cls().case(*point) for cls in CLASSES for point in product(*cls.params))
    assert len(found) == 3 * 2**3
    assert {bool(outcome.missing) for outcome in found.values()} == {True, False}


def test_what_a_commit_lacks_is_skipped() -> None:
    """An old commit without a kernel, a dtype or a flag set: a skip that names it."""
    point = ("no_such_kernel", "float32", axes.FLAG_SETS[0])
    one = track_counted.Transpose()
    with pytest.raises(NotImplementedError, match="this commit lacks it: kernel 'no_such_kernel'"):
        one.setup(outcomes([one.case(*point)]), *point)
    for point in ((axes.TRANSPOSES[0], "complex256", axes.FLAG_SETS[0]), (axes.TRANSPOSES[0], "float32", "-O9")):
        with pytest.raises(NotImplementedError, match="this commit lacks it"):
            one.setup(outcomes([one.case(*point)]), *point)


def test_what_fails_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that does not compile, or is wrong, fails its benchmarks alone."""
    case = track_counted.OffsetCopy().case("float32", 1, axes.FLAG_SETS[0])

    def refuse(*_: Any) -> str:
        raise CompileError("nvcc failed: nvcc kernel.cu")

    with monkeypatch.context() as patch:
        patch.setattr(counted, "ptx", refuse)
        assert outcomes([case])[case].failure == "CompileError: nvcc failed: nvcc kernel.cu"
    with monkeypatch.context() as patch:
        patch.setattr(counted.Counted, "problem", lambda _: "element [0] of the output was never written")
        found = outcomes([case])
    assert found[case] == Outcome({}, failure="offset_copy: element [0] of the output was never written")
    with pytest.raises(RuntimeError, match="never written"):
        track_counted.OffsetCopy().setup(found, "float32", 1, axes.FLAG_SETS[0])
