"""What asv calls of a timed benchmark, in its order, without a GPU."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from benchmarks import timed
from benchmarks.instruments import clocks, device, readings, remarks
from benchmarks.instruments.buffers import Rotation

PARAMS = ("transpose", 5)


class Sample:
    """Work of 4 launches that takes the milliseconds that its list says."""

    def __init__(self, name: str, log: list[str], ms: list[float]) -> None:
        self._name, self._log, self._ms = name, log, ms

    def __call__(self) -> None:
        """Start."""
        self._log.append(self._name)

    def seconds(self) -> float:
        """Wait."""
        return self._ms.pop(0) * 1e-3 / 4


class Fake:
    """An experiment that writes down what is asked of it."""

    def __init__(self, log: list[str], work: Any, in_l2: bool) -> None:
        self._log = log
        log.append(f"buffers for {work}, in_l2={in_l2}")
        self.launches, self.copies = "kernel", "copy"

    def verify(self, _: Path) -> None:
        """Note it."""
        self._log.append("verified")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened, in its order."""
    found: list[str] = []
    monkeypatch.setattr(device, "require", lambda: found.append("device"))
    monkeypatch.setattr(timed, "Experiment", lambda work, *, in_l2: Fake(found, work, in_l2))
    monkeypatch.setattr(clocks, "now", list)
    return found


def _benchmark(log: list[str], ms: dict[str, list[float]]) -> timed._Timed:
    class Benchmark(timed._Timed):
        in_l2 = True

        def work(self, *params: Any) -> Any:
            return params

        @staticmethod
        def instrument(work: Any) -> Any:
            log.append(f"instrument of {work}")
            return Sample(work, log, ms[work])

    return Benchmark()


def test_order_and_units(log: list[str], tmp_path: Path) -> None:
    """Verified before anything is timed; before each sample, a copy; seconds a launch are what is told and noted."""
    benchmark = _benchmark(log, {"kernel": [8.0, 12.0, 16.0], "copy": [4.0, 2.0, 4.0]})
    times = [benchmark.sample(str(tmp_path), *PARAMS) for _ in range(3)]
    assert times == pytest.approx([2e-3, 3e-3, 4e-3])
    assert log == [
        "device",
        f"buffers for {PARAMS}, in_l2=True",
        "verified",
        "instrument of kernel",
        "instrument of copy",
        *["copy", "kernel"] * 3,
    ]
    noted = readings.read(tmp_path, "Benchmark", PARAMS)
    assert [(each.seconds, each.copy_seconds) for each in noted] == [
        pytest.approx((3e-3, 5e-4)),
        pytest.approx((4e-3, 1e-3)),
    ]


def test_a_control_that_does_not_fit(log: list[str], tmp_path: Path) -> None:
    """What cannot be set up is skipped: asv's teardown after it is no error."""
    benchmark = _benchmark(log, {"kernel": [1.0]})
    benchmark.instrument = lambda cycle: (_ for _ in ()).throw(NotImplementedError("full"))  # type: ignore[method-assign]
    with pytest.raises(NotImplementedError, match="full"):
        benchmark.setup(str(tmp_path), *PARAMS)
    benchmark.teardown(str(tmp_path), *PARAMS)
    assert not list(tmp_path.iterdir())


def test_held_back_is_said_once(
    log: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each reason once a process, with the configuration."""
    monkeypatch.setattr(clocks, "now", lambda: ["software power cap", "hot"])
    benchmark = _benchmark(log, {"kernel": [1.0] * 3, "copy": [1.0] * 3})
    for _ in range(3):
        benchmark.sample(str(tmp_path), *PARAMS)
    said = list(remarks.read(capsys.readouterr().err, "held back"))
    assert [each["reason"] for each in said] == ["software power cap", "hot"]
    assert said[0]["params"] == ["transpose", "5"]


@pytest.mark.parametrize(("output", "input", "pairs"), [(1000, 1000, 3), (65536, 65536, 1440), (10**6, 5 * 10**5, 7)])
@pytest.mark.parametrize("length", [16, 1000, 5 * 10**5, 10**6])
def test_slices(output: int, input: int, pairs: int, length: int) -> None:
    """The control's stretches lie one after another within the memory of the buffers; what does not fit is an error."""
    rotation = object.__new__(Rotation)
    rotation.pairs, rotation.output_bytes, rotation.input_bytes = pairs, output, input
    rotation.output_pitch, rotation.input_pitch = (-(-(each + 512) // 512) * 512 for each in (output, input))
    rotation._outputs, rotation._inputs = 1 << 20, 1 << 40
    total = pairs * min(rotation.output_pitch, rotation.input_pitch)
    if total < length + 512:
        with pytest.raises(ValueError, match=f"hold no {length} bytes"):
            rotation.slices(length)
        return
    count = rotation.slices(length)
    places = [rotation.slice(index, length) for index in range(count)]
    for start, base in zip(zip(*places, strict=True), (1 << 20, 1 << 40), strict=True):
        assert start[0] == base
        assert all(after - before >= length for before, after in itertools.pairwise(start))
        assert start[-1] + length <= base + total
    assert (count + 1) * (length + 1024) > total, "nothing is left over"


class _Cuda:
    """PyCUDA's driver on a device with 1000 free bytes, of which no allocation gets more than 300."""

    MemoryError = type("MemoryError", (Exception,), {})

    def mem_get_info(self) -> tuple[int, int]:
        """Bytes free and in all."""
        return 1000, 2000

    def mem_alloc(self, size: int) -> int:
        """Bytes, if they are few enough."""
        if size > 300:
            raise self.MemoryError
        return size


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((300, 100), None),
        ((600, 401), "needs 1001 bytes of GPU memory, 1000 are free"),
        ((100, 301), "needs 401 bytes of GPU memory, 1000 are free"),
    ],
)
def test_memory(sizes: tuple[int, ...], reason: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is skipped with the bytes needed and free, whether they lack or lie apart."""
    monkeypatch.setattr(device, "cuda", _Cuda())
    if reason is None:
        assert device.allocate(*sizes) == list(sizes)
    else:
        with pytest.raises(NotImplementedError, match=reason):
            device.allocate(*sizes)


def test_lacking_kernel() -> None:
    """A kernel that the installed commit does not know is skipped, by its name."""
    with pytest.raises(NotImplementedError, match="kernel 'transpose_of_tomorrow' is not known"):
        timed.kernel_work("transpose_of_tomorrow", "float32", "-Xptxas -O3", rows=1, columns=1)
