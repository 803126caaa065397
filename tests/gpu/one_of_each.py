"""Launches one awkward case of each kernel and dtype, for compute-sanitizer: `python -m tests.gpu.one_of_each`."""

from __future__ import annotations

from gpu_kernels import DTYPES, catalog
from gpu_kernels.flags import DEFAULT
from tests.cases import AWKWARD
from tests.gpu.harness import run_and_check

#: One case a kernel, not the smallest.
CASES = {name: arguments for name, arguments in AWKWARD if max(arguments.values()) in (101, 257, 1000)}


def main() -> None:
    """Run them all, and say how many."""
    for name, arguments in CASES.items():
        for dtype in DTYPES:
            run_and_check(catalog.get(name), dtype, DEFAULT, **arguments)
    print(f"{len(CASES) * len(DTYPES)} launches")


if __name__ == "__main__":
    main()
