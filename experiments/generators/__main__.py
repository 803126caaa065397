"""Count four kernels of each installed tool for each architecture: ``python -m experiments.generators [TOOL ...]``.

Tools may need different versions of packages. So each may have its own environment, in which ptxcount is installed,
too. The output has the rows of the table in docs/evidence/generators.md: one for each tool and kernel.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import ptxcount

from .problems import ARCHITECTURES, NAMES, Problem, make_problem

#: Tools -> the module to import to see if the tool is installed, and the dtype of a product's factors.
TOOLS = {
    "triton": ("triton", "float16"),
    "numba_cuda": ("numba_cuda", "float32"),
    "numba_cuda_mlir": ("numba_cuda_mlir", "float32"),
    "warp": ("warp", "float32"),
    "cute": ("cutlass", "float16"),
    "cutile": ("cuda.tile", "float16"),
    "tilelang": ("tilelang", "float16"),
    "cupy": ("cupy", "float32"),
    "mojo": ("mojo", "float32"),
}


def count_problem(cases: Any, problem: Problem, arch: str) -> str:
    """Count a problem's kernel; return a table cell: the sectors of loads and of stores with findings, or the error."""
    try:
        launch = cases.make_launch(problem, arch)
        counters = ptxcount.count(
            launch.kernel, launch.entry, launch.grid, launch.block, launch.arguments, **{"arch": arch} | launch.options
        )
    except Exception as error:  # noqa: BLE001 -- the table names whatever a tool raises
        if "-v" in sys.argv:
            traceback.print_exc()
        return f"{type(error).__name__}: {str(error).splitlines()[0][:160]}"
    if not problem.is_solved():
        return "WRONG"
    totals = counters.totals()
    moved = [totals.get(f"{kind}_sectors", 0) for kind in ("load", "store")]
    bulk = totals.get("bulk_load_sectors", 0), totals.get("bulk_store_sectors", 0)
    findings = "".join(f", {code}" for code in sorted({finding.code for finding in counters.findings}))
    return f"{moved[0] + bulk[0]} / {moved[1] + bulk[1]}{findings}"


def main(words: Sequence[str]) -> None:
    """Print a table row for each problem of each tool in ``words``, or of all tools."""
    for name in [word for word in words if word in TOOLS] or TOOLS:
        module, dtype = TOOLS[name]
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"{name}: not installed: {error}")
            continue
        cases = importlib.import_module(f"{__package__}.cases.{name}")
        for problem in NAMES:
            cells = [count_problem(cases, make_problem(problem, dtype), arch) for arch in ARCHITECTURES]
            print(f"| {cases.VERSION} | {problem} | {' | '.join(cells)} |", flush=True)


main(sys.argv[1:])
