"""A fake GPU: memory on the host, kernels executed from PTX, a clock under the test's control.

It replaces PyCUDA and cuda-bindings. Kernels run only as graphs, as in the instrument. Nodes between events or stamps
are timed, not executed: each takes the time in `seconds` for its kernel. `log` records the calls in order.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelwatch.instrument import device
from kernelwatch.instrument.inputs import POISON
from kernelwatch.kernel.ptx_module import PtxModule
from kernelwatch.toolchain import build
from tests.fake_objects import Function, Memory, Stream

ARCH, MULTIPROCESSORS = "sm_90", 2


class Entry(NamedTuple):
    """A call in the log: its context, and the nodes of its graph.

    `address_sets` has the number of each kernel's address sets, `blocks` the number of its blocks.
    """

    context: str
    call: str
    nodes: list[str]
    address_sets: dict[str, int]
    blocks: dict[str, int]


class FakeGpu:
    """A fake GPU, with its PyCUDA (`cuda`) and cuda-bindings (`driver`). Its memory has `total` bytes."""

    def __init__(self, l2_bytes: int, total: int) -> None:
        self.l2, self.total = l2_bytes, total
        self.next_address = 1 << 32
        self.allocations: dict[int, Memory] = {}
        self.launched: list[tuple[str, tuple[int, ...]]] = []
        #: Addresses of module variables, which are never freed.
        self.variables: list[int] = []
        #: Kernel -> seconds of a launch in a graph, or of successive launches.
        self.seconds: dict[str, float | Iterator[float]] = {}
        self.contexts = 0
        self.log: list[Entry] = []
        #: Kind -> objects of the driver that were created and not destroyed.
        self.live: Counter[str] = Counter()
        self._came: dict[int, float] = {}
        self._events = 0
        self._contexts = [""]
        self.cuda, self.driver = self._pycuda(), self._bindings()

    def note(self, call: str, graph: Sequence[Any] = ()) -> None:
        nodes = ["event" if isinstance(node, int) else node.name for node in graph]
        blocks = {node.name: node.blocks for node in graph if not isinstance(node, int)}
        self.log.append(Entry(self._contexts[-1], call, nodes, _count_address_sets(graph), blocks))

    @staticmethod
    def _address(allocation: Any) -> int:
        """Return the address of an integer or allocation; refuse other types, as PyCUDA does."""
        assert isinstance(allocation, int | Memory), f"PyCUDA takes no {type(allocation).__name__} for an address"
        return int(allocation)

    def find_allocation(self, address: int) -> Memory | None:
        """Return the allocation that contains an address; None if none does."""
        for start, memory in self.allocations.items():
            if start <= address <= start + len(memory.held):
                return memory
        return None

    def view(self, address: int) -> NDArray[np.uint8]:
        """Return the memory from an address to the end of its allocation."""
        memory = self.find_allocation(address)
        assert memory is not None, f"address {address} lies in no allocation"
        return memory.held[address - memory.address :]

    def _view_allocated(self, address_or_memory: Any, length: int) -> NDArray[np.uint8]:
        address, allocations = self._address(address_or_memory), self.allocations.items()
        assert any(start <= address <= start + memory.size - length for start, memory in allocations), "out of bounds"
        return self.view(address)[:length]

    def _allocate(self, size: int) -> Memory:
        self.note(f"allocate {size} bytes")
        if size > self._free():
            raise MemoryError
        return Memory(self, size)

    def _free(self) -> int:
        return self.total - sum(memory.size for memory in self.allocations.values())

    def _upload(self, target: Any, source: NDArray[Any]) -> None:
        content = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
        self.note(f"upload {len(content)} bytes" + " of poison" * bool((content == POISON).all()))
        self._view_allocated(target, len(content))[:] = content

    def _download(self, target: NDArray[Any], source: Any) -> None:
        content = target.reshape(-1).view(np.uint8)
        self.note(f"read {len(content)} bytes")
        content[:] = self._view_allocated(source, len(content))

    def _set(self, to: Any, value: int, length: int) -> None:
        self.note(f"set {length} bytes" + " of poison" * (value == POISON))
        self._view_allocated(to, length)[:] = value

    def _pycuda(self) -> Any:
        attributes = SimpleNamespace(MULTIPROCESSOR_COUNT=0, MAX_THREADS_PER_MULTIPROCESSOR=1, L2_CACHE_SIZE=2)
        values = (MULTIPROCESSORS, 2048, self.l2)
        device = SimpleNamespace(
            get_attribute=lambda which: values[which],
            multiprocessor_count=MULTIPROCESSORS,
            compute_capability=lambda: (9, 0),
        )
        context = SimpleNamespace(get_device=lambda: device, name="lasting context")
        return SimpleNamespace(
            MemoryError=MemoryError,
            mem_get_info=lambda: (self._free(), self.total),
            mem_alloc=self._allocate,
            memcpy_htod=self._upload,
            memcpy_dtoh=self._download,
            memset_d8=self._set,
            pagelocked_empty=lambda length, dtype, mem_flags: np.empty(length, dtype),
            host_alloc_flags=SimpleNamespace(PORTABLE=1),
            Stream=Stream,
            device_attribute=attributes,
            function_attribute=SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES=8),
            Context=context,
            module_from_buffer=self._module,
        )

    def _module(self, ptx: bytes) -> Any:
        """Return a module of one function; variables have the size of their first upload."""
        variables: dict[str, Memory] = {}

        def variable(name: str) -> tuple[int, int]:
            declared = re.search(rf"\.b(\d+) {name}\[(\d+)\]", ptx.decode())
            size = int(declared[1]) // 8 * int(declared[2]) if declared else 4
            variables[name] = Memory(self, size)
            self.variables.append(int(variables[name]))
            return int(variables[name]), size

        def function(name: str) -> Function:
            loaded_function = Function(self, PtxModule(ptx.decode(), name))
            loaded_function.variables = variables
            return loaded_function

        return SimpleNamespace(get_function=function, get_global=variable)

    def _bindings(self) -> Any:
        def begin(stream: Stream, _: Any) -> tuple[int]:
            stream.captured = []
            return (0,)

        def end(stream: Stream) -> tuple[int, list[Any]]:
            nodes, stream.captured = stream.captured, None
            assert nodes is not None
            return 0, nodes

        def record(event: int, stream: Stream, _: Any) -> tuple[int]:
            assert stream.captured is not None
            stream.captured.append(event)
            return (0,)

        def event(_: Any) -> tuple[int, int]:
            self._events += 1
            self.live["event"] += 1
            return 0, self._events

        def instantiate(graph: list[Any], _: Any) -> tuple[int, list[Any]]:
            self.live["graph"] += 1
            return 0, graph

        def end_of(kind: str) -> tuple[int]:
            self.live[kind] -= 1
            return (0,)

        return SimpleNamespace(
            CUresult=SimpleNamespace(CUDA_SUCCESS=0),
            CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=None),
            CUevent_flags=SimpleNamespace(CU_EVENT_DEFAULT=None),
            CUevent_record_flags=SimpleNamespace(CU_EVENT_RECORD_EXTERNAL="external"),
            cuEventCreate=event,
            cuEventDestroy=lambda _: end_of("event"),
            cuEventRecordWithFlags=record,
            cuStreamBeginCapture=begin,
            cuStreamEndCapture=end,
            cuGraphInstantiate=instantiate,
            cuGraphDestroy=lambda _: (0,),
            cuGraphExecDestroy=lambda _: end_of("graph"),
            cuGraphLaunch=self._replay,
            cuEventElapsedTime=lambda start, stop: (0, np.float32(1e3 * (self._came[stop] - self._came[start]))),
        )

    def _replay(self, graph: list[Any], _: Any) -> tuple[int]:
        now = 0.0
        self.note("graph", graph)
        is_timed = any(isinstance(node, int) or node.name == "stamp" for node in graph)
        for node in graph:
            if isinstance(node, int):
                self._came[node] = now
                continue
            function = node.function()
            assert function is not None, f"{node.name} was unloaded before its graph was launched"
            took = self.seconds.get(node.name, 0.0)
            now += took if isinstance(took, float) else next(took)
            if node.name == "stamp":
                self.view(node.addresses[0])[:8].view(np.uint64)[0] = round(now * 1e9)
            elif not is_timed:
                node.execute(function)
        return (0,)

    def new_context(self, l2_fetch_bytes: int = 0) -> Any:
        self.contexts += 1
        name = f"context {self.contexts}" + (f" that fetches {l2_fetch_bytes} bytes" if l2_fetch_bytes else "")
        return SimpleNamespace(name=name, detach=lambda: self.note(f"end of {name}"))

    @contextmanager
    def within(self, context: Any) -> Iterator[None]:
        """Log the calls in the block under a context."""
        self._contexts.append("" if context is self.cuda.Context else context.name)
        self.note(context.name)
        yield
        self._contexts.pop()


def _count_address_sets(graph: Sequence[Any]) -> dict[str, int]:
    """Return the number of address sets by kernel; assert that a kernel's sets alternate."""
    launches: defaultdict[str, list[tuple[int, ...]]] = defaultdict(list)
    for node in graph:
        if not isinstance(node, int):
            launches[node.name].append(node.addresses)
    for used in launches.values():
        sets = list(dict.fromkeys(used))
        assert used == [sets[number % len(sets)] for number in range(len(used))], "address sets do not alternate"
    return {name: len({*used}) for name, used in launches.items()}


def install(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu) -> FakeGpu:
    monkeypatch.setattr(device, "cuda", gpu.cuda)
    monkeypatch.setattr(device, "driver", gpu.driver)
    monkeypatch.setattr(device, "process_context", lambda: gpu.cuda.Context)
    monkeypatch.setattr(device, "make_context", gpu.new_context)
    monkeypatch.setattr(device, "use_context", gpu.within)
    monkeypatch.setattr(device, "device_arch", lambda: ARCH)
    return gpu


def ptx_for_cubin(text: str, entry: str, *_: object, **__: object) -> build.Cubin:
    """Return PTX as a cubin, in place of `build.assemble_cubin`."""
    return build.Cubin(entry, text.encode(), None)  # type: ignore[arg-type]
