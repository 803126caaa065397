"""Outputs verified where they lie, on a GPU that is none: real kernels and real comparison, executed on the CPU."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from gpu_kernels import catalog
from kernelwatch.instrument import buffers, comparison, inputs, jobs, references
from kernelwatch.instrument.arrangement import Arrangement
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.job import Job
from kernelwatch.instrument.references import References
from kernelwatch.instrument.session import Session
from kernelwatch.instrument.verification import WrongOutputError
from kernelwatch.kernel import Launch
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import LARGE, READY, SMALL, fetching, measured
from tests.wrong_kernels import WRITING, WRONG


def test_references_are_made_once(gpu: FakeGpu) -> None:
    """One a shape, dtype and operation, whatever kernel and flags; also in the other context."""
    session = Session()
    assert [len(measured(gpu, LARGE, session)[2]) for _ in range(2)] == [1, 0]
    other = Launch("transpose_write_coalesced", LARGE.dtype, "-Xptxas -O0", LARGE.arguments)
    assert measured(gpu, other, session)[2] == []
    assert len(measured(gpu, Launch.parse("transpose_read_coalesced rows=101 columns=97 float32"), session)[2]) == 1
    assert [len(measured(gpu, SMALL, session)[2]) for _ in range(2)] == [1, 0]


def test_the_oldest_references_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the host the newest are kept."""
    monkeypatch.setattr(references, "_KEPT", 8)
    known = References()
    for name in "abc":
        known.host(name, 4, lambda length: references.reader(np.zeros(length, np.uint8)))
    assert [known.has(name) for name in "abc"] == [False, True, True]


