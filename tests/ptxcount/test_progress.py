"""Launches without progress, and long launches."""

from __future__ import annotations

import logging
from functools import lru_cache, partial

import numpy as np
import pytest

import ptxcount
from ptxcount.engine.execute import execute_kernel
from ptxcount.machine import launch_progress
from tests.ptxcount.snippets import execute_snippet, module
from tests.ptxcount.sources import compile_to_ptx

#: Loops of thread 0 of two, with zeros in ``a``, and whether they stop within a second.
LOOPS = {
    "computes": ("unsigned i = 0; while (i != 77777) { i = i * 4 + 1; __nanosleep(1); } a[1] = i;", True),
    "asks one place": (
        'int i = 1, j; do { asm volatile("ld.global.s32 %0, [%1];" : "=r"(j) : "l"(a)); i = i * 4 + 1; } while (i);',
        True,
    ),
    "writes one place": ("for (;;) ((volatile int*)a)[1] = 1;", True),
    "reads another place each time": (
        "int s = 0; for (int i = 0; i < 9000; i++) s = s * 3 + a[(i + s) & 63]; a[1] = s;", False
    ),
    "waits with its block": ("for (int i = 0; i < 9000; i++) __syncthreads();", False),
}  # fmt: skip


@lru_cache
def _compile() -> str:
    """Compile all loops at once: k0, k1, ..."""
    return compile_to_ptx(
        "\n".join(f"__global__ void k{n}(int* a) {{ {body} }}" for n, (body, _) in enumerate(LOOPS.values()))
    )


@pytest.mark.parametrize("name", LOOPS)
def test_endless_loops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch without progress ends with the place of each thread; one with progress goes on."""
    monkeypatch.setattr("ptxcount.machine.context.STALL_LIMIT", 0.2)
    monkeypatch.setattr(launch_progress, "_PATIENCE", 0.01)
    count = partial(ptxcount.count, _compile(), f"k{[*LOOPS].index(name)}", 1, 2, [np.zeros(64, np.int32)])
    if not LOOPS[name][1]:
        assert count().threads == 2
        return
    with pytest.raises(ptxcount.NoProgressError, match=r"0.2 s without progress; .*; 2 threads are at .*PTX line"):
        count()
    with pytest.raises(ptxcount.TimeLimitExceededError):
        count(time_limit=0.5)


@pytest.mark.parametrize(("grid", "warns"), [((1, 65535, 65535), True), ((10, 1, 1), False)])
def test_estimates(
    grid: tuple[int, int, int], warns: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A launch of minutes prints an estimate and goes on."""
    monkeypatch.setattr(launch_progress, "_MIN_MEASURED", 0.0)
    monkeypatch.setattr(launch_progress, "_MIN_REPORTED", 1.0)
    with caplog.at_level(logging.WARNING, "ptxcount"):
        try:
            execute_kernel(module("", 1), "snippet", grid, (32, 1, 1), [np.zeros(1)], time_limit=1)
        except ptxcount.TimeLimitExceededError:
            assert warns
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == warns
    assert all("of 4294836225 blocks took" in text and "the rest will take about" in text for text in texts)


@pytest.mark.parametrize("offset", [1 << 32, (1 << 32) + 4, 5 << 32, 1 << 62, -(1 << 32)])
def test_shared_offsets_wrap(offset: int) -> None:
    """Offsets wrap at 32 bits, also in merged accesses."""
    loads = f"ld.shared.u32 %r5, [%r7]; ld.shared.u32 %r6, [%r7+{offset}];"
    text = module(f"mov.u32 %r7, s; {loads}", 1, ".shared .align 16 .b8 s[256];")
    counters = execute_snippet(text, [np.zeros(1)], unwritten="off", races="off")
    assert counters.totals()["shared_load_requests"] == 2
