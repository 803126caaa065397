"""The shapes and bounds of what is stored, as it is written and as it is accepted.

A field, a letter or a number that no model here has is refused. What is as it is by default is not written.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import Launch

V = TypeVar("V")

#: Of one line, in the letters that this project writes: none looks like another one, or is markup to a page.
Text = Annotated[str, Meta(pattern=r"^[ !#-%'-;=?-~µ×]*\Z", max_length=2_000)]
#: The same with markup: it reaches this project's pages only, which escape it.
Prose = Annotated[str, Meta(pattern=r"^[ -~µ×]*\Z", max_length=2_000)]
Counts = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,4}( [1-9][0-9]{0,4}){0,99}\Z", max_length=600)]
Stops = Annotated[str, Meta(pattern=r"^(sufficed|limit)( (sufficed|limit)){0,99}\Z", max_length=900)]
Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]*\Z", max_length=100)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+\Z", max_length=200)]
#: What asv took a time of besides benchmarks.
Step = Annotated[str, Meta(pattern=r"^(<build>|<setup_cache [A-Za-z0-9_.]+:[0-9]+>)\Z", max_length=200)]
#: A benchmark's source, which asv's pages show.
Code = Annotated[str, Meta(pattern=r"^[\n -~¡-ÿ]*\Z", max_length=50_000)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z")]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Fingerprint = Annotated[str, Meta(pattern=r"^[0-9a-f]{16}(-[0-9]+)?\Z")]
Arch = Annotated[str, Meta(pattern=r"^sm_[0-9]{2,3}[af]?\Z")]
#: What a run is known by: 32 hexadecimal digits.
Identity = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
Moment = Annotated[str, Meta(pattern=r"^20[2-9][0-9]-[0-9-]{5}T[0-9:]{8}\+00:00\Z")]

Seconds = Annotated[float, Meta(gt=0, lt=1e5)]
Count = Annotated[float, Meta(ge=0, lt=1e15)]
#: Seconds that may be none, and milliseconds since 1970.
Spent = Annotated[float, Meta(ge=0, lt=1e7)]
Time = Annotated[int, Meta(ge=0, lt=1 << 43)]
Small = Annotated[int, Meta(ge=0, lt=1 << 40)]
#: Of a machine or its GPU, by name, what `Run` checks: msgspec 0.22 crashes as it frees a union of a list and a text
#: that has a pattern.
Facts = dict[Word, Any]
#: NaN, where asv skipped; the ends of an interval of few samples. `refusal.parse` has them as bytes.
Skipped = Annotated[bytes, Meta(max_length=3)]
Infinite = Annotated[bytes, Meta(min_length=8)]


class Model(msgspec.Struct, forbid_unknown_fields=True):
    """What models share: nothing else may be there."""


class Row(Model, Generic[V], array_like=True):
    """What asv stores of a benchmark, column by column; null stands for nulls of all configurations."""

    result: list[V | Skipped | None] | None
    params: list[list[Text]]
    version: Text
    started_at: Time | None = None
    duration: Spent | None = None
    stats_ci_99_a: list[V | Infinite | None] | None = None
    stats_ci_99_b: list[V | Infinite | None] | None = None
    stats_q_25: list[V | None] | None = None
    stats_q_75: list[V | None] | None = None
    stats_number: list[Small | None] | None = None
    stats_repeat: list[Small | None] | None = None
    samples: list[Annotated[list[V], Meta(max_length=100_000)] | None] | None = None
    profile: None = None  # asv would load one with marshal


def row(kind: object) -> Any:
    """The model of results of a benchmark of a type."""
    return Row[Seconds if kind == "time" else Count]  # type: ignore[misc]


class Document(Model):
    """One file of asv's: the results of a commit, rows of which `Row` describes."""

    commit_hash: Hash
    env_name: Word
    date: Time
    params: dict[Word, Text]
    python: Word
    requirements: dict[Word, Text]
    env_vars: Annotated[dict[str, Word], Meta(max_length=1)]  # the compiler; any other would begin a series
    result_columns: list[str]
    results: dict[Name, Any]
    durations: dict[Step, Spent]
    version: Literal[2]  # asv's Results.api_version

    def __post_init__(self) -> None:
        if self.result_columns != list(Row.__struct_fields__):
            raise ValueError("result_columns are not asv's")


