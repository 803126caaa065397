"""Launches one awkward case of each kernel and dtype, for compute-sanitizer: `python -m tests.gpu.one_of_each`."""

from __future__ import annotations

from gpu_kernels import KERNELS
from kernelwatch.kernel.launch import FLAGS
from tests.cases import awkward
from tests.gpu.harness import run_and_check

#: (kernel, dtype, arguments): one case a kernel, not the smallest.
CASES = [(name, dtype, awkward(name)[7]) for name, kernel in KERNELS.items() for dtype in kernel.operation.dtypes]


def main() -> None:
    """Run them all, and say how many."""
    for name, dtype, arguments in CASES:
        run_and_check(KERNELS[name], dtype, FLAGS, **arguments)
    print(f"{len(CASES)} launches")


if __name__ == "__main__":
    main()
