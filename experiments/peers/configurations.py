"""What is measured: a kernel on a square matrix of float32, with the suite's default flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.instruments.experiment import Work
from benchmarks.timed import kernel_work
from gpu_kernels import build, flags

DTYPE = "float32"
FLAG_SET = flags.DEFAULT

KERNELS = ("transpose_read_coalesced", "transpose_write_coalesced", "transpose_read_write_coalesced")
SIDES = (256, 1024, 4096, 12800)


@dataclass(frozen=True)
class Configuration:
    """A transpose kernel and the rows, and columns, of its matrix."""

    kernel: str
    side: int

    def __str__(self) -> str:
        return f"{self.kernel} {self.side}"

    @property
    def arguments(self) -> dict[str, int]:
        """The kernel's arguments by name."""
        return {"rows": self.side, "columns": self.side}

    def work(self) -> Work:
        """What the suite launches for it. Needs a device."""
        return kernel_work(self.kernel, DTYPE, FLAG_SET, **self.arguments)

    def cubin(self, arch: str) -> build.Cubin:
        """Its machine code: what every tool launches."""
        return build.cubin(self.kernel, DTYPE, FLAG_SET, arch=arch)


def all_of(kernels: Sequence[str], sides: Sequence[int]) -> list[Configuration]:
    """Every kernel at every side, smallest sides first."""
    return [Configuration(kernel, side) for side in sides for kernel in kernels]
