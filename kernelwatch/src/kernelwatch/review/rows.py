"""A configuration of two commits: its values and the verdict, or why one of them has none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelwatch.error_text import count_noun
from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.suite.metrics import GLOBAL_SECTORS

#: Parameters whose values need no name.
_PLAIN = ("copy", "dtype", "arch")


@dataclass(frozen=True)
class Row:
    """One configuration that both commits have a value of.

    `name` is benchmark and parameters, as asv's tables have them; `benchmark` and `params` are the two apart. `kind` is
    one of KINDS. Of `base` and `head`, in a `unit` or none, lower is better; `judgement` says what to make of them.

    `useful_bytes` is what a launch must move, of times and sectors. `copies` are the times of both commits in copies of
    the same bytes, where one was timed beside them. `kernel` is what it launches; of another suite's benchmark, the
    benchmark. `code_unchanged` says whether both commits launch the same machine code, if a run says so. What a kernel
    that is not `verified` writes was compared with no reference. A number that does not `decide` explains others. The
    `conditions` are words on how it was timed, such as "from L2".
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
    params: Mapping[str, str] = field(default_factory=dict)
    kernel: str = ""
    code_unchanged: bool | None = None
    verified: bool = True
    decides: bool = True
    conditions: tuple[str, ...] = ()

    @property
    def flags(self) -> str:
        """The flags of nvcc; empty where the benchmark has none."""
        return self.params.get("flags", "")

    @property
    def arch(self) -> str | None:
        """The architecture that a compiled number is of; None for others."""
        return self.params.get("arch")

    @property
    def metric(self) -> str:
        """Name of a counted or compiled number: "load sectors", "registers"."""
        return self.benchmark.rpartition(".track_")[2].replace("_", " ")

    @property
    def launch(self) -> tuple[str, ...]:
        """Key that the counted numbers of one launch share: the class, and the values of its parameters."""
        return (self.benchmark.rpartition(".track_")[0], *self.params.values())

    @property
    def code(self) -> tuple[str, str, str]:
        """The machine code that it is of, on one architecture: kernel, dtype and flags."""
        return self.kernel, self.params.get("dtype", ""), self.flags

    @property
    def is_moved(self) -> bool:
        """True for numbers of sectors of global memory."""
        return self.benchmark.rpartition(".track_")[2] in GLOBAL_SECTORS

    @property
    def rates(self) -> tuple[float, float] | None:
        """Useful bytes a second of base and head; None where they make no sense."""
        if self.kind != TIMED or self.useful_bytes is None or min(self.base, self.head) <= 0:
            return None
        return self.useful_bytes / self.base, self.useful_bytes / self.head

    @property
    def parameters(self) -> str:
        """Parameters besides kernel and flags: "12800x12800 float32 from L2", "offset 3 float32"."""
        others = {name: value for name, value in self.params.items() if name not in ("kernel", "flags")}
        words = [value if " x " in name or name in _PLAIN else f"{name} {value}" for name, value in others.items()]
        return " ".join([*words, *self.conditions])

    @property
    def size(self) -> float:
        """Size of the change, whatever its direction; infinite where a value is 0."""
        ratio = self.judgement.ratio
        return math.inf if ratio <= 0 or math.isinf(ratio) else abs(math.log(ratio))

    def sort_key(self) -> tuple[int, float, str]:
        """Return the sort key, worst first: by verdict, then by size of the change."""
        return list(Verdict).index(self.judgement.verdict), -self.size, self.name


@dataclass(frozen=True)
class UnpairedConfiguration:
    """A configuration that only one commit has a value of, or none, and why the other has none."""

    name: str
    benchmark: str
    reason: str
    kernel: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """A kernel's configurations that fail for one reason, with a `verdict` of FAILING."""

    verdict: Verdict
    kernel: str
    reason: str
    configurations: tuple[UnpairedConfiguration, ...]

    def __str__(self) -> str:
        timed = {classify_benchmark(configuration.benchmark) == TIMED for configuration in self.configurations}
        noun = "configuration" if len(timed) > 1 else "time" if timed == {True} else "count"
        where = {Verdict.BROKEN: "head alone", Verdict.FAILED: "both", Verdict.REPAIRED: "base alone"}[self.verdict]
        return f"{count_noun(len(self.configurations), noun)} failed in {where}: {self.kernel}: {self.reason}"


def group_failures(verdict: Verdict, unpaired: Iterable[UnpairedConfiguration]) -> list[Failure]:
    """Return a failure a kernel and reason, whatever the metric; those of most configurations first."""
    by_reason: dict[tuple[str, str], list[UnpairedConfiguration]] = {}
    for configuration in unpaired:
        by_reason.setdefault((configuration.kernel or configuration.benchmark, configuration.reason), []).append(
            configuration
        )
    grouped = [Failure(verdict, *key, tuple(configurations)) for key, configurations in by_reason.items()]
    return sorted(grouped, key=lambda failure: -len(failure.configurations))
