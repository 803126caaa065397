"""Device memory of a session: the arena that its jobs share, and the references."""

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
from tests.cases import list_array_shapes
from tests.fake_cuda import FakeGpu
from tests.on_fake_gpu import LARGE, SMALL

PAGE = 2 << 20

#: L2 cache of an H200 in bytes, from results/nvidia-h200/runs.jsonl.
H200_L2 = 62914560


@pytest.mark.parametrize("between", [[100], [3 * PAGE], [PAGE, PAGE - 1], [1, 1]])
def test_addresses_are_reproducible(between: list[int], gpu: FakeGpu) -> None:
    """Buffers start at pages. Larger ones than the arena are allocated outside it."""
    arena = Arena(3 * PAGE)
    first, second = map(int, arena.allocate(PAGE + 1, 5))
    arena.allocate(*between)
    (again,) = map(int, arena.allocate(3 * PAGE))
    assert (again, second) == (first, first + 2 * PAGE), "PAGE + 1 bytes take two pages"
    assert int(arena.allocate(3 * PAGE + 1)[0]) != first
    with pytest.raises(NotImplementedError, match="bytes of GPU memory"):
        arena.allocate(8 * PAGE)


def test_no_arena_on_a_small_device(gpu: FakeGpu) -> None:
    """An arena may take half of the 8 free pages. If it needs more, all pages stay free."""
    assert len(Arena(4 * PAGE + 1).allocate(7 * PAGE)) == 1


def test_arena_holds_every_job_of_the_suite() -> None:
    for sweep in registry.current_suite().timed:
        for launch in map(sweep.launch, sweep.points()):
            arrays = list_array_shapes(catalog.KERNELS[launch.kernel], **launch.arguments)
            array_bytes = [math.prod(shape) * to_dtype(launch.dtype).itemsize for shape in arrays]
            sets = buffers.count_sets(sum(array_bytes), H200_L2)
            assert sum(sets * buffers.pad_length(nbytes) + PAGE for nbytes in array_bytes) <= memory.ARENA_BYTES, launch


def test_session_measures_in_the_arena(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small jobs have other memory. The arena is released for a job that fits only without it."""
    monkeypatch.setattr(memory, "Arena", lambda: Arena(2 * PAGE))
    monkeypatch.setattr(memory, "ReferenceStore", lambda _: ReferenceStore(1 << 20))
    session = Session()
    pool = session._arena._pool

    def launch_and_locate(launch: Launch) -> tuple[set[tuple[int, ...]], bool]:
        """Return the addresses of the launch's arrays, and whether all lie in the arena."""
        del gpu.launched[:]
        on_fake_gpu.measure_launch(gpu, launch, session)
        places = {addresses for name, addresses in gpu.launched if name == launch.kernel}
        return places, all(pool.address <= address < pool.address + pool.size for row in places for address in row)

    def make_launch(rows: int, columns: int) -> Launch:
        return Launch(LARGE.kernel, arguments={"rows": rows, "columns": columns})

    first = launch_and_locate(LARGE)
    assert [launch_and_locate(launch)[1] for launch in (LARGE, SMALL, make_launch(201, 99))] == [True, False, True]
    assert launch_and_locate(LARGE) == first
    with pytest.raises(NotImplementedError, match="bytes of GPU memory"):
        launch_and_locate(make_launch(2003, 1999))  # larger than the device: the arena stays
    assert launch_and_locate(LARGE)[1]
    gpu.cuda.mem_alloc(8 << 20)  # half of the device, taken by another process
    assert not launch_and_locate(make_launch(801, 800))[1]
    assert session._arena._pool is None


def test_equal_references_are_fetched_once(gpu: FakeGpu) -> None:
    """Operation, shape and dtype make them equal, whatever the kernel and flags."""
    session = Session()
    other_flags = Launch("transpose_write_coalesced", LARGE.dtype, "-Xptxas -O0", LARGE.arguments)
    turned = Launch(LARGE.kernel, arguments={"rows": 101, "columns": 97})
    launches = (LARGE, LARGE, other_flags, turned, SMALL, SMALL)
    assert [len(on_fake_gpu.measure_launch(gpu, launch, session)[2]) for launch in launches] == [1, 0, 0, 1, 1, 0]


def test_least_recent_references_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_HOST_BYTES", 8)
    store = ReferenceStore()
    for name in "abac":
        store.load_on_host(name, 4, lambda length: memory.make_reader(np.zeros(length, np.uint8)))
    assert [store.has_reference(name) for name in "abc"] == [True, False, True]


def test_full_pool_drops_all_references(gpu: FakeGpu) -> None:
    """A reference larger than the pool is not stored, and drops none."""
    store = ReferenceStore(1000)  # bytes: room for two of 400

    def read_stored(name: str, length: int) -> bytes | None:
        read = memory.make_reader(np.full(length, ord(name), np.uint8))
        address = store.load_on_device(name, length, lambda _: read)
        return None if address is None else gpu.view(address)[:length].tobytes()

    assert [read_stored(name, 400) for name in "aba"] == [b"a" * 400, b"b" * 400, b"a" * 400]
    assert [store.has_reference(name) for name in "ab"] == [True, True]
    assert (read_stored("c", 400), read_stored("d", 1001)) == (b"c" * 400, None)
    assert [store.has_reference(name) for name in "abcd"] == [False, False, True, False]
