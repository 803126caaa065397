"""Usable memory of this machine, and construction of arrays in little memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ptxcount.util import host_memory


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="no /proc/meminfo to compare with")
def test_total_memory_is_limited_by_the_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kilobytes = int(Path("/proc/meminfo").read_text(encoding="ascii").split()[1])
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(host_memory, "LIMIT", limit)
    assert host_memory.total_memory_bytes() == pytest.approx(kilobytes * 1024, rel=0.01)
    for text, expected in (("max\n", kilobytes * 1024), ("9" * 18, kilobytes * 1024), ("4096000\n", 4096000)):
        limit.write_text(text, encoding="ascii")
        assert host_memory.total_memory_bytes() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "uint64", "complex128"])
@pytest.mark.parametrize("step", [1, 2654435761])
def test_range_in_blocks_as_in_numpy(dtype: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "BLOCK", 7)
    expected = (np.arange(1000) * np.int64(step)).astype(dtype)
    assert host_memory.make_range(1000, dtype, step).tobytes() == expected.tobytes()
    assert host_memory.make_range(0, dtype, step).shape == (0,)


def test_range_needs_little_more_than_its_array() -> None:
    """A direct construction would take nine times the array's memory."""
    size = 64 << 20
    tracemalloc.start()
    numbers = host_memory.make_range(size, "int8")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size <= peak < 1.5 * size
    assert numbers[-1] == -1
