"""A configuration of two commits: its values and the verdict, or why one of them has none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelwatch.review.verdict import Judgement, Verdict
from kernelwatch.store.results import TIMED, kind
from kernelwatch.suite import registry

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
    that is not `verified` writes was compared with no reference. A number that does not `decide` explains others.
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
        """What a counted or compiled number is: "load sectors", "registers"."""
        return self.benchmark.rpartition(".track_")[2].replace("_", " ")

    @property
    def launch(self) -> tuple[str, ...]:
        """What the counted numbers of one launch share: the class, and the values of its parameters."""
        return (self.benchmark.rpartition(".track_")[0], *self.params.values())

    @property
    def code(self) -> tuple[str, str, str]:
        """The machine code that it is of, on one architecture: kernel, dtype and flags."""
        return self.kernel, self.params.get("dtype", ""), self.flags

    @property
    def is_moved(self) -> bool:
        """Whether it counts sectors of global memory."""
        return self.metric.startswith("sectors ")

    @property
    def rates(self) -> tuple[float, float] | None:
        """Useful bytes a second of base and head; None where they make no sense."""
        if self.kind != TIMED or self.useful_bytes is None or min(self.base, self.head) <= 0:
            return None
        return self.useful_bytes / self.base, self.useful_bytes / self.head

    @property
    def place(self) -> str:
        """What tells it from others of its kernel, flags aside: "12800x12800 float32 from L2", "offset 3 float32"."""
        told = {name: value for name, value in self.params.items() if name not in ("kernel", "flags")}
        found = [value if " x " in name or name in _PLAIN else f"{name} {value}" for name, value in told.items()]
        _, sweep = registry.current_suite().benchmarks.get(self.benchmark, (None, None))
        of_sweep = {"from L2": sweep and sweep.in_l2, "isolated": sweep and sweep.isolated}
        return " ".join([*found, *(word for word, holds in of_sweep.items() if holds)])

    @property
    def size(self) -> float:
        """How large the change is, whatever its direction; infinite where a value is 0."""
        ratio = self.judgement.ratio
        return math.inf if ratio <= 0 or math.isinf(ratio) else abs(math.log(ratio))

    def badness(self) -> tuple[int, float, str]:
        """Sort key, worst first: by verdict, then by size of the change."""
        return list(Verdict).index(self.judgement.verdict), -self.size, self.name


@dataclass(frozen=True)
class Lone:
    """A configuration that only one commit has a value of, or none, and why the other has none."""

    name: str
    benchmark: str
    reason: str
    kernel: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """What fails of a kernel for one reason: a `verdict` of FAILING, and the configurations."""

    verdict: Verdict
    kernel: str
    reason: str
    lones: tuple[Lone, ...]

    def __str__(self) -> str:
        timed = {kind(each.benchmark) == TIMED for each in self.lones}
        what = "configurations" if len(timed) > 1 else "times" if timed == {True} else "counts"
        where = {Verdict.BROKEN: "head alone", Verdict.FAILED: "both", Verdict.REPAIRED: "base alone"}[self.verdict]
        many = f"{len(self.lones)} {what if self.lones[1:] else what.removesuffix('s')}"
        return f"{many} failed in {where}: {self.kernel}: {self.reason}"


def failures(verdict: Verdict, lones: Iterable[Lone]) -> list[Failure]:
    """Return a failure a kernel and reason, whatever the metric; those of most configurations first."""
    found: dict[tuple[str, str], list[Lone]] = {}
    for each in lones:
        found.setdefault((each.kernel or each.benchmark, each.reason), []).append(each)
    every = [Failure(verdict, *key, tuple(each)) for key, each in found.items()]
    return sorted(every, key=lambda each: -len(each.lones))


def kernel(benchmark: str, params: Mapping[str, str]) -> str:
    """The kernel that a configuration launches; of another suite's benchmark, the benchmark."""
    launch = registry.find_launch(benchmark, params)
    return benchmark if launch is None else launch.kernel
