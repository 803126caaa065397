"""Models of stored files, for writing and reading. Records omit default values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

#: Maximum number of configurations in the results of one commit.
MAX_CONFIGURATIONS = 100_000

Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(max_length=2_000)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
#: A time as text (ISO 8601), and a time in milliseconds since 1970.
Moment = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9-]{5}T[0-9:.]{8,}(\+00:00)?\Z")]
Time = Annotated[int, Meta(ge=0, lt=1 << 43)]
Seconds = Annotated[float, Meta(ge=0, lt=1e7)]
Count = Annotated[int, Meta(ge=0, lt=1 << 40)]
Rate = Annotated[float, Meta(gt=0, lt=1e15)]
#: Facts of a machine or its GPU, by name.
Facts = dict[Name, Any]
#: One value per configuration, as asv writes it: NaN if it was skipped or not selected, null if it failed.
Column = list[float | None] | None


class StoredRow(msgspec.Struct, array_like=True, eq=False):
    """A benchmark's row in a file of asv, by column; null stands for a column of nulls."""

    result: Column
    params: list[list[Text]]
    version: Text
    started_at: Time | None = None
    duration: Seconds | None = None
    stats_ci_99_a: Column = None
    stats_ci_99_b: Column = None
    stats_q_25: Column = None
    stats_q_75: Column = None
    stats_number: Column = None
    stats_repeat: Column = None
    samples: list[list[float] | None] | None = None
    profile: Any = None

    def __post_init__(self) -> None:
        count = count_configurations(self.params)
        for column in _OF_CONFIGURATIONS:
            values = getattr(self, column)
            if values is not None and len(values) != count:
                raise ValueError(f"{column} has {len(values)} values for {count} configurations")


_OF_CONFIGURATIONS = ("result", *(name for name in StoredRow.__struct_fields__ if name.startswith("stats_")), "samples")


def count_configurations(*benchmark_axes: Sequence[Sequence[str]]) -> int:
    """Return the total number of configurations of benchmarks with these axes.

    Raises ValueError if there are more than MAX_CONFIGURATIONS.
    """
    count = sum(math.prod(map(len, axes)) for axes in benchmark_axes)
    if count > MAX_CONFIGURATIONS:
        raise ValueError(f"has {count} configurations; at most {MAX_CONFIGURATIONS} are allowed")
    return count


class Document(msgspec.Struct, eq=False, weakref=True):
    """One of asv's files: the results of a commit in an environment."""

    commit_hash: Hash
    env_name: Name
    date: Time
    params: dict[Name, Any]
    python: Name
    result_columns: list[str]
    results: dict[Name, StoredRow]
    version: Literal[2]  # asv's Results.api_version
    env_vars: dict[Name, Text] = {}

    def get_row(self, benchmark: str) -> dict[str, Any]:
        """Return a benchmark's row: column -> its values."""
        return msgspec.structs.asdict(self.results[benchmark])

    def without_samples(self) -> Document:
        """Return the same results without samples and their statistics."""
        absent = dict.fromkeys(_OF_CONFIGURATIONS[1:])
        rows = {name: msgspec.structs.replace(row, **absent) for name, row in self.results.items()}
        return msgspec.structs.replace(self, results=rows)

    def __post_init__(self) -> None:
        if self.result_columns != list(StoredRow.__struct_fields__):
            raise ValueError(f"result_columns is {self.result_columns}; asv has {list(StoredRow.__struct_fields__)}")
        count_configurations(*(row.params for row in self.results.values()))


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The base of the models of records' lines and of their parts."""


class ThrottledConfiguration(Record):
    """A configuration that was timed while the GPU was throttled or shared."""

    commit: Hash
    configuration: Text
    reasons: list[Text]


class SkippedConfigurations(Record):
    """The number of configurations of a benchmark that were skipped, or that failed, for one reason."""

    commit: Hash
    benchmark: Name
    reason: Text
    configurations: Count


class RunLine(Record):
    """A line of `runs.jsonl`. Lines from before 2026-11-26 have more facts, which are ignored."""

    commits: Annotated[list[Hash], Meta(min_length=1)]
    started: Moment = ""
    ended: Moment = ""
    peak_bytes_per_second: Rate | None = None
    #: Facts of the GPU from NVML, before and after the run.
    before: Facts = {}
    after: Facts = {}
    #: Identity of the run, since 2026-11-23, as the next two fields.
    run: Name | None = None
    #: Commit -> benchmark -> asv's start time.
    began: dict[Hash, dict[Name, Time]] = {}
    #: Commit -> benchmark -> samples per round, such as "5 7" for two rounds -> configurations; [] means all others.
    processes: dict[Hash, dict[Name, dict[Text, list[Text]]]] = {}
    gpu: Text | None = None
    arch: Name | None = None
    nvcc: Text | None = None
    asv: Text | None = None
    asv_runner: Text | None = None
    #: Generator of PTX, such as Triton -> its version.
    generators: dict[Name, Text] = {}
    #: Files of the suite and the libraries that were imported with uncommitted changes.
    uncommitted: list[Text] = []
    host: Facts = {}
    held_back: list[ThrottledConfiguration] = []
    skipped: list[SkippedConfigurations] = []
    failed: list[SkippedConfigurations] = []
    #: Benchmark -> configurations selected by a partial run, as asv writes them.
    selected: dict[Name, list[Text]] = {}
    #: Since 2026-11-30: another commit -> benchmark -> parameters -> time of that commit's code on this run's GPU.
    controls: dict[Hash, dict[Name, dict[Text, Seconds]]] = {}


class CubinsLine(Record):
    """A line of `cubins.jsonl`: `cubins` has the hashes of cubins, `code` those of the machine code alone."""

    commit: Hash
    arch: Name
    cubins: dict[Text, Sha256]
    nvcc: Name | None = None
    code: dict[Text, Sha256] = {}
    #: Since 2026-11-26: kernel and dtype -> threads of a block, and bytes of dynamic shared memory.
    blocks: dict[Text, tuple[Count, Count]] = {}


class FingerprintsLine(Record):
    """A line of `fingerprints.jsonl`: the fingerprints of measured configurations, and the origins of reused numbers.

    `fingerprints` maps class -> parameters -> fingerprint, `reused` class -> measured commit -> parameters.
    """

    commit: Hash
    started: Moment
    ended: Moment
    fingerprints: dict[Name, dict[Text, Name]]
    reused: dict[Name, dict[Hash, list[Text]]]
    nvcc: Name | None = None
    run: Name | None = None


class AccessCost(Record):
    """The cost of a memory access in a source line: its sectors or wavefronts.

    `now` and `best` are pictures of one request: a row is a bit mask of lanes or banks.
    """

    file: Count
    line: Count
    unit: Literal["sectors", "wavefronts"]
    amount: Count
    now: list[Count] = []
    best: list[Count] = []


class CostsLine(Record):
    """A line of `lines.jsonl`: a kernel's source with the cost of each line.

    `accesses` number the files in the order of `text`. Lines from before 2026-11-26 have no accesses.
    """

    key: Name
    counter: Name
    launch: Text
    text: Annotated[str, Meta(max_length=50_000)]
    accesses: list[AccessCost] = []


#: Pattern of the names of result files: `<first digits of the hash>-<environment>.json`, `.jsonl` for another compiler.
RESULT_NAME = re.compile(r"(?P<commit>[0-9a-f]{8})-(?P<environment>[A-Za-z0-9][A-Za-z0-9._-]*)\.jsonl?")
