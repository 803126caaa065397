"""A configuration of two commits: its values and the verdict, or why one of them has none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelwatch import suite
from kernelwatch.review.evidence import Copies
from kernelwatch.review.verdict import Judgement, Verdict

#: Parameters whose values need no name.
_PLAIN = ("copy", "dtype", "arch")


@dataclass(frozen=True)
class Row:
    """One configuration that both commits have a value of.

    Parameters
    ----------
    name : str
        Benchmark and parameters, as asv's tables have them.
    kind : str
        One of KINDS.
    unit : str
        Of `base` and `head`; empty if it has none.
    base, head : float
        The values; lower is better.
    judgement : Judgement
        The verdict and what it rests on.
    useful_bytes : int, optional
        What a launch must move; None where no GB/s follow.
    copies : Copies, optional
        A time in copies of the same bytes; None where no copy was timed beside it.
    benchmark : str
        Asv's name of the benchmark.
    params : mapping of str to str
        The parameters by name.
    kernel : str
        The kernel that it launches; of another suite's benchmark, the benchmark.
    code_unchanged : bool, optional
        Whether both commits launch the same machine code; None where no run says.
    verified : bool
        Whether what the kernel writes is compared with a reference, where the number depends on its run.
    """

    name: str
    kind: str
    unit: str
    base: float
    head: float
    judgement: Judgement
    useful_bytes: int | None = None
    copies: Copies | None = None
    benchmark: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    kernel: str = ""
    code_unchanged: bool | None = None
    verified: bool = True

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
    def rates(self) -> tuple[float, float] | None:
        """Useful bytes a second of base and head; None where they make no sense."""
        if self.useful_bytes is None or min(self.base, self.head) <= 0:
            return None
        return self.useful_bytes / self.base, self.useful_bytes / self.head

    @property
    def place(self) -> str:
        """What tells it from others of its kernel, flags aside: "12800x12800 float32 from L2", "offset 3 float32"."""
        told = {name: value for name, value in self.params.items() if name not in ("kernel", "flags")}
        _, sweep = suite.BENCHMARKS.get(self.benchmark, (None, None))
        return " ".join(
            [
                *(value if " x " in name or name in _PLAIN else f"{name} {value}" for name, value in told.items()),
                *(["from L2"] if sweep and sweep.in_l2 else []),
                *(["isolated"] if sweep and sweep.isolated else []),
            ]
        )

    @property
    def size(self) -> float:
        """How large the change is, whatever its direction; infinite where a value is 0."""
        ratio = self.judgement.ratio
        return math.inf if ratio <= 0 or math.isinf(ratio) else abs(math.log(ratio))

    def judged(self, judgement: Judgement) -> Row:
        """The same with another judgement."""
        return self if judgement is self.judgement else replace(self, judgement=judgement)

    def badness(self) -> tuple[int, float, str]:
        """Sort key, worst first: by verdict, then by size of the change."""
        return list(Verdict).index(self.judgement.verdict), -self.size, self.name


@dataclass(frozen=True)
class Lone:
    """A configuration that only one commit has a value of, and why the other has none."""

    name: str
    benchmark: str
    reason: str
    kernel: str = ""


def kernel(benchmark: str, params: Mapping[str, str]) -> str:
    """The kernel that a configuration launches; of another suite's benchmark, the benchmark."""
    launch = suite.launch(benchmark, params)
    return benchmark if launch is None else launch.kernel
