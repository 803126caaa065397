"""The messages to and from the measuring process: plain data, checked on arrival.

asv's processes have the commit's package installed and do not use CUDA. The measuring process uses CUDA and knows no
commit. Only jobs pass between them, so one instrument launches the kernels of all commits.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from kernelwatch.instrument.verification import Near

_Extent = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Size = Annotated[int, Meta(ge=1, le=2**63 - 1)]
_Word = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Name = Annotated[str, Meta(max_length=1000)]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Anything that is sent."""


class Job(Message, frozen=True, kw_only=True):
    """A configuration to measure.

    Parameters
    ----------
    name : str
        The launch's text, for messages.
    commit : str
        The digest of the installed package: jobs of different commits do not share a process unless that is asked for.
    cubin : bytes
        The machine code.
    entry : str
        Its entry point, which takes (output, *inputs, *integers, *scalars).
    grid, block : tuple of int
        Blocks and threads a block, (x, y, z).
    dynamic_shared : int
        Bytes of dynamic shared memory a block.
    integers, scalars : tuple
        The arguments behind the addresses.
    dtype : str
        NumPy's name of the output's elements.
    output_shape : tuple of int
        In elements.
    output_bytes : int
        Bytes of the output.
    input_bytes : tuple of int
        Bytes of each input.
    useful_bytes : int
        Bytes that must move, those read and those written together.
    reference : str
        Tells what is expected of the output: two jobs with the same text expect the same bytes.
    exact_dtype : str, optional
        The dtype of inputs whose values are exact; inputs are random bits if not given.
    near : Near, optional
        How far the output may lie from the reference; not at all if not given.
    in_l2 : bool
        Keep one set of buffers, which stays in the L2 cache, instead of rotating through many.
    isolated : bool
        Time launches by themselves instead of back to back.
    samples : int
        Samples to take; at least, if there is a `most`.
    most : int
        Samples to take until they suffice, at most; none more if not given.
    every : int
        Number of launches after which one extra launch follows; 0 for none. Experiments slow kernels down in this way.
    """

    name: _Name
    commit: _Name
    cubin: Annotated[bytes, Meta(min_length=1, max_length=64 << 20)]
    entry: _Name
    grid: tuple[_Extent, _Extent, _Extent]
    block: tuple[_Extent, _Extent, _Extent]
    dynamic_shared: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    integers: tuple[_Word, ...] = ()
    scalars: tuple[float, ...] = ()
    dtype: _Name
    output_shape: Annotated[tuple[_Size, ...], Meta(min_length=1, max_length=32)]
    output_bytes: _Size
    input_bytes: Annotated[tuple[_Size, ...], Meta(max_length=8)]
    useful_bytes: _Size
    reference: _Name
    exact_dtype: _Name | None = None
    near: Near | None = None
    in_l2: bool = False
    isolated: bool = False
    samples: Annotated[int, Meta(ge=1, le=1000)]
    most: Annotated[int, Meta(ge=0, le=1000)] = 0
    every: Annotated[int, Meta(ge=0, le=1000)] = 0

    @property
    def set_bytes(self) -> int:
        """Bytes that one launch reads and writes, if it touches all of its arrays."""
        return self.output_bytes + sum(self.input_bytes)

    def shares_buffers(self, other: Job) -> bool:
        """Whether both can be timed in turns on the same buffers, by the same instrument."""
        mine, others = (
            (job.output_bytes, job.input_bytes, job.useful_bytes, job.exact_dtype, job.in_l2, job.isolated, job.samples)
            for job in (self, other)
        )
        return mine == others


class Ready(Message, frozen=True, kw_only=True):
    """The measuring process waits for a job, for this device.

    Parameters
    ----------
    arch : str
        The device's architecture, such as "sm_90".
    multiprocessors : int
        How many it has.
    conditions : str
        The fingerprint of the instrument and of the GPU; empty if nothing says which GPU it is.
    """

    arch: str
    multiprocessors: int
    conditions: str = ""


class ReferenceRequest(Message, frozen=True):
    """Asks for the job's reference to be written into the memory whose handle follows."""

    length: _Size


class ReferenceLength(Message, frozen=True):
    """The reference was written; this is its length."""

    length: _Size


class Outcome(Message, frozen=True, kw_only=True):
    """What was measured.

    Parameters
    ----------
    samples : tuple of float
        Seconds a launch.
    copies : tuple of float
        Seconds of a copy of the same useful bytes, each taken right before the sample in its place.
    held_back : tuple of str
        Why the GPU did not run this as fast as it might.
    seconds : dict of str to float
        Where the process spent its time.
    """

    samples: tuple[float, ...]
    copies: tuple[float, ...]
    held_back: tuple[str, ...] = ()
    seconds: dict[str, float] = {}


class Problem(Message, frozen=True, kw_only=True):
    """There is no outcome, and why.

    Parameters
    ----------
    kind : {"skipped", "wrong", "failed"}
        Whether the configuration cannot be measured here, its output is wrong, or the measuring itself broke off.
    text : str
        What a person should know.
    """

    kind: Annotated[str, Meta(pattern="^(skipped|wrong|failed)$")]
    text: str


class Again(Message, frozen=True):
    """Ask again: this process has measured another commit and ends; the next one is fresh."""


Answer = Ready | ReferenceRequest | Outcome | Problem | Again
