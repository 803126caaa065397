"""Counters: against Nsight Compute, against a count by hand, and the fast way against the general one."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.instruments import counted
from benchmarks.instruments.ptx import counters, execute, schedule, values
from benchmarks.instruments.ptx.counters import Access, LaunchCounters
from benchmarks.instruments.ptx.shared import SharedMemory
from gpu_kernels import catalog
from tests import cuda

Array = npt.NDArray[Any]
EXACT = (
    "load_requests", "load_sectors", "store_requests", "store_sectors", "shared_store_wavefronts",
)  # fmt: skip


def _readings() -> list[dict[str, str]]:
    text = (Path(__file__).parent / "data" / "nsight-compute-h200.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def _case(row: dict[str, str]) -> tuple[str, dict[str, int]]:
    """Kernel and arguments of a reading."""
    kernel = re.sub(r" \(.*", "_unpadded" * ("no padding" in row["kernel"]), row["kernel"])
    shape = row["shape (rows x columns)"]
    named = re.findall(r"(\w+)=(\d+)", shape) or zip(("rows", "columns"), shape.split("x"), strict=True)
    return kernel, {{"n": "size"}.get(name, name): int(value) for name, value in named}


@pytest.mark.parametrize("row", _readings(), ids=lambda row: "-".join(list(row.values())[:3]))
def test_nsight_compute(row: dict[str, str]) -> None:
    """Requests, sectors and store wavefronts are the chip's; its load wavefronts hold up to 8 % more than the rule."""
    kernel, arguments = _case(row)
    result = counted.count(kernel, row["dtype"], **arguments)
    totals = result.counters.totals()
    assert result.problem() is None
    assert {name: totals[name] for name in EXACT} == {name: int(row[name]) for name in EXACT}
    reading = int(row["shared_load_wavefronts"])
    assert totals["shared_load_wavefronts"] <= reading <= 1.08 * totals["shared_load_wavefronts"]


