"""Outputs verified where they lie, on a GPU that is none: real kernels and real comparison, executed on the CPU."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_kernels import catalog
from kernelwatch.instrument import buffers, comparison, inputs, verification
from kernelwatch.instrument.arrangement import Arrangement
from kernelwatch.instrument.inputs import POISON
from kernelwatch.instrument.job import Job
from kernelwatch.instrument.measurement import Session
from kernelwatch.instrument.verification import Near, WrongOutputError
from kernelwatch.kernel import Launch
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import LARGE, measured
from tests.wrong_kernels import WRITING, WRONG

GUARD = 64


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


@pytest.mark.parametrize(
    ("found", "expected", "ulp", "near"),
    [
        (1.0 + 2**-10, 1.0, 1.0, True),
        (1.0 + 2**-9, 1.0, 1.0, False),
        (-8.0, -8.0 - 2**-8, 0.5, True),
        # Below 1 the last place of 1 counts: a sum that cancels is not held to its own.
        (2**-11, 0.0, 0.5, True),
        (2**-10, 0.0, 0.5, False),
        (float("nan"), 1.0, 100.0, False),
        (float("inf"), 1.0, 100.0, False),
    ],
)
def test_near(found: float, expected: float, ulp: float, near: bool) -> None:
    """A float16 may lie so many units in the last place from its reference, which is in float64."""
    message = "" if near else r"element \[0, 0\] is .* units in the last"
    _checked(np.array([[found]]), np.array([[expected]]), ulp, message)


def _checked(values: NDArray[Any], reference: NDArray[Any], ulp: float, message: str, behind: int = POISON) -> None:
    raw = np.concatenate([values.astype(np.float16).reshape(-1).view(np.uint8), np.full(GUARD, POISON, np.uint8)])
    raw[-1] = behind

    def read(start: int, into: NDArray[Any]) -> None:
        into[:] = raw[start : start + len(into)]

    with pytest.raises(WrongOutputError, match=message) if message else nullcontext():
        verification.check_near("case", reference, GUARD, read, Near("float16", ulp))


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_near_in_pieces(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is read at a time, the first element that differs is named, and then what lies behind."""
    monkeypatch.setattr(verification, "_CHUNK", chunk)
    right = np.arange(63.0).reshape(7, 9)
    wrong = right.copy()
    wrong[5, 3] += 1
    wrong[6, 8] += 1
    _checked(right, right, 0.0, "")
    _checked(wrong, right, 0.0, r"case: element \[5, 3\] is 49\.0, NumPy expects 48\.0 within 0 units")
    _checked(right, right, 0.0, f"case: wrote behind the end of its output, first {GUARD - 1} bytes on", 0)


def test_near_on_the_device(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an output need only be near, it is compared on the host within its bound."""
    (wrong,) = (kernel for kernel, *_ in WRONG if kernel.name == "matmul_skipped_last_step")
    monkeypatch.setitem(catalog.KERNELS, wrong.name, wrong)
    with pytest.raises(WrongOutputError, match=r"element \[0, 0\] is \S+, NumPy expects \S+ within 0\.5 units"):
        measured(gpu, Launch(wrong.name, "float16", arguments={"rows": 33, "inner": 70, "columns": 40}))
