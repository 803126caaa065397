"""Wrong kernels never yield a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import timed
from benchmarks.instruments import experiment, verification
from benchmarks.time_copy import DeviceCopy, StrideCopy
from benchmarks.time_transpose import Transpose, TransposeInL2
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
        experiment.prepare(work, in_l2=False, verified=tmp_path)
    with pytest.raises(verification.WrongOutputError, match=kernel.name):
        run_and_check(kernel, "float32", "-Xptxas -O3", **arguments)
    assert not list(tmp_path.iterdir()), "a wrong kernel was noted as verified"


def test_a_sample_is_taken(tmp_path: Path) -> None:
    """Asv's own sequence of calls gives a positive time, again and again, from one setup."""
    transpose = Transpose()
    params = ("transpose_read_write_coalesced", "256x256", "float32", "-Xptxas -O3")
    for _ in range(3):
        transpose.setup(str(tmp_path), *params)
        assert transpose.timer() == 0.0
        transpose.time_launch(str(tmp_path), *params)
        assert 1e-7 < transpose.timer() < 1e-3
    assert len(list(tmp_path.iterdir())) == 1, "verified once"


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
