"""A shard: the configurations that one worker measures in one run of asv, over some commits."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from kernelwatch.asv import suite
from kernelwatch.asv.suite import Kind
from kernelwatch.store.accept.refusal import RefusedError, require

#: Configurations of a benchmark by their texts, as asv writes them behind its name; none stands for all.
Selection = Mapping[str, Sequence[str]]

#: Series that a shard has at most. A worker that is killed loses its shard; asv begins anew for each.
LARGEST = 100

#: The name of an entry of the cache of compiled kernels.
ENTRY = r"^[0-9a-f]{2}/[0-9a-f]{64}\.json\Z"


@dataclass(frozen=True)
class Series:
    """One timed configuration, over all commits.

    Parameters
    ----------
    benchmark : str
        The timed one; the benchmark with its ratios to copies belongs to it.
    configuration : str
        Its parameters, as asv writes them behind the name.
    work : tuple
        Equal for series that share inputs and references: together they are measured faster.
    """

    benchmark: str
    configuration: str
    work: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Shard:
    """What a worker measures.

    Parameters
    ----------
    commits : tuple of str
        Whose packages are measured.
    selected : mapping of str to sequence of str
        The configurations.
    device : str, optional
        UUID of the GPU that has measured these series before; any of the machine's kind if not given.
    overlap : str, optional
        The one of the commits that another GPU has measured before: it shows the step between the two.
    control : str, optional
        The configuration of the plain copy that is measured as a control only: another shard has its series.
    """

    commits: tuple[str, ...]
    selected: Selection
    device: str | None = None
    overlap: str | None = None
    control: str | None = None

    @property
    def key(self) -> str:
        """A name that only this shard has."""
        said = [self.commits, {name: list(texts) for name, texts in self.selected.items()}, self.device, self.overlap]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    @property
    def series(self) -> Selection:
        """The configurations whose values are to be kept: all but the control."""
        copy = control().benchmark
        kept = {
            name: tuple(text for text in texts if (name, text) != (copy, self.control))
            for name, texts in self.selected.items()
        }
        return {name: texts for name, texts in kept.items() if texts or not self.selected[name]}

    @property
    def patterns(self) -> list[str]:
        """The regular expressions that make `asv run --bench` select these configurations and no others."""
        return [
            rf"^{re.escape(name)}\((?:{'|'.join(map(re.escape, texts))})\)$" if texts else rf"^{re.escape(name)}(\(|$)"
            for name, texts in self.selected.items()
        ]

    @property
    def size(self) -> int:
        """Times to take: configurations of timed benchmarks on all commits."""
        timed = (texts for name, texts in self.selected.items() if suite.BENCHMARKS[name][0] is Kind.TIMED)
        return len(self.commits) * sum(map(len, timed))


@dataclass(frozen=True)
class Outcome:
    """What a worker has measured.

    Parameters
    ----------
    device : str
        UUID of the GPU, or the worker's name without one.
    files : mapping of str to bytes
        The folder of results, by name.
    compiled : mapping of str to bytes
        New entries of the cache of compiled kernels, by name; other workers write them there.
    seconds : float
        How long it took.
    problem : str
        Why nothing was measured.
    """

    device: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    compiled: Mapping[Annotated[str, msgspec.Meta(pattern=ENTRY)], bytes] = field(default_factory=dict)
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    problem: str = ""

    def packed(self) -> bytes:
        """Return it as it travels."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def read(cls, packed: Any) -> Outcome:
        """Read what travelled. Raises RefusedError, also of a problem."""
        try:
            found = msgspec.msgpack.decode(packed, type=cls)
            require(not found.problem, found.device, found.problem)
            return found
        except (msgspec.MsgspecError, TypeError) as error:
            raise RefusedError(f"what came back is no outcome: {error}") from None


def texts(benchmark: str) -> list[str]:
    """Return the configurations of a benchmark, as asv writes them."""
    return [", ".join(map(repr, point.values())) for point in suite.BENCHMARKS[benchmark][1].points()]


def series() -> Iterator[Series]:
    """Yield all series that are timed."""
    for benchmark, (kind, sweep) in suite.BENCHMARKS.items():
        if kind is Kind.TIMED:
            for text, point in zip(texts(benchmark), sweep.points(), strict=True):
                work = benchmark, sweep.launch(point).dtype, suite.useful_bytes(benchmark, point) or 0
                yield Series(benchmark, text, work)


def untimed() -> list[str]:
    """Return the benchmarks that no GPU has a part in."""
    return [name for name, (kind, _) in suite.BENCHMARKS.items() if kind in (Kind.COUNTED, Kind.COMPILED)]


def control() -> Series:
    """Return the plain copy that each shard measures."""
    benchmark, sweep = suite.time(suite.DEVICE_COPY), suite.DEVICE_COPY
    return Series(benchmark, ", ".join(map(repr, sweep.chosen().values())))


def select(chosen: Iterable[Series]) -> dict[str, tuple[str, ...]]:
    """Return the configurations of series: their times, and their ratios to copies."""
    found: dict[str, list[str]] = {}
    for one in chosen:
        for benchmark in (one.benchmark, suite.control(one.benchmark)):
            if benchmark in suite.BENCHMARKS:
                found.setdefault(benchmark, []).append(one.configuration)
    return {benchmark: tuple(texts) for benchmark, texts in found.items()}


def seconds(one: Series) -> float:
    """Return roughly what a series takes a commit (docs/evidence/fleet.md, "What a series costs")."""
    return 0.10 + 0.12e-9 * (one.work[-1] if one.work else 0)


def cut(chosen: Iterable[Series], devices: int, largest: int = LARGEST) -> list[list[Series]]:
    """Deal series into parts: as many for each device, which take about as long, of at most so many series.

    Series that share work stay together, but for pieces that take more than a quarter of a part.
    """
    by_work = sorted(chosen, key=lambda one: one.work)
    for rounds in itertools.count(-(-len(by_work) // (devices * largest))):
        parts = _dealt(by_work, devices * rounds)
        if max(map(len, parts), default=0) <= largest:
            break  # else there are many that take little: more parts
    return [part for part in parts if part]


def _dealt(by_work: Sequence[Series], count: int) -> list[list[Series]]:
    """Deal the most expensive pieces first, each to the part that costs least so far."""
    parts: list[list[Series]] = [[] for _ in range(count)]
    share = sum(map(seconds, by_work)) / max(1, count)
    pieces = []
    for _, group in itertools.groupby(by_work, key=lambda one: one.work):
        piece = list(group)
        several = math.ceil(4 * sum(map(seconds, piece)) / share)
        pieces += [piece[first::several] for first in range(min(several, len(piece)))]
    costs = [(0.0, number) for number in range(count)]
    for piece in sorted(pieces, key=lambda piece: sum(map(seconds, piece)), reverse=True):
        cost, number = costs[0]
        parts[number] += piece
        heapq.heapreplace(costs, (cost + sum(map(seconds, piece)), number))
    return parts
