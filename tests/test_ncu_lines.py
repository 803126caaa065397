"""The comparison of lines with Nsight Compute, without a chip; with one it is in ``tests/gpu``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu_kernels.sweep import Launch
from tests import ncu_lines


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("idle", [False, True])
def test_by_pass(width: int, idle: bool) -> None:
    """The lines of 32 lanes of up to 4 bytes, of 16 of 8, of 8 of 16, added up."""
    rng = np.random.default_rng(width)
    addresses = rng.integers(0, 64, (50, 32)) * width
    lanes = rng.random((50, 32)) < 0.3 if idle else None
    if lanes is not None:
        lanes[:, 9] = True
    together = min(32, 128 // width)
    on = np.ones((50, 32), bool) if lanes is None else lanes
    expected = [
        sum(
            len(
                {address // 128 for address in row[first : first + together][active[first : first + together]].tolist()}
            )
            for first in range(0, 32, together)
        )
        for row, active in zip(addresses, on, strict=True)
    ]
    assert ncu_lines.by_pass(addresses, lanes, width).tolist() == expected


@pytest.mark.parametrize(
    ("launch", "lines", "by_pass"),
    [
        ("offset_copy size=1024 offset=0 complex128", 4, 4),
        ("offset_copy size=1024 offset=1 complex128", 5, 8),
        ("offset_copy size=1024 offset=1 float64", 3, 4),
        ("offset_copy size=1024 offset=1 float32", 2, 2),
    ],
)
def test_rows(launch: str, lines: int, by_pass: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads and stores of a launch, counted in both ways, and what the chip has; a dash where it has nothing."""
    monkeypatch.setattr(ncu_lines, "CASES", [Launch.parse(launch)])
    load, store = ncu_lines.rows([{"load set_accesses": 7, "store set_accesses": 8}])
    assert (load.kind, load.requests, load.lines, load.by_pass) == ("load", 32, 32 * lines, 32 * by_pass)
    assert store[1:-1] == ("store", *load[2:-1])
    assert [row.chip for row in (load, store)] == [{"set_accesses": 7}, {"set_accesses": 8}]
    cells = ncu_lines.table([load]).splitlines()[-1].split()
    assert cells[-len(ncu_lines.CANDIDATES) :] == ["7", "-", "-", "-", "-"]


def test_the_ways_part() -> None:
    """The patterns tell the two ways of counting apart, so that the chip can decide between them."""
    parted = [row for row in ncu_lines.rows([{} for _ in ncu_lines.CASES]) if row.lines != row.by_pass]
    assert {row.kind for row in parted} == {"load", "store"}
    assert {row.launch.dtype for row in parted} == {"float64", "complex128"}


def test_metrics(tmp_path: Path) -> None:
    """A counter that the chip lacks is not asked for: Nsight Compute would refuse all."""
    ncu = tmp_path / "ncu"
    had = "l1tex__t_set_accesses_pipe_lsu_mem_global_op_ld"
    ncu.write_text(f"#!/bin/sh\necho 'Device NVIDIA H200 (GH100)'\necho '{had}    Counter    # of sets'\necho\n")
    ncu.chmod(0o755)
    assert ncu_lines.metrics(str(ncu)) == {"load set_accesses": f"{had}.sum"}
