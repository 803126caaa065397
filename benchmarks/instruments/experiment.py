"""A configuration on the device: buffers filled, output verified, graph captured, ready to be replayed and timed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instruments import buffers, device, verification
from benchmarks.instruments.replay import Replay, launches_for

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """What is launched, and how its output is known to be right.

    Parameters
    ----------
    name : the configuration, for messages.
    identity : changes whenever the machine code or the launch changes.
    dtype : NumPy's name.
    output_shape, input_shape : elements.
    launch : (output address, input address, PyCUDA stream) -> None.
    reference : (output before, input) -> output after.
    """

    name: str
    identity: str
    dtype: str
    output_shape: Shape
    input_shape: Shape
    launch: Callable[[int, int, Any], None]
    reference: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

    @property
    def output_bytes(self) -> int:
        """Bytes of one output."""
        return int(np.prod(self.output_shape)) * np.dtype(self.dtype).itemsize

    @property
    def input_bytes(self) -> int:
        """Bytes of one input."""
        return int(np.prod(self.input_shape)) * np.dtype(self.dtype).itemsize


def prepare(work: Work, *, in_l2: bool, verified: Path) -> Replay:
    """Make a work ready to be timed, and verify all that its replays will write.

    Parameters
    ----------
    work : what to launch.
    in_l2 : keep one pair of buffers, which stays in the L2 cache, instead of rotating through many.
    verified : folder of notes on what was verified before: within one run of asv, a configuration's second process
        need not read gigabytes back again.

    Raises
    ------
    NotImplementedError : it does not fit in the device's memory, or in its L2 if `in_l2`.
    WrongOutputError : the output is not NumPy's.
    """
    pair_bytes = work.output_bytes + work.input_bytes
    if in_l2 and pair_bytes > device.l2_bytes():
        raise NotImplementedError(f"needs {pair_bytes} bytes of L2 cache, the GPU has {device.l2_bytes()}")
    pairs = 1 if in_l2 else buffers.pairs_for(pair_bytes, device.l2_bytes())
    rotation = buffers.Rotation(work.output_bytes, work.input_bytes, pairs)
    stream = device.cuda.Stream()

    def enqueue(index: int, stream: Any) -> None:
        work.launch(rotation.output(index), rotation.input(index), stream)

    once = Replay(enqueue, pairs, stream)
    for _ in range(2):  # the first replay also loads the code and wakes the device
        once()
        once_ms = once.elapsed_ms()
    verify_once(work, rotation, verified)
    launches = launches_for(once_ms, pairs)
    return once if launches == pairs else Replay(enqueue, launches, stream)


def verify_once(work: Work, rotation: buffers.Rotation, verified: Path) -> None:
    """Verify what launches on each pair of the rotation wrote, unless a note in the folder says that it was done.

    Raises
    ------
    WrongOutputError : the output is not NumPy's.
    """
    note = verified / f"verified-{hashlib.sha256(f'{work.identity} {rotation.pairs}'.encode()).hexdigest()}"
    if not note.exists():
        _verify(work, rotation)
        note.touch()


def _verify(work: Work, rotation: buffers.Rotation) -> None:
    """Compare every output of the rotation, and the guard behind it, after each pair was launched."""
    guard = rotation.output_pitch - rotation.output_bytes
    length = verification.buffer_bytes(work.output_shape, np.dtype(work.dtype).itemsize, guard)
    # Page-locked, so that the device fills it at the full speed of the bus.
    buffer = device.cuda.pagelocked_empty(length, np.uint8)
    poison = np.full(np.dtype(work.dtype).itemsize, buffers.POISON, np.uint8).view(work.dtype)
    before = np.broadcast_to(poison, work.output_shape)
    for index in range(rotation.pairs):
        source = rotation.host_input(index).view(work.dtype).reshape(work.input_shape)
        read = partial(rotation.read_output, index)
        verification.check_output(f"{work.name}, buffer {index}", work.reference(before, source), guard, read, buffer)
