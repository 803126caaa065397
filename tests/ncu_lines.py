"""Counted lines beside the counters of the tag stage of the chip's L1, to tell which of them are lines.

python -m tests.ncu_lines

Profiles launches whose warps touch lines in different ways. Prints of each our requests, lines and sectors, and every
candidate that this chip has. Lines are counted in two ways: over the whole warp, as ptxcount does; and *by pass*, anew
for each half or quarter of a warp that is served together where a thread moves 8 or 16 bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt
from tabulate import tabulate

from gpu_kernels.sweep import Launch
from ptxcount import counters, transactions
from ptxcount.warps import LANES
from tests import ncu_compare

Array = npt.NDArray[Any]
#: Counters of the tag stage. The first is taken for lines, until a chip says otherwise.
CANDIDATES = ("set_accesses", "output_wavefronts", "set_conflicts", "requests", "sectors")
OPERATIONS = {"load": "ld", "store": "st"}
#: Aligned, misaligned, spread, down a column. With 8 and 16 bytes a thread, the two ways of counting part at offset 1.
PATTERNS = (
    *(f"offset_copy size=65536 offset={offset}" for offset in (0, 1, 31)),
    *(f"stride_copy size=50001 stride={stride}" for stride in (2, 3, 32)),
    "transpose_read_coalesced rows=100 columns=70",
    "transpose_read_write_coalesced rows=100 columns=70",
)
DTYPES = ("int8", "float32", "float64", "complex128")
CASES = [Launch.parse(f"{pattern} {dtype}") for pattern in PATTERNS for dtype in DTYPES]
#: More than any address.
_FAR = 1 << 56


class Row(NamedTuple):
    """The loads, or the stores, of a launch: as they were executed, and as the chip counted them."""

    launch: Launch
    kind: str
    requests: int
    lines: int
    by_pass: int
    sectors: int
    chip: dict[str, int]


def by_pass(addresses: Array, lanes: Array | None, width: int) -> Array:
    """The lines of each request, counted anew for each group of lanes: these are moved to where they share no line."""
    groups = max(width // transactions.WORD, 1)
    moved = np.arange(LANES) * groups // LANES * _FAR
    return transactions.lines(addresses.astype(np.int64) + moved, lanes, width)


def rows(readings: Iterable[dict[str, int]]) -> list[Row]:
    """What was read of each case beside what the executor counts."""
    found = []
    for case, reading in zip(CASES, readings, strict=True):
        ours = ncu_compare.execute(case)
        with mock.patch.object(counters, "lines", by_pass):
            passes = ncu_compare.execute(case)
        for kind in OPERATIONS:
            requests, lines, sectors = (ours[f"{kind}_{name}"] for name in ("requests", "lines", "sectors"))
            chip = {name: reading[f"{kind} {name}"] for name in CANDIDATES if f"{kind} {name}" in reading}
            found.append(Row(case, kind, requests, lines, passes[f"{kind}_lines"], sectors, chip))
    return found


def metrics(ncu: str) -> dict[str, str]:
    """The candidates for loads and stores by the names of Nsight Compute, without those that this chip lacks."""
    asked = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, check=True)
    known = {line.split()[0] for line in asked.stdout.splitlines() if line.strip()}
    named = {
        f"{kind} {candidate}": f"l1tex__t_{candidate}_pipe_lsu_mem_global_op_{operation}"
        for kind, operation in OPERATIONS.items()
        for candidate in CANDIDATES
    }
    return {name: f"{metric}.sum" for name, metric in named.items() if metric in known}


def table(found: Iterable[Row]) -> str:
    """All rows; a dash where the chip has no such counter."""
    heads = ["launch", "", "requests", "lines", "by pass", "sectors", *(f"chip: {name}" for name in CANDIDATES)]
    cells = [
        [str(row.launch).partition(" -")[0], *row[1:-1], *(row.chip.get(name, "-") for name in CANDIDATES)]
        for row in found
    ]
    return str(tabulate(cells, headers=heads, disable_numparse=True))


def main() -> int:
    """Profile, and print the table."""
    ncu = shutil.which("ncu")
    if ncu is None:
        sys.stderr.write("ncu is not on PATH; it comes with the CUDA toolkit\n")
        return 1
    print(table(rows(ncu_compare.profile(ncu, CASES, metrics(ncu)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
