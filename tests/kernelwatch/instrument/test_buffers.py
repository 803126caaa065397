"""The buffers of a measurement, without a GPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwatch.instrument import buffers, jobs
from kernelwatch.instrument.buffers import Rotation
from kernelwatch.instrument.job import DeviceArray
from kernelwatch.kernel import Launch
from tests import fake_cuda, served
from tests.fake_cuda import FakeGpu


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """One with more memory than any test needs."""
    monkeypatch.setattr(buffers, "_STAGED", 64 << 10)
    for cached in (buffers._staging, buffers.pinned_block):
        cached.cache_clear()
    return fake_cuda.install(monkeypatch, FakeGpu(total=1 << 40))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("output", "inputs", "sets"), [(1000, [1000], 3), (65536, [65536], 1440), (10**6, [5 * 10**5], 7)]
)
@pytest.mark.parametrize("length", [16, 1000, 5 * 10**5, 10**6])
def test_slices(output: int, inputs: list[int], sets: int, length: int) -> None:
    """The control's stretches lie one after another within the memory of the buffers; what does not fit is an error."""
    rotation = Rotation(_arrays(output, inputs), sets)
    pitches = [-(-(each + 512) // 512) * 512 for each in (output, *inputs)]
    total = sets * min(pitches)
    if total < length + 512:
        with pytest.raises(ValueError, match=f"hold no {length} bytes"):
            rotation.slices(length)
        return
    count = rotation.slices(length)
    places = [rotation.slice(index, length) for index in range(count)]
    for start, base in zip(zip(*places, strict=True), rotation.addresses(0), strict=True):
        assert start[0] == base
        assert all(after - before >= length + 512 for before, after in itertools.pairwise(start))
        assert start[-1] + length + 512 <= base + total
    assert (count + 1) * (length + 1024) > total, "nothing is left over"


@pytest.mark.parametrize("exact_dtype", [None, "float32"])
@pytest.mark.parametrize("inputs", [[], [4000], [4000, 4000], [400] * 8, [70_000], [70_000, 12]])
def test_any_number_of_inputs(inputs: list[int], exact_dtype: str | None, gpu: FakeGpu) -> None:
    """Inputs of all sets lie apart, hold what the host says they hold, and there is room for a copy of the bytes."""
    useful = (4000 + sum(inputs)) // 2
    rotation = Rotation(_arrays(4000, inputs, exact_dtype), 5, useful)
    places = [place for index in range(5) for place in zip(rotation.addresses(index)[1:], inputs, strict=True)]
    assert len(places) == 5 * len(inputs)
    assert all(start + length + 512 <= after for (start, length), (after, _) in itertools.pairwise(places))
    assert rotation.addresses(7) == rotation.addresses(2)
    assert rotation.slices(useful) >= 1
    _holds_what_the_host_says(rotation, gpu)


@pytest.mark.parametrize("inputs", [[12, 70_000], [400, 4000]])
def test_inputs_that_repeat(inputs: list[int], gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that are longer than the block of bytes that they repeat."""
    content = np.random.default_rng(1).integers(0, 256, 16 * 3001, np.uint8)
    monkeypatch.setattr("kernelwatch.instrument.inputs.block", lambda _: content)
    monkeypatch.setattr("kernelwatch.instrument.inputs._tiled", {})
    _holds_what_the_host_says(Rotation(_arrays(4000, inputs), 3, 2000), gpu)


def _arrays(output: int, inputs: list[int], exact_dtype: str | None = None) -> list[DeviceArray]:
    """An output and inputs of so many bytes."""
    dtype, values = exact_dtype or "int8", "exact" if exact_dtype else "bits"
    counts = [each // np.dtype(dtype).itemsize for each in (output, *inputs)]
    return [
        served.array(
            f"a{place}", "in" if place else "out", shape=(count,), dtype=dtype, values=values, ordinal=max(0, place - 1)
        )
        for place, count in enumerate(counts)
    ]


def _holds_what_the_host_says(rotation: Rotation, gpu: FakeGpu) -> None:
    for index in range(rotation.sets):
        for array, start in list(zip(rotation.arrays, rotation.addresses(index), strict=True))[1:]:
            content = array.repeated(buffers.pitch(array.nbytes))
            assert (gpu.view(start)[: len(content)] == content).all()


def test_unknown_kernel() -> None:
    """A kernel that the installed commit does not know is skipped, by its name."""
    with pytest.raises(NotImplementedError, match="kernel 'transpose_of_tomorrow' is not known"):
        jobs.of(Launch.parse("transpose_of_tomorrow rows=1 columns=1"))
