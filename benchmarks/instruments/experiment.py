"""A configuration on the device: buffers filled, output verified, graphs captured, ready to be replayed and timed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.instruments import buffers, device, tools, verification
from benchmarks.instruments.poison import poisoned
from benchmarks.instruments.replay import Cycle

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
    useful_bytes : bytes that must move, those read and those written together.
    launch : (output address, input address, PyCUDA stream) -> None.
    reference : (output before, input) -> output after.
    """

    name: str
    identity: str
    dtype: str
    output_shape: Shape
    input_shape: Shape
    useful_bytes: int
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


class Experiment:
    """A work's buffers on the device.

    Parameters
    ----------
    work : what to launch.
    in_l2 : keep one pair of buffers, which stays in the L2 cache, instead of rotating through many.

    Raises
    ------
    NotImplementedError : it does not fit in the device's memory, or in its L2 if `in_l2`.
    """

    def __init__(self, work: Work, *, in_l2: bool) -> None:
        pair_bytes = work.output_bytes + work.input_bytes
        if in_l2 and pair_bytes > device.l2_bytes():
            raise NotImplementedError(f"needs {pair_bytes} bytes of L2 cache, the GPU has {device.l2_bytes()}")
        self._work = work
        self._in_l2 = in_l2
        self._pairs = 1 if in_l2 else buffers.pairs_for(pair_bytes, device.l2_bytes())
        self._rotation = buffers.Rotation(work.output_bytes, work.input_bytes, self._pairs)
        self._stream = device.cuda.Stream()

    def _launch(self, index: int, stream: Any) -> None:
        self._work.launch(self._rotation.output(index), self._rotation.input(index), stream)

    @property
    def launches(self) -> Cycle:
        """The work's launches, each on the buffer pair whose turn it is."""
        return Cycle(self._launch, self._pairs, self._stream)

    @property
    def copies(self) -> Cycle:
        """Copies of the work's useful bytes within the same memory: the control."""
        copy, length = tools.copier(), self._work.useful_bytes // 2
        slices = 1 if self._in_l2 else self._rotation.slices(length)

        def enqueue(index: int, stream: Any) -> None:
            copy(*self._rotation.slice(index % slices, length), length, stream)

        return Cycle(enqueue, slices, self._stream)

    def verify(self, folder: Path) -> None:
        """Launch on every pair and verify what was written. Folder and errors as `verify_once`."""
        for index in range(self._pairs):
            self._launch(index, self._stream)
        self._stream.synchronize()
        verify_once(self._work, self._rotation, folder)


def verify_once(work: Work, rotation: buffers.Rotation, folder: Path) -> None:
    """Compare what launches on each pair of the rotation wrote with NumPy's, unless that was done in this run.

    Parameters
    ----------
    work : what was launched.
    rotation : its buffers.
    folder : notes what was verified: within one run of asv, a configuration's second process need not read gigabytes
        back again.

    Raises
    ------
    WrongOutputError : the output is not NumPy's.
    """
    note = folder / f"verified-{hashlib.sha256(f'{work.identity} {rotation.pairs}'.encode()).hexdigest()}"
    if not note.exists():
        _verify(work, rotation)
        note.touch()


def _verify(work: Work, rotation: buffers.Rotation) -> None:
    """Compare every output of the rotation, and the guard behind it, after each pair was launched."""
    guard = rotation.output_pitch - rotation.output_bytes
    length = verification.buffer_bytes(work.output_shape, np.dtype(work.dtype).itemsize, guard)
    # Page-locked, so that the device fills it at the full speed of the bus.
    buffer = device.cuda.pagelocked_empty(length, np.uint8)
    before = np.broadcast_to(poisoned((1,), work.dtype), work.output_shape)
    for index in range(rotation.pairs):
        source = rotation.host_input(index).view(work.dtype).reshape(work.input_shape)
        read = partial(rotation.read_output, index)
        verification.check_output(f"{work.name}, buffer {index}", work.reference(before, source), guard, read, buffer)