class Benchmark(Model):
    """A benchmark, as asv's `benchmarks.json` has it."""

    name: Name
    version: Text
    type: Literal["time", "track"]
    params: list[list[Text]]
    param_names: list[Text]
    unit: Text = ""
    code: Code = ""
    pretty_name: Text = ""
    benchmark_name: Text = ""
    setup_cache_key: Text | None = None
    setup_cache_timeout: Spent | None = None
    timeout: Spent | None = None
    min_run_count: Small | None = None
    number: Small | None = None
    repeat: Small | None = None
    rounds: Small | None = None
    sample_time: Spent | None = None
    warmup_time: Spent | None = None

    def __post_init__(self) -> None:
        if len(self.params) != len(self.param_names):
            raise ValueError("params and param_names are not of one length")


class Record(Model, omit_defaults=True, kw_only=True):
    """What lines of records share, and their parts."""


class Held(Record):
    """Of a record: a configuration that the GPU held back."""

    commit: Hash
    configuration: Text
    reasons: list[Prose]


class Skip(Record):
    """Of a record: configurations that were skipped, or that failed."""

    commit: Hash
    benchmark: Name
    reason: Prose
    configurations: Small


class Checked(Record):
    """Of a check: a configuration, and what was measured over what is stored."""

    configuration: Text
    ratio: Annotated[float, Meta(ge=0, lt=1e9)] | None
    threshold: Annotated[float, Meta(ge=0, lt=1e3)]


class Check(Record):
    """Of a record: what was measured at a commit although numbers were stored."""

    commit: Hash
    checked: list[Checked]
    #: Until 2026-11-25: what chose them at random.
    seed: Small | None = None


class Run(Record):
    """A line of `runs.jsonl`."""

    commits: Annotated[list[Hash], Meta(min_length=1)]
    started: Moment
    ended: Moment
    peak_bytes_per_second: Annotated[float, Meta(gt=0, lt=1e15)] | None
    #: The GPU at two moments, as NVML tells of it.
    before: Facts
    after: Facts
    #: Not of runs of before 2026-11-23: its identity; commit -> benchmark -> when asv began with it; and commit ->
    #: benchmark -> samples of each process, as "5 7" of one and the next -> configurations, none for all others.
    run: Identity | None = None
    began: dict[Hash, dict[Name, Time]] = {}
    processes: dict[Hash, dict[Name, dict[Counts, list[Text]]]] = {}
    #: Not of runs of before 2026-11-25: in the same way, why each process took no more samples, as "sufficed limit".
    stopped: dict[Hash, dict[Name, dict[Stops, list[Text]]]] = {}
    gpu: Text | None = None
    arch: Arch | None = None
    nvcc: Text | None = None
    asv: Text | None = None
    asv_runner: Text | None = None
    host: Facts = {}
    spent: dict[Word, Spent] = {}
    checks: list[Check] = []
    #: Until 2026-11-23: when the runs began that this one continued.
    continued: list[Moment] = []
    held_back: list[Held] = []
    skipped: list[Skip] = []
    failed: list[Skip] = []
    #: Of a run of some configurations: benchmark -> those it selected, as asv writes them.
    selected: dict[Name, list[Text]] = {}

    def __post_init__(self) -> None:
        every = (*self.before.values(), *self.after.values(), *self.host.values())
        lists = [each for each in every if isinstance(each, list)]
        others = [each for each in every if not isinstance(each, list)]
        for found, model in ((lists, list[list[Word]]), (others, list[bool | Small | Text | None])):
            msgspec.convert(found, model, builtin_types=[bytes])


class Cubins(Record):
    """A line of `cubins.jsonl`: hashes of cubins, and of their machine code alone."""

    commit: Hash
    arch: Arch
    cubins: dict[Text, Sha256]
    nvcc: Word | None = None
    code: dict[Text, Sha256] = {}

    def __post_init__(self) -> None:
        for name in (*self.cubins, *self.code):
            try:
                Launch.parse(name)
            except ArgumentError as error:
                raise ValueError(f"a key is no launch: {error}") from None


class Instructions(Record):
    """A line of `instructions.jsonl`: what machine code consists of."""

    code: Sha256
    instructions: dict[Word, Small]


class Fingerprints(Record):
    """A line of `fingerprints.jsonl`: what was measured, by fingerprint, and whose numbers the rest has."""

    commit: Hash
    started: Moment
    ended: Moment
    fingerprints: dict[Name, dict[Text, Fingerprint]]
    reused: dict[Name, dict[Hash, list[Text]]]
    nvcc: Word | None = None
    run: Identity | None = None


class Lines(Record):
    """A line of `lines.jsonl`: a kernel's source with what each line costs."""

    key: Fingerprint
    counter: Fingerprint
    launch: Text
    text: Code


#: `<beginning of the hash>-<environment>.json`.
RESULT = re.compile(r"(?P<commit>[0-9a-f]{8})-(?P<environment>[A-Za-z0-9][A-Za-z0-9._-]*)\.json")
