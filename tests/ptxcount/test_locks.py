"""Locks, tickets and flags: the awaited thread makes progress, in its block or another."""

from __future__ import annotations

import numpy as np
import pytest

import ptxcount
from tests.ptxcount.sources import compile_to_ptx

#: Code of each thread before it adds one, and afterwards; ``lock`` points to 64 zeros.
LOCKS = {
    "by the first thread": ("if (threadIdx.x) return; while (atomicCAS(lock, 0, 1));", "atomicExch(lock, 0);"),
    "by everybody": ("while (atomicCAS(lock, 0, 1) != 0);", "atomicExch(lock, 0);"),
    "by an exchange, and a store": ("while (atomicExch(lock, 1));", "*(volatile int*)lock = 0;"),
    "with pauses": ("for (int n = 8; atomicCAS(lock, 0, 1); n *= 2) __nanosleep(n);", "atomicExch(lock, 0);"),
    "tickets": ("int mine = atomicAdd(lock, 1); while (atomicAdd(lock + 1, 0) != mine);", "atomicAdd(lock + 1, 1);"),
    "tickets that are read": (
        "int mine = atomicAdd(lock, 1); while (((volatile int*)lock)[1] != mine);", "atomicAdd(lock + 1, 1);"
    ),
    "the block before": (
        "if (threadIdx.x) return; volatile int* done = lock; while (blockIdx.x && !done[blockIdx.x - 1]);",
        "done[blockIdx.x] = 1;",
    ),
    "one held, two wanted": (
        "int a = threadIdx.x % 7; for (;;) { if (!atomicCAS(lock + a, 0, 1)) { "
        "if (!atomicCAS(lock + a + 1, 0, 1)) break; atomicExch(lock + a, 0); } }",
        "atomicExch(lock + a + 1, 0); atomicExch(lock + a, 0);",
    ),
}  # fmt: skip


def _source() -> str:
    """Write a kernel for each pair of operations."""
    return "\n".join(
        f"__global__ void k{n}(int* lock, int* sum) {{ {acquire} "
        f"{'atomicAdd(sum, 1)' if name == 'one held, two wanted' else '*(volatile int*)sum += 1'}; "
        f"__threadfence(); {release} }}"
        for n, (name, (acquire, release)) in enumerate(LOCKS.items())
    )


@pytest.mark.parametrize("name", LOCKS)
def test_locks_are_exclusive(name: str) -> None:
    """Under a lock every thread adds one to a sum; no addition is lost."""
    total = np.zeros(1, np.int32)
    entry = f"k{[*LOCKS].index(name)}"
    ptxcount.count(compile_to_ptx(_source()), entry, 2, 34, [np.zeros(64, np.int32), total], time_limit=30)
    assert total[0] == (2 if "threadIdx.x) return" in LOCKS[name][0] else 68)


def test_deadlock() -> None:
    """A lock that no thread can release ends the launch at once."""
    source = "__global__ void k(int* lock) { while (atomicCAS(lock, 1, 0) == 0); }"
    with pytest.raises(ptxcount.NoProgressError, match="livelock: it polls a location that no thread writes"):
        ptxcount.count(compile_to_ptx(source), None, 2, 64, [np.zeros(1, np.int32)], time_limit=5)
