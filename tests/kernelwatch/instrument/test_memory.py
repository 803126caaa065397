"""What a session keeps on the device: the memory that all jobs share, and references."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpu_kernels import catalog
from kernelwatch.instrument import buffers, memory
from kernelwatch.instrument.memory import Arena, ReferenceStore
from kernelwatch.instrument.session import Session
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import to_dtype
from kernelwatch.suite import registry
from tests import on_fake_gpu
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import LARGE, SMALL

PAGE = 2 << 20

#: Bytes of an H200's L2 cache, of results/nvidia-h200/runs.jsonl.
H200_L2 = 62914560


@pytest.mark.parametrize("between", [[100], [3 * PAGE], [PAGE, PAGE - 1], [1, 1]])
def test_a_job_lies_where_it_always_lies(between: list[int], gpu: FakeGpu) -> None:
    """Whatever was measured before; each buffer begins a page. One that is too large has memory of its own."""
    arena = Arena(3 * PAGE)
    (one, other), _, again = (list(map(int, arena.allocate(*sizes))) for sizes in ((PAGE + 1, 5), between, (3 * PAGE,)))
    assert [one, other] == [*again, one + 2 * PAGE]
    assert int(arena.allocate(3 * PAGE + 1)[0]) != one
    with pytest.raises(NotImplementedError, match="bytes of GPU memory"):
        arena.allocate(8 * PAGE)


def test_a_small_device_has_none(gpu: FakeGpu) -> None:
    """An arena of more than half of the free memory is not made."""
    assert len(Arena(4 * PAGE + 1).allocate(7 * PAGE)) == 1


def test_it_holds_every_job_of_the_suite() -> None:
    """All sets of all timed configurations, on an H200, whose L2 cache is the largest."""
    for sweep in registry.current_suite().timed:
        for launch in map(sweep.launch, sweep.points()):
            arrays = catalog.KERNELS[launch.kernel].array_shapes(**launch.arguments)
            one = [math.prod(shape) * to_dtype(launch.dtype).itemsize for shape in arrays]
            sets = buffers.count_sets(sum(one), H200_L2)
            assert sum(sets * buffers.padded_length(each) + PAGE for each in one) <= memory.ARENA_BYTES, launch


def test_a_session_measures_in_it(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large job in the same place, whatever came before it; a small one elsewhere, in its own context.

    One that needs its memory gets that; one that would not fit even so leaves it as it is.
    """
    monkeypatch.setattr(memory, "Arena", lambda: Arena(2 * PAGE))
    monkeypatch.setattr(memory, "ReferenceStore", lambda _: ReferenceStore(1 << 20))
    session = Session()
    pool = session._arena._pool

    def launched(launch: Launch) -> tuple[list[tuple[int, ...]], bool]:
        """The addresses that its launches get, and whether they lie there; the output is verified in between."""
        del gpu.launched[:]
        on_fake_gpu.measured(gpu, launch, session)
        found = [addresses for name, addresses in gpu.launched if name == launch.kernel]
        return found, all(pool.address <= each < pool.address + pool.size for row in found for each in row)

    def of(rows: int, columns: int) -> Launch:
        return Launch(LARGE.kernel, arguments={"rows": rows, "columns": columns})

    first = launched(LARGE)
    assert [launched(each)[1] for each in (LARGE, SMALL, of(201, 99))] == [True, False, True]
    assert launched(LARGE) == first
    with pytest.raises(NotImplementedError, match="bytes of GPU memory"):
        launched(of(2003, 1999))
    assert launched(LARGE)[1]
    gpu.cuda.mem_alloc(8 << 20)  # another process took it
    assert not launched(of(801, 800))[1]
    assert session._arena._pool is None


def test_references_are_made_once(gpu: FakeGpu) -> None:
    """One a shape, dtype and operation, whatever kernel and flags; also in the other context."""
    session = Session()
    other = Launch("transpose_write_coalesced", LARGE.dtype, "-Xptxas -O0", LARGE.arguments)
    turned = Launch(LARGE.kernel, arguments={"rows": 101, "columns": 97})
    launches = (LARGE, LARGE, other, turned, SMALL, SMALL)
    assert [len(on_fake_gpu.measured(gpu, each, session)[2]) for each in launches] == [1, 0, 0, 1, 1, 0]


def test_the_oldest_references_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the host those used last are kept."""
    monkeypatch.setattr(memory, "_HOST_BYTES", 8)
    known = ReferenceStore()
    for name in "abac":
        known.load_on_host(name, 4, lambda length: memory.make_reader(np.zeros(length, np.uint8)))
    assert [known.has_reference(name) for name in "abc"] == [True, False, True]


def test_references_on_the_device(gpu: FakeGpu) -> None:
    """They lie one behind the other until they fill the pool; what is longer than that is not kept."""
    known = ReferenceStore(1000)

    def kept(name: str, length: int) -> bytes | None:
        read = memory.make_reader(np.full(length, ord(name), np.uint8))
        address = known.load_on_device(name, length, lambda _: read)
        return None if address is None else gpu.view(address)[:length].tobytes()

    assert [kept(name, 400) for name in "aba"] == [b"a" * 400, b"b" * 400, b"a" * 400]
    assert [known.has_reference(name) for name in "ab"] == [True, True]
    assert (kept("c", 400), kept("d", 1001)) == (b"c" * 400, None)
    assert [known.has_reference(name) for name in "abcd"] == [False, False, True, False]