def test_no_room_for_references(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where buffers need their memory they give way, and outputs are compared in pieces; what never fits is skipped."""
    monkeypatch.setattr(comparison, "_PIECE", 4096)
    session = Session()
    half = gpu.total // 2
    pool = session.references._pool
    huge = Launch.parse(f"offset_copy size={half // 8 + 5000} offset=1 float32")
    measured(gpu, LARGE, session)
    assert len(pool.held) >= half
    measured(gpu, huge, session)
    assert session.references._pool is None
    measured(gpu, LARGE, session)
    session.close()
    assert not gpu.allocations
    with pytest.raises(NotImplementedError, match=r"needs \d+ bytes of GPU memory, \d+ are free"):
        measured(gpu, Launch.parse(f"offset_copy size={gpu.total // 4} offset=1 float32"), session)


@pytest.mark.parametrize("has_pool", [True, False])
@pytest.mark.parametrize(
    ("kernel", "arguments", "message"), WRONG + WRITING, ids=lambda value: getattr(value, "name", "")
)
def test_wrong_kernels_are_rejected(
    kernel: Any,
    arguments: dict[str, int],
    message: str,
    has_pool: bool,
    gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each wrong kernel is rejected by its name; there is no outcome."""
    monkeypatch.setitem(catalog.KERNELS, kernel.name, kernel)
    session = Session()
    if not has_pool:
        session.references.forget()
    with pytest.raises(WrongOutputError, match=message):
        measured(gpu, Launch(kernel.name, arguments=arguments), session)


def _flip(array: int, byte: int, in_last_buffer: bool, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Flip a bit of an array once a kernel has run on all buffers; return what will hold which buffer it is in."""
    once, flipped = Arrangement.launch_once, []

    def flip(self: Arrangement, job: Job) -> None:
        once(self, job)
        flipped.append(self.rotation.sets - 1 if in_last_buffer else 0)
        gpu.view(self.rotation.addresses(flipped[-1])[array])[byte] ^= 64

    monkeypatch.setattr(Arrangement, "launch_once", flip)
    return flipped


@pytest.mark.parametrize(("piece", "dtype"), [(64 << 20, "int8"), (4096, "complex128")])
@pytest.mark.parametrize("place", [0, 1, 15, 16, 4097, -1, "guard", "last guard byte"])
@pytest.mark.parametrize("in_last_buffer", [False, True])
def test_a_flipped_bit_is_found(
    in_last_buffer: bool, place: int | str, dtype: str, piece: int, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anywhere: in the first buffer or the last, in an output's first byte, its last, and in the guard."""
    monkeypatch.setattr(comparison, "_PIECE", piece)
    itemsize = np.dtype(dtype).itemsize
    length = 97 * 101 * itemsize
    named: dict[int | str, int] = {-1: length - 1, "guard": length, "last guard byte": buffers.pitch(length) - 1}
    where = named[place] if place in named else int(place)
    flipped = _flip(0, where, in_last_buffer, gpu, monkeypatch)
    session = Session()
    if piece == 4096:
        session.references.forget()
    with pytest.raises(WrongOutputError) as found:
        measured(gpu, Launch(LARGE.kernel, dtype, arguments=LARGE.arguments), session)
    index = list(map(int, np.unravel_index(where // itemsize, (101, 97)))) if where < length else None
    said = f"element {index} is" if index else f"behind the end of its output, first {where - length} bytes on"
    assert f"buffer {flipped[0]}: " in str(found.value)
    assert said in str(found.value)


@pytest.mark.parametrize("block", [inputs.BLOCK, 16 * 2003])
@pytest.mark.parametrize("size", [1000, 15000])
@pytest.mark.parametrize("array", ["a", "b"])
@pytest.mark.parametrize("byte", [0, 16 * 2003 - 1, -1, "guard"])
@pytest.mark.parametrize("in_last_buffer", [False, True])
def test_a_flipped_bit_of_an_input_is_found(
    in_last_buffer: bool,
    byte: int | str,
    array: str,
    size: int,
    block: int,
    gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anywhere: in each input, buffer, and part of what repeats the block."""
    monkeypatch.setattr(inputs, "BLOCK", block)
    inputs.block.cache_clear()
    where = 8 * size + 500 if byte == "guard" else int(byte) % (8 * size)
    flipped = _flip(" ab".index(array), where, in_last_buffer, gpu, monkeypatch)
    with pytest.raises(WrongOutputError) as found:
        measured(gpu, Launch("add_uncoalesced", "float64", arguments={"size": size}))
    inputs.block.cache_clear()
    said = "first 500 bytes behind its end" if byte == "guard" else f"its element [{where // 8}] is"
    assert f"buffer {flipped[0]}: wrote to {array}, " in str(found.value)
    assert said in str(found.value)


def test_near(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an output need only be near, it is compared on the host within its bound."""
    arguments = {"rows": 33, "inner": 70, "columns": 40}
    assert measured(gpu, Launch("matmul_tiled", "float16", arguments=arguments))[0].samples
    (wrong,) = (kernel for kernel, *_ in WRONG if kernel.name == "matmul_skipped_last_step")
    monkeypatch.setitem(catalog.KERNELS, wrong.name, wrong)
    with pytest.raises(WrongOutputError, match=r"element \[0, 0\] is \S+, NumPy expects \S+ within 0\.5 units"):
        measured(gpu, Launch(wrong.name, "float16", arguments=arguments))


@pytest.mark.parametrize("launch", [SMALL, LARGE])
def test_verify(launch: Launch, gpu: FakeGpu) -> None:
    """What was timed in turns with another is verified without being timed; nothing is left of it."""
    session = Session()
    described = jobs.of(launch, samples=3)
    session.verify(described.job(READY), fetching(described))
    assert [each for each in gpu.log if each.startswith("replay")][-1] == "replay of 1"
    assert not any(name == "device_copy" for name, _ in gpu.launched)
    session.close()
    assert list(gpu.allocations) == [int(session.references._pool)]
    with pytest.raises(WrongOutputError):
        session.verify(
            msgspec.structs.replace(described.job(READY), reference="another"),
            lambda length: references.reader(np.full(length, POISON, np.uint8)),
        )
