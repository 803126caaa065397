"""Messages between a run and the process of a commit: JSON, one per line.

A group is a class of benchmarks, named with its module: `time_copy.OffsetCopy`. An index is the place of a
configuration in its group, in asv's order.
"""

import multiprocessing
import os
from typing import Any, NamedTuple

import msgspec


class StoredNumbers(msgspec.Struct):
    """Numbers that are stored for a fingerprint, and the commit at which they were measured."""

    commit: str
    #: Benchmark -> its number, or its samples.
    values: dict[str, Any]
    #: Largest relative difference up to which a time measured again agrees; counted numbers must be identical.
    threshold: float = 0.0
    #: Index of the line with the fingerprint among the machine's recorded lines, oldest first.
    run: int = 0


#: Numbers of earlier runs: group -> fingerprint -> stored numbers.
StoredByGroup = dict[str, dict[str, StoredNumbers]]


class Task(msgspec.Struct):
    """A request to the commit's process."""

    #: Group -> the selected indices.
    indices: dict[str, list[int]] = {}
    #: Names of the selected benchmarks.
    benchmarks: list[str] = []
    #: Group -> the version of its benchmarks. Group -> the number of rounds of its times.
    versions: dict[str, str] = {}
    rounds: dict[str, int] = {}
    #: Reusable numbers of earlier runs, and the commit to measure, whose own numbers do not count as reused.
    stored: StoredByGroup = {}
    commit: str = ""
    #: The machine's folder of results, to count the source lines that it lacks; empty to count none.
    source_lines_folder: str = ""
    #: Index of the commit in an interleaved run, if the process must only write the jobs of its times; else None.
    interleaved_index: int | None = None


class Discovery(msgspec.Struct, tag=True):
    """The benchmarks that the commit's process discovered."""

    #: Entries of asv's `benchmarks.json`.
    benchmarks: list[dict[str, Any]]
    #: Group -> the benchmarks that share one measurement, a time first.
    groups: dict[str, list[str]]
    #: Generator of the commit's PTX -> its version.
    generators: dict[str, str] = {}


class ImportFailure(msgspec.Struct, tag=True):
    """An error on importing the commit's package or the suite. `is_missing` is true for an ImportError."""

    text: str
    is_missing: bool


class RoundStart(msgspec.Struct, tag=True):
    """A message that a round of a configuration begins."""

    group: str
    index: int


class MachineCode(NamedTuple):
    """The SHA-256 of a cubin, its name as in `Launch.code_name`, its architecture, and the SHA-256 of its code alone.

    The last hash is empty if it was not computed.
    """

    cubin_sha256: str
    name: str
    arch: str
    code_sha256: str = ""


class RunConfiguration(msgspec.Struct, tag=True, omit_defaults=True, kw_only=True):
    """A configuration of a run, with its numbers or the reason why it has none."""

    group: str
    index: int
    #: Parameters, as reports print them.
    params: str
    #: Hash of everything that the numbers depend on. It is empty if unknown; then the numbers are never reused.
    fingerprint: str = ""
    #: None if it was not compiled.
    machine_code: MachineCode | None = None
    #: Threads of a block and its bytes of dynamic shared memory; None if they depend on the launch, or if the
    #: configuration was timed or counted.
    block: tuple[int, int] | None = None
    #: Other commit whose numbers are reused; empty if the numbers are the commit's own.
    reused: str = ""
    #: Reason of a skip; error of a failure.
    skipped: str = ""
    failed: str = ""
    #: Benchmark -> its number or samples.
    numbers: dict[str, Any] = {}
    #: Number of samples of each round of a time.
    round_sizes: list[int] = []
    #: Reasons why the GPU may have been slower: reduced clocks, or another process.
    throttle_reasons: list[str] = []


class Difference(msgspec.Struct, tag=True):
    """A configuration whose check differs from its stored numbers, or fails. Then no number of its kind is reused."""

    configuration: str
    #: Measured over stored number; None if it could not be measured.
    ratio: float | None


class SourceLine(msgspec.Struct, tag=True):
    """The costs of a kernel's source lines, as a line of their record."""

    line: dict[str, Any]


Message = Discovery | ImportFailure | RoundStart | RunConfiguration | Difference | SourceLine


class Sender:
    """Writes messages to a file descriptor, from this process and from its forks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = multiprocessing.get_context("fork").Lock()

    def __call__(self, message: Message) -> None:
        """Write a whole message."""
        line = memoryview(msgspec.json.encode(message) + b"\n")
        with self._lock:
            while line:
                line = line[os.write(self._descriptor, line) :]
