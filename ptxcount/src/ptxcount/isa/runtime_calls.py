"""Calls of what every CUDA program may call: ``assert``, ``malloc``, ``printf`` (CUDA C++ programming guide, 10.34).

A call hands its arguments over in variables of the ``.param`` space, which are the thread's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import Group, Instruction, Symbol
from ..util.errors import TrapError
from .operands import unsupported
from .registry import Step, binds
from .spaces import resolver

#: How many characters of a text are read.
_TEXT = 4096
#: Bytes of the heap, as a host has it that asks for no other, of what they are multiples, and of a child's arguments.
HEAP, _UNIT, _PARAMETERS = 8 << 20, 16, 4096


class _Arguments(NamedTuple):
    """What a call is given, by place."""

    chunk: Chunk
    names: list[str]
    widths: tuple[int, ...]

    def value(self, place: int) -> Value:
        """One of them, for all threads."""
        if not self.widths[place]:
            return np.full((1, 1), _PARAMETERS)
        chunk, address = self.chunk, np.full((1, 1), self.chunk.context.symbols[self.names[place]])
        return chunk.local.load(address, self.widths[place], 1, chunk.active, chunk.reporter())[0]

    def first(self, place: int) -> int:
        """One of them, of the first active thread."""
        return int(spread(dense(self.value(place)), self.chunk.shape)[self.chunk.first_active()])

    def text(self, address: int) -> str:
        """The text at an address, up to its zero."""
        data = bytearray()
        only = np.zeros(self.chunk.shape, bool)
        only[self.chunk.first_active()] = True
        while len(data) < _TEXT:
            value = self.load(np.full((1, 1), address + len(data), np.uint64), 1, only)
            byte = int(value[self.chunk.first_active()])
            if not byte:
                break
            data.append(byte)
        return data.decode("utf-8", "replace")

    def load(self, address: Value, size: int, active: Array) -> Array:
        """What lies at a generic address of each active thread."""
        chunk = self.chunk
        before, chunk.active = chunk.active, active
        try:
            space, place = resolver(None, lambda _: address)(chunk)
            (found,) = chunk.memory(space).load(place, size, 1, active, chunk.reporter())
        finally:
            chunk.active = before
        return spread(found, chunk.shape)


def _assert(given: _Arguments) -> Value:
    """``__assertfail(message, file, line, function, size of a character)``: the kernel ends."""
    message, file, function = (given.text(given.first(place)) for place in (0, 1, 3))
    text = f"assertion {message!r} failed in {function}, {file}:{given.first(2)}"
    raise given.chunk.fault(TrapError, text)


def _allocate(given: _Arguments) -> Value:
    """``malloc(bytes)``: from a heap of its own, in which nothing comes back; null where it is used up."""
    chunk = given.chunk
    active = spread(chunk.active, chunk.shape)
    wanted = np.where(active, spread(dense(given.value(0)).astype(np.int64), chunk.shape), 0)
    taken = -(-wanted // _UNIT) * _UNIT
    places = chunk.context.heap_used + np.cumsum(taken).reshape(chunk.shape) - taken
    fits = places + taken <= HEAP
    chunk.context.heap_used = int((places + taken)[fits].max(initial=chunk.context.heap_used))
    if not (fits | ~active).all():
        text = f"malloc gives null: more than {HEAP} bytes were asked for, and free gives nothing back here"
        chunk.find("heap", text, int((active & ~fits).sum()))
    if not chunk.context.heap:
        chunk.context.heap = chunk.context.memory.add(np.zeros(HEAP, np.uint8), "the heap")
    return np.where(fits, chunk.context.heap + places, 0).astype(np.uint64)


def _finding(code: str, text: str) -> Callable[[_Arguments], Value]:
    """A call that is a finding, and does nothing."""

    def find(given: _Arguments) -> Value:
        given.chunk.find(code, text, int(spread(given.chunk.active, given.chunk.shape).sum()))
        return np.zeros((1, 1), np.uint32)

    return find


_print = _finding("printf", "the kernel prints, which is not shown")
_child = _finding("child-kernel", "the kernel launches another one, which is not run: the counts are its own alone")
_condition = _finding("graph-condition", "the kernel sets a condition of a CUDA graph, which nobody asks for here")


#: What can be called: the bytes of each argument, and what it does.
FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[_Arguments], Value]]] = {
    "vprintf": ((8, 8), _print),
    "__assertfail": ((8, 8, 4, 8, 8), _assert),
    "malloc": ((8,), _allocate),
    "free": ((8,), lambda given: np.zeros((1, 1), np.uint32)),
    "cudaGraphSetConditional": ((8, 4), _condition),
    **dict.fromkeys(  # room for the arguments of another kernel
        ("cudaGetParameterBufferV2", "__cudaCDP2GetParameterBufferV2"),
        ((8, 12, 12, 4), lambda given: _allocate(given._replace(widths=(0,)))),
    ),
    **dict.fromkeys(("cudaLaunchDeviceV2", "__cudaCDP2LaunchDeviceV2"), ((8, 8), _child)),
}


@binds("call")
def _call(instruction: Instruction) -> Step:
    """``call{.uni} {(result),} function{, (argument, ...)}`` of what is provided; others are inlined (`lowering`)."""
    function = next((each.name for each in instruction.operands if isinstance(each, Symbol)), "")
    lists = [each.items for each in instruction.operands if isinstance(each, Group)]
    names = [[item.name for item in items if isinstance(item, Symbol)] for items in lists]
    if function not in FUNCTIONS or not names or len(names[-1]) != len(FUNCTIONS[function][0]):
        raise unsupported(instruction)
    (widths, compute), (*results, given) = FUNCTIONS[function], names

    def step(chunk: Chunk) -> None:
        value = compute(_Arguments(chunk, given, widths))
        for name in (each for result in results for each in result):
            place = np.full((1, 1), chunk.context.symbols[name])
            array = dense(value)
            chunk.local.store(place, array.itemsize, [array], chunk.active, chunk.reporter())

    return step