def _by_hand(addresses: list[int], width: int) -> tuple[int, int]:
    """Sectors and wavefronts of one warp, straight from their definitions: None for an idle lane."""
    active = [a for a in addresses if a is not None]
    sectors = len({byte // 32 for a in active for byte in range(a, a + width)})
    together, waves = 32 * 4 // max(width, 4), 0
    for first in range(0, 32, together):
        banks: dict[int, set[int]] = defaultdict(set)
        for a in addresses[first : first + together]:
            for byte in range(a, a + width) if a is not None else ():
                banks[byte // 4 % 32].add(byte // 4)
        waves += max(map(len, banks.values()), default=0)
    return sectors, waves


class _Watched(Access):
    """An access that also counts warp by warp with Python's sets."""

    hand: dict[int, list[int]]

    def record(self, address: values.Value, active: Array, shape: tuple[int, int]) -> None:
        super().record(address, active, shape)
        where = np.broadcast_to(
            values.dense(address).view(
                f"i{address.itemsize}" if isinstance(address, np.ndarray) else address.block.dtype
            ),
            shape,
        )
        on = np.broadcast_to(active, shape)
        for block in range(shape[0]):
            for first in range(0, shape[1], 32):
                lanes = [
                    int(where[block, t]) if t < shape[1] and on[block, t] else None for t in range(first, first + 32)
                ]
                if any(lane is not None for lane in lanes):
                    total = _HAND.setdefault(id(self), [0, 0, 0])
                    sectors, waves = _by_hand(lanes, self.width)  # type: ignore[arg-type]
                    total[0], total[1], total[2] = total[0] + 1, total[1] + sectors, total[2] + waves


_HAND: dict[int, list[int]] = {}
HAND_CASES: list[tuple[str, str, dict[str, int]]] = [
    *(
        (k, d, {"rows": 45, "columns": 70})
        for k in catalog.KERNELS
        if "transpose" in k
        for d in ("int8", "float32", "complex128")
    ),
    ("offset_copy", "float64", {"size": 999, "offset": 3}),
    ("offset_copy", "float16", {"size": 1000, "offset": 31}),
    ("stride_copy", "complex128", {"size": 300, "stride": 3}),
    ("stride_copy", "int8", {"size": 700, "stride": 17}),
]


@pytest.mark.parametrize(("kernel", "dtype", "arguments"), HAND_CASES)
def test_count_by_hand(kernel: str, dtype: str, arguments: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every access of every warp, counted again with sets of bytes."""
    _HAND.clear()
    monkeypatch.setattr("benchmarks.instruments.ptx.chunk.Access", _Watched)
    accesses = counted.count(kernel, dtype, **arguments).counters.accesses
    assert accesses
    for access in accesses:
        requests, sectors, waves = _HAND[id(access)]
        assert access.requests == requests
        assert (access.sectors, access.wavefronts) == ((sectors, 0) if access.space == "global" else (0, waves))


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("masked", [False, True])
def test_random_patterns(width: int, masked: bool) -> None:
    """Addresses in no order, with repetitions, and idle lanes."""
    rng = np.random.default_rng(width)
    addresses = rng.integers(0, 64 if width < 8 else 512, (200, 32)) * width
    lanes = rng.random((200, 32)) < 0.4 if masked else None
    if lanes is not None:
        lanes[:, 5] = True
    sectors, waves = counters.sectors(addresses, lanes, width), counters.wavefronts(addresses, lanes, width)
    for row in range(200):
        given = [int(a) if lanes is None or lanes[row, i] else None for i, a in enumerate(addresses[row])]
        assert (sectors[row], waves[row]) == _by_hand(given, width)  # type: ignore[arg-type]


def _generally(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out every shortcut: no sums, no blocks that stand for others, no parting of blocks."""
    monkeypatch.setattr(values, "parts", lambda value, size: None)
    monkeypatch.setattr(counters, "parts", lambda value, size: None)
    monkeypatch.setattr(schedule, "_PARTINGS", 0)
    touch = SharedMemory._touch
    monkeypatch.setattr(
        SharedMemory, "_touch", lambda self, k, a, w, on, r, whole=False: touch(self, k, a, w, on, r, whole=True)
    )


def _launch(kernel: str, dtype: str, arguments: dict[str, int]) -> tuple[LaunchCounters, bytes]:
    result = counted.count(kernel, dtype, **arguments)
    assert result.problem() is None
    return result.counters, result.output.tobytes()


WAYS: list[tuple[str, str, dict[str, int]]] = [
    *(
        (k, d, {"rows": 173, "columns": 1090})
        for k in catalog.KERNELS
        if "transpose" in k
        for d in ("float16", "float32", "float64")
    ),
    ("transpose_read_write_coalesced", "complex128", {"rows": 700, "columns": 95}),
    ("transpose_read_write_coalesced", "int8", {"rows": 95, "columns": 800}),
    ("offset_copy", "float32", {"size": 50_001, "offset": 5}),
    ("stride_copy", "float32", {"size": 50_001, "stride": 3}),
]


@pytest.mark.parametrize(("kernel", "dtype", "arguments"), WAYS)
def test_shortcuts_change_nothing(
    kernel: str, dtype: str, arguments: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs, and counters instruction by instruction, are the same with and without the shortcuts."""
    fast = _launch(kernel, dtype, arguments)
    _generally(monkeypatch)
    monkeypatch.setattr(execute, "CHUNK_THREADS", 5000)
    slow = _launch(kernel, dtype, arguments)
    assert fast[1] == slow[1]
    assert fast[0] == slow[0]


def test_source_lines() -> None:
    """Accesses carry the line of the kernel's own file, also when a header's function makes them."""
    bins, data = np.zeros(16, np.uint32), np.arange(100, dtype=np.uint8)
    result = execute.run(cuda.ptx("features"), "histogram", (1, 1, 1), (64, 1, 1), [bins, data, np.int32(100)])
    lines = (cuda.FOLDER / "features.cu").read_text(encoding="utf-8").splitlines()
    atomics = {line for (_, line), accesses in result.by_line().items() if any(a.kind == "atomic" for a in accesses)}
    assert atomics == {n for n, line in enumerate(lines, start=1) if "atomicAdd(&" in line and ("local" in line)}
    assert {Path(str(file)).name for file, _ in result.by_line()} == {"features.cu"}


def test_conflict_free_number() -> None:
    """Without conflicts a request takes one wavefront for each 128 bytes that its lanes are served together."""
    for dtype, waves in (("int8", 1), ("float32", 1), ("float64", 2), ("complex128", 4)):
        totals = counted.count("transpose_read_write_coalesced", dtype, rows=32, columns=32).counters.totals()
        loads, conflicts = totals["shared_load_wavefronts"], totals["shared_load_bank_conflicts"]
        assert loads - conflicts == 32 * waves
