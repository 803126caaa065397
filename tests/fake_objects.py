"""Objects of a fake GPU: memory, kernels, nodes of graphs, and streams."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ptxcount
from kernelwatch.kernel.ptx_module import PtxModule
from ptxcount.util.architectures import MAX_SHARED

if TYPE_CHECKING:
    from tests.fake_cuda import FakeGpu


#: Bytes behind an allocation that a kernel reaches without a fault, as on a GPU with large pages.
_PAGE = 64 << 10


#: Hash of a launch and of its memory before -> contents of the memory after it.
_EFFECTS: dict[bytes, list[NDArray[np.uint8]]] = {}


class Memory:
    """An allocation with the interface of PyCUDA."""

    def __init__(self, gpu: FakeGpu, size: int) -> None:
        self._gpu = gpu
        self.address = gpu.next_address
        gpu.next_address += -(-size // 512) * 512 + (1 << 20)
        self.size = size
        self.held = np.zeros(size + _PAGE, np.uint8)
        gpu.allocations[self.address] = self

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        """Free the memory. Freeing it twice is an error."""
        self._gpu.note(f"free {self.size} bytes")
        del self._gpu.allocations[self.address]


class Node(NamedTuple):
    """A launch in a graph. `function` returns None once the kernel is unloaded, `blocks` is the number of blocks."""

    function: Callable[[], Any]
    name: str
    blocks: int
    addresses: tuple[int, ...]
    execute: Callable[[Any], None]


class Function:
    """A kernel of a PTX module."""

    def __init__(self, gpu: FakeGpu, module: PtxModule) -> None:
        self._gpu, self._module, self.name, self._shared = gpu, module, module.entry, MAX_SHARED
        self.variables: dict[str, Memory] = {}
        self._unpack = lru_cache(self._unpack_parameters)

    def prepare(self, codes: str) -> None:
        """Record the size of all arguments, in bytes."""
        self._length = int(codes.removesuffix("s"))

    def set_attribute(self, _: int, shared: int) -> None:
        """Record the dynamic shared memory of a block."""
        self._shared = shared

    def _launch_kernel(self, grid: Any, block: Any, parameters: bytes, shared_size: int, stream: Stream | None) -> None:
        assert len(parameters) == self._length
        assert shared_size <= self._shared, "more dynamic shared memory than was set"
        unpacked, addresses = self._unpack(parameters)
        self._gpu.launched.append((self.name, addresses))
        assert stream is not None, "launched outside a graph"
        assert stream.captured is not None, "launched outside a graph"

        def call(function: Function) -> None:  # without a reference to this function, which may be unloaded
            function._execute(grid, block, unpacked, shared_size)

        stream.captured.append(Node(weakref.ref(self), self.name, math.prod(grid), addresses, call))

    def _unpack_parameters(self, parameters: bytes) -> tuple[list[Any], tuple[int, ...]]:
        """Return the values of packed parameters, and which of these values are addresses."""
        unpacked: list[Any] = []
        offset = 0
        for size, alignment, dtype in self._module.parameter_layout():
            offset = -(-offset // alignment) * alignment
            raw = np.frombuffer(parameters[offset : offset + size], dtype or f"V{size}")[0]
            is_address = dtype == np.uint64 and self._gpu.find_allocation(int(raw)) is not None
            unpacked.append(int(raw) if is_address else raw)
            offset += size
        assert offset == len(parameters)
        return unpacked, tuple(value for value in unpacked if isinstance(value, int))

    def _execute(self, grid: Any, block: Any, parameters: list[Any], shared_size: int) -> None:
        """Execute a launch, or take its effect from `_EFFECTS` if it ran before on equal memory."""
        found = [self._gpu.find_allocation(value) if isinstance(value, int) else None for value in parameters]
        memories = [*dict.fromkeys(memory for memory in (*found, *self.variables.values()) if memory)]
        contents = [memory.held for memory in memories]
        values = [
            (memories.index(memory), value - memory.address) if memory else value.tobytes()
            for memory, value in zip(found, parameters, strict=True)
        ]
        launch = repr((self.name, grid, block, shared_size, values, [*self.variables], list(map(len, contents))))
        texts = [self._module.ptx.encode(), launch.encode(), *(held.tobytes() for held in contents)]
        key = sha256(b"".join(texts)).digest()
        if key not in _EFFECTS:
            arguments = [self._gpu.view(value) if isinstance(value, int) else value for value in parameters]
            variables = {name: memory.held[: memory.size] for name, memory in self.variables.items()}
            ptxcount.count(
                self._module.ptx, self.name, grid, block, arguments, dynamic_shared=shared_size, variables=variables
            )
            if len(_EFFECTS) >= 64:
                _EFFECTS.clear()
            _EFFECTS[key] = [held.copy() for held in contents]
        for held, effect in zip(contents, _EFFECTS[key], strict=True):
            held[:] = effect


class Stream:
    """A stream that records captured work."""

    handle: Any

    def __init__(self) -> None:
        self.handle = self
        self.captured: list[Any] | None = None

    def synchronize(self) -> None:
        """Return at once: no work is pending."""
