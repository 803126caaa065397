"""Polls count apart: other counts do not depend on the order of blocks."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest

import ptxcount
from ptxcount.counting.counters import LaunchCounters
from ptxcount.report import costs, listing
from tests.ptxcount.sources import compile_to_ptx

#: A barrier behind which a block continues after others have polled in vain.
LATER = "__syncthreads();"
#: Code of two blocks of 64 threads on ``a``, of zeros; counted load requests, and whether any polls.
KERNELS = {
    "a flag of another block": (
        f"if (blockIdx.x) {{ while (!a[0]); a[2] = a[1]; }} else {{ {LATER} a[1] = n; a[0] = 1; }}", 4, True
    ),
    "a flag twice": (
        "if (threadIdx.x == 0) for (int k = 1; k < 4; k++) { if (blockIdx.x) { while (a[0] < k); a[1] = k; } "
        "else { a[0] = k; while (a[1] < k); } }", 6, True,
    ),
    **{
        f"{order} loads": (
            f"int f; if (blockIdx.x) {{ do asm volatile(\"ld.{order}.gpu.u32 %0, [%1];\" : \"=r\"(f) : \"l\"(a)); "
            f"while (!f); a[2] = a[1]; }} else {{ {LATER} a[1] = n; a[0] = 1; }}", 4, True,
        ) for order in ("relaxed", "acquire")
    },
    "with pauses": (f"if (blockIdx.x) while (!a[0]) __nanosleep(9); else {{ {LATER} a[0] = n; }}", 2, True),
    "a flag of the block": ("if (threadIdx.x < 32) while (!a[blockIdx.x]); else a[blockIdx.x] = 1;", 2, True),
    "so many times": ("int s = 0; for (int k = 0; k < n; k++) s += a[0]; if (s) a[1] = s;", 4 * 8, False),
    "what it stores itself": ("for (int k = 0; k < 8; k++) a[threadIdx.x] = a[threadIdx.x] + 1;", 4 * 8, False),
    "along a list": ("int k = blockIdx.x; while (k < n) k += a[k] + 1; a[9] = k;", 2 * (8 + 7), False),
}  # fmt: skip


@lru_cache
def _compile() -> str:
    """Compile all kernels at once: k0, k1, ..."""
    bodies = enumerate(body for body, *_ in KERNELS.values())
    return compile_to_ptx("\n".join(f"__global__ void k{n}(volatile int* a, int n) {{ {body} }}" for n, body in bodies))


def _count(name: str) -> LaunchCounters:
    arguments, entry = [np.zeros(64, np.int32), np.int32(8)], f"k{[*KERNELS].index(name)}"
    return ptxcount.count(_compile(), entry, 2, 64, arguments, time_limit=30)


@pytest.mark.parametrize("name", KERNELS)
def test_counts_without_polls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other counts are equal for any patience of threads."""
    runs = []
    for patience, impatience in ((200, 4), (7, 3)):
        monkeypatch.setattr("ptxcount.engine.schedule._FIRST_PATIENCE", patience)
        monkeypatch.setattr("ptxcount.engine.schedule._LATER_PATIENCE", impatience)
        counters = _count(name)
        assert (counters.totals()["load_requests"], counters.polls > 0) == KERNELS[name][1:]
        runs.append((listing.list_lines(counters), counters.polls))
    assert runs[0][0] == runs[1][0]
    assert (runs[0][1] != runs[1][1]) == KERNELS[name][2]


def test_reports_of_polls() -> None:
    """The listing marks polls, costs omit them, JSON has their number."""
    counters = _count("a flag of another block")
    polls = counters.polls
    assert f"polls: {polls} further load requests, in no total" in listing.format_table(counters)
    assert [f"{access.polls} polls" in listing.describe_cost(access) for access in counters.accesses].count(True) == 1
    assert json.loads(listing.format_json(counters))["polls"] == polls
    assert sum(cost.amount for cost in costs.list_costs(counters)) == sum(
        access.sectors for access in counters.accesses
    )


#: Bodies of a loop over 8192 elements by 1024 threads, what follows it, and the requests of loads and stores.
SEARCHES = {
    ("if (*(volatile int*)found >= 0) return; if (x[i] == key) { *found = i; return; }", ""): (96, 1),
    ("if (*(volatile int*)found >= 0) break; if (x[i] == key) { *found = i; break; }", ""): (96, 1),
    ("if (*found >= 0) return; if (x[i] == key) { *found = i; return; }", ""): (288, 1),
    ("if (((volatile int*)x)[i] == i % 3 * key) break;", "found[threadIdx.x] = n;"): (256, 32),
}


def test_early_exits() -> None:
    """Threads that leave a loop early run at once what only they run, if the others may read it."""
    head = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)"
    kernels = (
        f"__global__ void k{place}(const int* x, int n, int key, int* found) {{ {head} {{ {body} }} {tail} }}\n"
        for place, (body, tail) in enumerate(SEARCHES)
    )
    ptx, numbers = compile_to_ptx("".join(kernels)), np.arange(8192, dtype=np.int32)
    for place, requests in enumerate(SEARCHES.values()):
        arguments = [numbers, np.int32(numbers.size), np.int32(100), np.full(256, -1, np.int32)]
        counters = ptxcount.count(ptx, f"k{place}", 4, 256, arguments)
        assert (counters.loads.requests, counters.stores.requests) == requests
