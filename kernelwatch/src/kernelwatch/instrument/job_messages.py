"""The messages to and from the measuring process: plain data, type-checked on arrival.

A commit's process imports the commit's package and does not use CUDA. The measuring process uses CUDA and does not
import packages. Only messages and references pass between them, so the same code launches the kernels of all commits.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from kernelwatch.instrument import inputs
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.kernel.arguments import Direction, to_dtype
from kernelwatch.kernel.geometry import Extent


class DeviceArray(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"ordinal": "place"}):
    """An array of a launch, as the measuring process needs it."""

    name: str
    #: NumPy's name of the elements' dtype, such as "V16" for structs of 16 bytes.
    dtype: str
    shape: tuple[int, ...]
    direction: Direction
    #: Content before a launch. Inputs with "bits" or "exact" repeat a block, from `block_offset` on. Other inputs, and
    #: arrays that are read and written, are written by the commit's process; a text identifies their content. Outputs
    #: are poisoned.
    values: str = "bits"
    #: Index that distinguishes inputs that repeat a block. Stored fingerprints call it "place".
    ordinal: int = 0
    #: Tolerance to the reference, in units in the last place; None for bit equality.
    ulp: float | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of the array."""
        return math.prod(self.shape) * to_dtype(self.dtype).itemsize

    @property
    def is_written(self) -> bool:
        """True if the kernel writes to the array."""
        return self.direction != "in"

    @property
    def is_prefilled(self) -> bool:
        """True if the commit's process writes the array's content before a launch."""
        return self.direction == "in and out" or (self.direction == "in" and self.values not in ("bits", "exact"))

    @property
    def exact_dtype(self) -> str | None:
        """Dtype of the repeated exact values; None for all other contents."""
        return self.dtype if self.values == "exact" else None

    @property
    def block_offset(self) -> int:
        """Offset in bytes of the array's first byte in the repeated block."""
        return inputs.block_offset(self.ordinal)

    def repeat_block(self, length: int) -> Bytes:
        """Return the first `length` bytes of the array's repeated block."""
        return inputs.repeat_block(self.exact_dtype, self.block_offset, length)


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """A message to or from the measuring process."""


class Call(Message, frozen=True, kw_only=True):
    """Machine code, with the geometry and the arguments of a launch."""

    cubin: bytes
    entry: str
    #: Blocks and threads per block, (x, y, z), and bytes of dynamic shared memory per block.
    grid: Extent
    block: Extent
    dynamic_shared: int = 0
    #: Packed arguments of the entry point; addresses of arrays are inserted at the offsets in `addresses`.
    parameters: bytes
    addresses: tuple[int, ...]
    #: Contents of the module's variables before a launch, by name.
    variables: tuple[tuple[str, bytes], ...] = ()


class Job(Call, frozen=True, kw_only=True):
    """A configuration to measure."""

    #: Text of the launch, for messages.
    name: str
    #: `build_job.package_digest`. Jobs of different packages share a process only in an interleaved run.
    package_digest: str
    #: Arrays of the launch, in the order of its arguments; at least one is written.
    arrays: tuple[DeviceArray, ...]
    #: Bytes that must be read and written, in total.
    useful_bytes: int
    #: Text that identifies the reference: expected outputs and contents before a launch.
    reference: str
    #: True if the commit's process writes the expected outputs. Otherwise a launch of `oracle`, if there is one,
    #: computes them from the same inputs.
    is_verified: bool = True
    oracle: Job | None = None
    #: True for one set of buffers, which stays in the L2 cache; False for a rotation through several sets.
    in_l2: bool = False
    #: True for isolated launches; False for launches back to back.
    isolated: bool = False
    #: L2 fetch granularity, in a separate context. Unset means the driver's default, and is not part of fingerprints.
    l2_fetch_bytes: int | msgspec.UnsetType = msgspec.UNSET
    #: Number of samples. With `most`, it is the minimum: samples are taken until they suffice, but at most `most`.
    samples: int
    most: int = 0

    @property
    def set_bytes(self) -> int:
        """Bytes of all arrays of one launch. An array that is read and written counts once."""
        return sum(array.nbytes for array in self.arrays)

    def shares_buffers(self, candidate: Job) -> bool:
        """Return whether a job can be interleaved with this one: on the same buffers, and timed in the same way."""
        own_key, other_key = (
            (job.arrays, job.useful_bytes, job.in_l2, job.isolated, job.l2_fetch_bytes, job.samples)
            for job in (self, candidate)
        )
        return own_key == other_key


class DeviceFacts(Message, frozen=True, kw_only=True):
    """The facts of the device that jobs depend on. The measuring process is ready for a job.

    `arch` is a name such as "sm_90". `conditions` is the fingerprint of library and GPU, empty for a GPU without a
    UUID.
    """

    arch: str
    multiprocessors: int
    conditions: str = ""


class ReferenceRequest(Message, frozen=True):
    """A request for the job's reference of `length` bytes. The answer is the handle of memory with the reference."""

    length: int


class JobOutcome(Message, frozen=True, kw_only=True):
    """The samples of a job."""

    #: Seconds per launch.
    samples: tuple[float, ...]
    #: Seconds of a copy of the same useful bytes, each timed in the same turn as the sample with the same index.
    copies: tuple[float, ...]
    #: Reasons why the GPU may have been slower: reduced clocks, or another process.
    throttle_reasons: tuple[str, ...] = ()


class JobProblem(Message, frozen=True, kw_only=True):
    """The reason why a job has no outcome: skipped on this device, wrong output, or a failed measurement."""

    kind: Literal["skipped", "wrong", "failed"]
    text: str


class Restart(Message, frozen=True):
    """A request to connect again: this process has measured another package and ends; a new process follows."""


Answer = DeviceFacts | ReferenceRequest | JobOutcome | JobProblem | Restart
