"""The memory that all jobs share, on a GPU that is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.instruments import arena as arenas
from benchmarks.instruments.arena import Arena
from tests import on_fake_gpu
from tests.fake_cuda import FakeGpu

PAGE = 2 << 20


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    """Sixteen megabytes."""
    with on_fake_gpu.fake_gpu(monkeypatch) as made:
        yield made


def _addresses(arena: Arena, *sizes: int) -> list[int]:
    pieces = arena.allocate(*sizes)
    found = [int(piece) for piece in pieces]
    for piece in pieces:
        piece.free()
    return found


@pytest.mark.parametrize("between", [[100], [3 * PAGE], [PAGE, PAGE - 1], [1, 1]])
def test_a_job_lies_where_it_always_lies(between: list[int], gpu: FakeGpu) -> None:
    """Whatever was measured before; each buffer begins a page."""
    arena = Arena(4 * PAGE - PAGE)
    first = _addresses(arena, PAGE + 1, 5)
    _addresses(arena, *between)
    assert _addresses(arena, PAGE + 1, 5) == first == [first[0], first[0] + 2 * PAGE]


def test_a_job_that_is_too_large_has_memory_of_its_own(gpu: FakeGpu) -> None:
    """As before; and all of it, once the arena is forgotten."""
    arena = Arena(PAGE)
    (start,) = _addresses(arena, PAGE)
    assert _addresses(arena, PAGE + 1) != [start]
    with pytest.raises(NotImplementedError, match="bytes of GPU memory"):
        arena.allocate(8 * PAGE)
    assert arena.forget()
    assert not arena.forget()
    assert len(arena.allocate(8 * PAGE)) == 1


def test_a_small_device_has_none(gpu: FakeGpu) -> None:
    """Half of it would be kept from jobs."""
    arena = Arena(4 * PAGE + 1)
    assert not arena.forget()
    assert len(arena.allocate(7 * PAGE)) == 1
    assert arenas.SIZE > 5_300_000_000, "the suite's largest job"
