"""Wrong kernels never yield a time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from benchmarks import timed, track_control
from benchmarks.instruments import readings, verification
from benchmarks.instruments.experiment import Experiment
from benchmarks.time_copy import DeviceCopy, StrideCopy
from benchmarks.time_transpose import IsolatedTranspose, Transpose, TransposeInL2
from gpu_kernels import catalog
from gpu_kernels.spec import Kernel
from tests.gpu.harness import run_and_check
from tests.wrong_kernels import WRONG

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("kernel", "arguments", "message"), WRONG, ids=lambda value: getattr(value, "name", ""))
def test_wrong_kernels_are_rejected(
    kernel: Kernel, arguments: dict[str, int], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wrong kernel is rejected by its name, before its first sample and in the tests' own harness."""
    monkeypatch.setattr(catalog, "get", lambda _: kernel)
    work = timed.kernel_work(kernel.name, "float32", "-Xptxas -O3", **arguments)
    with pytest.raises(verification.WrongOutputError, match=message):
        Experiment(work, in_l2=False).verify(tmp_path)
    with pytest.raises(verification.WrongOutputError, match=kernel.name):
        run_and_check(kernel, "float32", "-Xptxas -O3", **arguments)
    assert not list(tmp_path.iterdir()), "a wrong kernel was noted as verified"


@pytest.mark.parametrize("timed_class", [Transpose, IsolatedTranspose])
def test_samples_are_taken(timed_class: type[timed._Timed], tmp_path: Path) -> None:
    """Asv's own sequence of calls gives a positive time, again and again, from one setup, and a copy's beside it."""
    transpose = timed_class()
    params = ("transpose_read_write_coalesced", "256x256", "float32", "-Xptxas -O3")
    times = [transpose.sample(str(tmp_path), *params) for _ in range(3)]
    assert all(1e-7 < seconds < 1e-3 for seconds in times)
    assert len(list(tmp_path.glob("verified-*"))) == 1
    noted = readings.read(tmp_path, timed_class.__name__, params)
    assert [reading.seconds for reading in noted] == times[1:]
    assert all(1e-7 < reading.copy_seconds < 1e-3 for reading in noted)


def test_an_isolated_launch_takes_longer() -> None:
    """Launches back to back overlap; one by itself pays for its beginning and its end."""
    params = ("transpose_read_write_coalesced", "256x256", "float32", "-Xptxas -O3")
    with tempfile.TemporaryDirectory() as folder:
        assert IsolatedTranspose().sample(folder, *params) > Transpose().sample(folder, *params)


@pytest.mark.parametrize("length", [2**20 + 16, 3 * 2**20 + 5])
def test_device_copy(length: int, tmp_path: Path) -> None:
    """The control copies all bytes that it is asked for."""
    work = DeviceCopy().work(f"1x{length}", "int8")
    Experiment(work, in_l2=False).verify(tmp_path)


def test_the_ratio_needs_no_timed_benchmark_before(tmp_path: Path) -> None:
    """Asked for by itself, the control takes samples; the ratio of a copy to a copy is about 1."""
    control = track_control.OffsetCopy()
    params = (0, 67108864, "complex128", "-Xptxas -O3")
    control.setup(str(tmp_path), *params)
    ratios = control.track_copy_ratio(str(tmp_path), *params)["samples"]  # type: ignore[attr-defined]
    assert len(ratios) == timed.SAMPLES
    assert all(0.9 < ratio < 1.5 for ratio in ratios)


@pytest.mark.parametrize(
    ("timed_class", "params", "reason"),
    [
        (Transpose, ("nope", "256x256", "float32", "-Xptxas -O3"), "this commit lacks it: kernel 'nope'"),
        (Transpose, ("transpose_read_coalesced", "256x256", "float32", "-O9"), "this commit lacks it: flag set '-O9'"),
        (StrideCopy, (2**30, 4194304, "float64", "-Xptxas -O3"), "needs .* bytes of GPU memory, .* are free"),
        (
            TransposeInL2,
            ("transpose_read_coalesced", "12800x12800", "float32", "-Xptxas -O3"),
            "needs .* bytes of L2 cache, the GPU has",
        ),
        (DeviceCopy, ("900000x900000", "float64"), "needs .* bytes of GPU memory, .* are free"),
    ],
)
def test_skips(timed_class: type[timed._Timed], params: tuple[object, ...], reason: str, tmp_path: Path) -> None:
    """What cannot run here is skipped with the reason."""
    with pytest.raises(NotImplementedError, match=reason):
        timed_class().setup(str(tmp_path), *params)
