"""The messages to and from the measuring process: plain data, typed on arrival.

A commit's process imports the commit's package and does not use CUDA. The measuring process uses CUDA and knows no
commit. Only jobs pass between them, so one instrument launches the kernels of all commits.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from kernelwatch.instrument import inputs
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.kernel.arguments import Direction

Extent = tuple[int, int, int]


class DeviceArray(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"ordinal": "place"}):
    """An array of a launch."""

    name: str
    #: NumPy's name of its elements; of structs only their bytes, "V16".
    dtype: str
    shape: tuple[int, ...]
    #: What the kernel does with it.
    direction: Direction
    #: What it holds before a launch. Bits and exact: a block that repeats, from `begin` on. All else: what the
    #: commit's process writes, and this text tells from what other texts mean. Outputs hold poison.
    values: str = "bits"
    #: Tells inputs that repeat a block from each other; fingerprints, which are stored, have it as "place".
    ordinal: int = 0
    #: How far it may lie from its reference, in units of the last place; not at all if not given.
    ulp: float | None = None

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def is_written(self) -> bool:
        """Whether the kernel writes to it."""
        return self.direction != "in"

    @property
    def is_given(self) -> bool:
        """Whether the commit's process writes what it holds before a launch."""
        return self.direction == "in and out" or (self.direction == "in" and self.values not in ("bits", "exact"))

    @property
    def exact_dtype(self) -> str | None:
        """The dtype of the exact values that it repeats; None for bits."""
        return self.dtype if self.values == "exact" else None

    @property
    def begin(self) -> int:
        """The byte of the block that it begins with."""
        return inputs.start(self.ordinal)

    def repeated(self, length: int) -> Bytes:
        """Return so many bytes of the block that it repeats."""
        return inputs.repeated(self.exact_dtype, self.begin, length)


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Anything that is sent."""


class Call(Message, frozen=True, kw_only=True):
    """Machine code, and what it is launched with."""

    cubin: bytes
    entry: str
    #: Blocks and threads a block, (x, y, z), and bytes of dynamic shared memory a block.
    grid: Extent
    block: Extent
    dynamic_shared: int = 0
    #: All that the entry point takes, as it lies in its memory; at `addresses` those of the arrays are put in.
    parameters: bytes
    addresses: tuple[int, ...]
    #: What variables of the module hold before a launch, by their names there.
    variables: tuple[tuple[str, bytes], ...] = ()


class Job(Call, frozen=True, kw_only=True):
    """A configuration to measure."""

    #: The launch's text, for messages.
    name: str
    #: SHA-256 of the installed package: jobs of different packages do not share a process unless that is asked for.
    package_digest: str
    #: The arrays that it takes, in its order; one at least is written.
    arrays: tuple[DeviceArray, ...]
    #: Bytes that must move, those read and those written together.
    useful_bytes: int
    #: Tells what a commit's process writes: what is expected of outputs, what arrays hold before a launch. For two jobs
    #: with the same text that is the same.
    reference: str
    #: Whether the commit's process says what is expected, or else a kernel that does, on the same arrays.
    is_verified: bool = True
    oracle: Job | None = None
    #: Keep one set of buffers, which stays in the L2 cache, instead of rotating through many.
    in_l2: bool = False
    #: Time launches by themselves instead of back to back.
    isolated: bool = False
    #: The fetch granularity of the L2 cache in a context of its own. Unset leaves it to the driver, and no fingerprint
    #: has it.
    l2_fetch_bytes: int | msgspec.UnsetType = msgspec.UNSET
    #: Samples to take. If there is a `most`: at least, until they suffice, and so many at most.
    samples: int
    most: int = 0

    @property
    def set_bytes(self) -> int:
        """Bytes that one launch reads and writes, if it touches all of its arrays."""
        return sum(each.nbytes for each in self.arrays)

    def shares_buffers(self, other: Job) -> bool:
        """Whether both can be timed in turns on the same buffers, by the same instrument."""
        mine, others = (
            (job.arrays, job.useful_bytes, job.in_l2, job.isolated, job.l2_fetch_bytes, job.samples)
            for job in (self, other)
        )
        return mine == others


class Ready(Message, frozen=True, kw_only=True):
    """The measuring process waits for a job, for this device.

    `arch` is such as "sm_90". `conditions` is the fingerprint of instrument and GPU, empty of a GPU without a name.
    """

    arch: str
    multiprocessors: int
    conditions: str = ""


class ReferenceRequest(Message, frozen=True):
    """Asks for the job's reference, which has so many bytes; the handle of memory that holds it follows."""

    length: int


class Outcome(Message, frozen=True, kw_only=True):
    """What was measured."""

    #: Seconds a launch.
    samples: tuple[float, ...]
    #: Seconds of a copy of the same useful bytes, each taken right before the sample in its place.
    copies: tuple[float, ...]
    #: Why the GPU did not run this as fast as it might.
    held_back: tuple[str, ...] = ()


class Problem(Message, frozen=True, kw_only=True):
    """There is no outcome: this cannot be measured here, its output is wrong, or the measuring itself broke off."""

    kind: Literal["skipped", "wrong", "failed"]
    text: str


class Again(Message, frozen=True):
    """Ask again: this process has measured another commit and ends; the next one is fresh."""


Answer = Ready | ReferenceRequest | Outcome | Problem | Again
