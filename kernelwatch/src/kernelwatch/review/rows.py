"""A configuration in two commits: its values and the verdict on them, or why a value is missing."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.suite.metrics import GLOBAL_SECTORS
from ptxcount.util.grammar import count_noun

#: Parameters whose values reports show without the parameter's name.
_PLAIN = ("copy", "dtype", "arch")


class Row(msgspec.Struct, frozen=True):
    """A configuration with a value in both commits.

    `name` is `benchmark` with `params`, as in asv's tables. `kind` is one of KINDS. `base` and `head` are the values,
    in `unit`; lower is better. `judgement` is the verdict on the change.

    `useful_bytes` (of times and sectors) are the bytes that a launch must move. `copies` are both times divided by the
    copy's times, if a copy was timed. `kernel` is the launched kernel, or the benchmark if the suite does not know the
    launch. `code_unchanged` is true if both commits launch the same machine code; None if a run did not record this.
    `verified` is false for times and counts of a kernel without a reference. `decides` is false for a changed number
    that only explains others. `conditions` describe how the launch was timed, such as "from L2".
    """

    name: str
    kind: str
    unit: str
    base: float
    head: float
    judgement: Judgement
    useful_bytes: int | None = None
    copies: tuple[float, float] | None = None
    benchmark: str = ""
    params: Mapping[str, str] = {}
    kernel: str = ""
    code_unchanged: bool | None = None
    verified: bool = True
    decides: bool = True
    conditions: tuple[str, ...] = ()

    @property
    def flags(self) -> str:
        """The flags of nvcc; empty if the benchmark has none."""
        return self.params.get("flags", "")

    @property
    def arch(self) -> str | None:
        """The architecture of a compiled number; None for other numbers."""
        return self.params.get("arch")

    @property
    def metric(self) -> str:
        """Name of a counted or compiled number, such as "load sectors" or "registers"."""
        return self.benchmark.rpartition(".track_")[2].replace("_", " ")

    @property
    def launch_key(self) -> tuple[str, ...]:
        """Key of a launch, which all its counted numbers share: the benchmark class, and the values of parameters."""
        return (self.benchmark.rpartition(".track_")[0], *self.params.values())

    @property
    def code_key(self) -> tuple[str, str, str]:
        """Key of a kernel's machine code, the same for all architectures: kernel, dtype and flags."""
        return self.kernel, self.params.get("dtype", ""), self.flags

    @property
    def counts_global_sectors(self) -> bool:
        """True for numbers of sectors of global memory."""
        return self.benchmark.rpartition(".track_")[2] in GLOBAL_SECTORS

    @property
    def rates(self) -> tuple[float, float] | None:
        """Useful bytes per second in base and in head; None if unknown, or if the values are not positive times."""
        if self.kind != TIMED or self.useful_bytes is None or min(self.base, self.head) <= 0:
            return None
        return self.useful_bytes / self.base, self.useful_bytes / self.head

    @property
    def parameters_text(self) -> str:
        """The parameters without kernel and flags, and the conditions, as in "12800x12800 float32 from L2"."""
        others = {name: value for name, value in self.params.items() if name not in ("kernel", "flags")}
        words = [value if " x " in name or name in _PLAIN else f"{name} {value}" for name, value in others.items()]
        return " ".join([*words, *self.conditions])

    @property
    def size(self) -> float:
        """Size of the change: the absolute value of log(head / base); infinite if only one value is 0."""
        ratio = self.judgement.ratio
        return math.inf if ratio <= 0 or math.isinf(ratio) else abs(math.log(ratio))

    def sort_key(self) -> tuple[int, float, str]:
        """Return the sort key, worst first: by verdict, then by size of the change."""
        return self.judgement.verdict.rank, -self.size, self.name


@dataclass(frozen=True)
class UnpairedConfiguration:
    """A configuration that is not compared or cannot be launched, and the reason."""

    name: str
    benchmark: str
    reason: str
    kernel: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """The configurations of a kernel that fail for the same reason; `verdict` is BROKEN, FAILED or REPAIRED."""

    verdict: Verdict
    kernel: str
    reason: str
    configurations: tuple[UnpairedConfiguration, ...]

    def __str__(self) -> str:
        kinds = {classify_benchmark(configuration.benchmark) for configuration in self.configurations}
        nouns = {"time" if kind == TIMED else "count" for kind in kinds}
        noun = nouns.pop() if len(nouns) == 1 else "configuration"
        where = {Verdict.BROKEN: "head alone", Verdict.FAILED: "both", Verdict.REPAIRED: "base alone"}[self.verdict]
        return f"{count_noun(len(self.configurations), noun)} failed in {where}: {self.kernel}: {self.reason}"


def group_failures(verdict: Verdict, unpaired: Iterable[UnpairedConfiguration]) -> list[Failure]:
    """Return one failure for each kernel and reason, over all benchmarks; those with most configurations first."""
    by_reason: dict[tuple[str, str], list[UnpairedConfiguration]] = {}
    for configuration in unpaired:
        key = configuration.kernel or configuration.benchmark, configuration.reason
        by_reason.setdefault(key, []).append(configuration)
    grouped = [Failure(verdict, *key, tuple(configurations)) for key, configurations in by_reason.items()]
    return sorted(grouped, key=lambda failure: -len(failure.configurations))
