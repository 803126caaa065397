"""The memory that all jobs share, on a GPU that is none."""

from __future__ import annotations

import math

import pytest

from gpu_kernels import catalog
from kernelwatch import suite
from kernelwatch.instrument import arena as arenas
from kernelwatch.instrument import buffers
from kernelwatch.instrument import session as session_module
from kernelwatch.instrument.arena import Arena
from kernelwatch.instrument.references import References
from kernelwatch.instrument.session import Session
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import dtype_of
from tests import on_fake_gpu
from tests.fake_cuda import FakeGpu

PAGE = 2 << 20

#: Bytes of an H200's L2 cache, of results/nvidia-h200/runs.jsonl.
H200_L2 = 62914560


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
    """An arena of more than half of the free memory is not made."""
    arena = Arena(4 * PAGE + 1)
    assert not arena.forget()
    assert len(arena.allocate(7 * PAGE)) == 1


def test_it_holds_every_job_of_the_suite() -> None:
    """All sets of all timed configurations, on an H200, whose L2 cache is the largest."""
    for name, (kind, sweep) in suite.BENCHMARKS.items():
        for point in sweep.points() if kind is suite.Kind.TIMED else ():
            launch = sweep.launch(point)
            if launch.kernel not in catalog.KERNELS:
                continue
            arrays = catalog.KERNELS[launch.kernel].arrays(**launch.arguments)
            one = [math.prod(shape) * dtype_of(launch.dtype).itemsize for shape in arrays]
            sets = buffers.sets_for(sum(one), H200_L2)
            assert sum(sets * buffers.pitch(each) + PAGE for each in one) <= arenas.SIZE, (name, point)


LARGE, OTHER, SMALL = (
    Launch.parse(f"transpose_read_coalesced rows={rows} columns={columns} float32")
    for rows, columns in ((97, 101), (201, 99), (31, 63))
)


@pytest.fixture
def session(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> Session:
    """One whose arena is a part of this device."""
    monkeypatch.setattr(session_module, "Arena", lambda: Arena(2 * PAGE))
    monkeypatch.setattr(session_module, "References", lambda _: References(1 << 20))
    return Session()


def _launched(gpu: FakeGpu, session: Session, launch: Launch) -> list[tuple[int, ...]]:
    """The addresses that its launches get; the output is verified in between."""
    del gpu.launched[:]
    on_fake_gpu.measured(gpu, launch, session)
    return [addresses for name, addresses in gpu.launched if name == launch.kernel]


def _within(gpu: FakeGpu, session: Session, addresses: list[tuple[int, ...]]) -> bool:
    pool = session._arena._pool
    return pool is not None and all(
        pool.address <= each < pool.address + pool.size for row in addresses for each in row
    )


def test_a_session_measures_in_it(gpu: FakeGpu, session: Session) -> None:
    """A large job in the same place, whatever came before it; a small one elsewhere, in its own context."""
    first = _launched(gpu, session, LARGE)
    assert first
    assert _within(gpu, session, first)
    assert not _within(gpu, session, _launched(gpu, session, SMALL))
    assert _within(gpu, session, _launched(gpu, session, OTHER))
    assert _launched(gpu, session, LARGE) == first


def test_a_job_that_needs_its_memory_gets_it(gpu: FakeGpu, session: Session) -> None:
    """One that would not fit even so leaves it as it is."""
    hopeless = Launch.parse("transpose_read_coalesced rows=2003 columns=1999 float32")
    with pytest.raises(NotImplementedError, match="bytes of GPU memory"):
        _launched(gpu, session, hopeless)
    assert _within(gpu, session, _launched(gpu, session, LARGE))
    gpu.cuda.mem_alloc(8 << 20)  # another process took it
    wide = Launch.parse("transpose_read_coalesced rows=801 columns=800 float32")
    assert not _within(gpu, session, _launched(gpu, session, wide))
    assert session._arena._pool is None
