"""Calls of the device runtime: ``assert``, ``malloc``, ``printf`` (CUDA C++ programming guide, 10.34).

A call passes its arguments in variables of the ``.param`` space, which are private to the thread.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import Group, Instruction, Operand, format_operand
from ..util.errors import TrapError
from .opcode_registry import Step, binds
from .operands import make_count_error, split_group, unsupported
from .spaces import make_resolver

#: Maximum length of a text in bytes.
_MAX_TEXT = 4096
#: Default heap size, alignment of allocations, and maximum arguments of a child kernel, in bytes.
HEAP, _UNIT, _PARAMETERS = 8 << 20, 16, 4096


class _CallArguments(NamedTuple):
    """Arguments of a call by position: variables of the ``.param`` space, and their sizes in bytes."""

    chunk: Chunk
    names: list[str]
    widths: tuple[int, ...]

    def load_argument(self, place: int) -> Value:
        chunk = self.chunk
        address = np.full((1, 1), chunk.context.symbols[self.names[place]])
        return chunk.local.load(address, self.widths[place], 1, chunk.active, chunk.make_reporter())[0]

    def load_first(self, place: int) -> int:
        """Load an argument of the first active thread."""
        return int(spread(dense(self.load_argument(place)), self.chunk.shape)[self.chunk.find_first_active()])

    def load_text(self, address: int) -> str:
        """Load the zero-terminated text at a generic address, at most `_MAX_TEXT` bytes."""
        data = bytearray()
        mask = np.zeros(self.chunk.shape, bool)
        mask[self.chunk.find_first_active()] = True
        while len(data) < _MAX_TEXT:
            value = self.load_bytes(np.full((1, 1), address + len(data), np.uint64), mask)
            byte = int(value[self.chunk.find_first_active()])
            if not byte:
                break
            data.append(byte)
        return data.decode("utf-8", "replace")

    def load_bytes(self, address: Value, active: Array) -> Array:
        """Load a byte from the generic address of each active thread; all addresses are in one state space."""
        chunk = self.chunk
        previous, chunk.active = chunk.active, active
        try:
            space, place = make_resolver(None, lambda _: address)(chunk)
            (values,) = chunk.find_memory(space).load(place, 1, 1, active, chunk.make_reporter())
        finally:
            chunk.active = previous
        return spread(values, chunk.shape)


def _fail_assertion(arguments: _CallArguments) -> Value:
    """Execute ``__assertfail(message, file, line, function, size of a character)``: end the kernel."""
    message, file, function = (arguments.load_text(arguments.load_first(place)) for place in (0, 1, 3))
    text = f"assertion {message!r} failed in {function}, {Path(file).name}:{arguments.load_first(2)}"
    raise arguments.chunk.make_fault(TrapError, text)


def _allocate_heap(chunk: Chunk, size: Value) -> Value:
    """Execute ``malloc(size)``. No block is reused; NULL if this and earlier requests exceed the heap."""
    active = spread(chunk.active, chunk.shape)
    requested = spread(dense(size).astype(np.uint64), chunk.shape)
    can_fit = requested <= HEAP - chunk.context.heap_used
    sizes = np.where(active & can_fit, requested, 0).astype(np.int64)
    padded = -(-sizes // _UNIT) * _UNIT
    ends = chunk.context.heap_used + np.cumsum(padded).reshape(chunk.shape)
    fits = can_fit & (ends <= HEAP)
    chunk.context.heap_used = int(ends[fits].max(initial=chunk.context.heap_used))
    if not (fits | ~active).all():
        text = f"malloc returned NULL: {HEAP} bytes are available, and free returns none of them; count a smaller grid"
        chunk.add_finding("heap", text, int((active & ~fits).sum()))
    if not chunk.context.heap:
        chunk.context.heap = chunk.context.memory.add(np.zeros(HEAP, np.uint8), "the heap")
    return np.where(fits, chunk.context.heap + ends - padded, 0).astype(np.uint64)


def _make_finding(code: str, text: str) -> Callable[[_CallArguments], Value]:
    """Make a runtime function that only adds a finding, once per active thread, and returns 0."""

    def record_finding(arguments: _CallArguments) -> Value:
        arguments.chunk.add_finding(code, text, int(spread(arguments.chunk.active, arguments.chunk.shape).sum()))
        return np.zeros((1, 1), np.uint32)

    return record_finding


_CHILD_NOTE = "the kernel launches another kernel, which does not run; count that kernel by itself"
_GRAPH_NOTE = "the kernel sets a condition of a CUDA graph; there is no graph here"
#: Supported functions: the argument sizes in bytes, and the implementation.
FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[_CallArguments], Value]]] = {
    "vprintf": ((8, 8), _make_finding("printf", "the kernel prints; the text is not shown")),
    "__assertfail": ((8, 8, 4, 8, 8), _fail_assertion),
    "malloc": ((8,), lambda arguments: _allocate_heap(arguments.chunk, arguments.load_argument(0))),
    "free": ((8,), lambda arguments: np.zeros((1, 1), np.uint32)),
    "cudaGraphSetConditional": ((8, 4), _make_finding("graph-condition", _GRAPH_NOTE)),
    **dict.fromkeys(  # room for the arguments of another kernel
        ("cudaGetParameterBufferV2", "__cudaCDP2GetParameterBufferV2"),
        ((8, 12, 12, 4), lambda arguments: _allocate_heap(arguments.chunk, np.full((1, 1), _PARAMETERS))),
    ),
    **dict.fromkeys(
        ("cudaLaunchDeviceV2", "__cudaCDP2LaunchDeviceV2"), ((8, 8), _make_finding("child-kernel", _CHILD_NOTE))
    ),
}


@binds("call")
def _bind_call(instruction: Instruction) -> Step:
    """Bind ``call{.uni} {(result),} function{, (argument, ...)}`` of a runtime function; `lowering` inlines others."""
    operands = [*instruction.operands]
    results = _list_names(operands.pop(0)) if isinstance(operands[0], Group) else []
    function = format_operand(operands.pop(0))
    arguments = _list_names(operands.pop(0)) if operands else []
    widths, compute = FUNCTIONS[function]
    if len(arguments) != len(widths):
        raise make_count_error(instruction, function, len(arguments), "argument", len(widths))

    def step(chunk: Chunk) -> None:
        for name in (*results, *arguments):
            if name not in chunk.context.symbols:
                raise unsupported(instruction, f"{name} is not declared as a variable; declare it by .param")
        value = compute(_CallArguments(chunk, arguments, widths))
        for name in results:
            place = np.full((1, 1), chunk.context.symbols[name])
            array = dense(value)
            chunk.local.store(place, array.itemsize, [array], chunk.active, chunk.make_reporter())

    return step


def _list_names(operand: Operand) -> list[str]:
    return [*map(format_operand, split_group(operand))]
