"""Launches one awkward case of each kernel and dtype, for compute-sanitizer: `python -m tests.gpu.one_of_each`."""

from __future__ import annotations

from gpu_kernels import DTYPES, catalog
from gpu_kernels.flags import DEFAULT
from tests.cases import TRANSPOSES
from tests.gpu.harness import run_and_check

#: One case a kernel, not the smallest.
CASES = {
    "offset_copy": {"size": 1000, "offset": 2},
    "stride_copy": {"size": 1000, "stride": 3},
    **{name: {"rows": 97, "columns": 101} for name in TRANSPOSES},
}


def main() -> None:
    """Run them all, and say how many."""
    for name, arguments in CASES.items():
        for dtype in DTYPES:
            run_and_check(catalog.get(name), dtype, DEFAULT, **arguments)
    print(f"{len(CASES) * len(DTYPES)} launches")


if __name__ == "__main__":
    main()
