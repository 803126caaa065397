"""What a kernel is: the operation it performs, its source, its launch geometry and its traffic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu_kernels import dtypes
from gpu_kernels.errors import ArgumentError

Shape = tuple[int, ...]
Array = NDArray[Any]

#: Largest argument, and largest address offset in bytes, that the kernels' signed 64-bit integers reach.
MAX_BYTES = 2**63 - 1

#: Largest grid, in blocks (CUDA C++ Programming Guide, "Compute Capabilities", maximum dimensions of a grid).
MAX_GRID = (2**31 - 1, 65535, 65535)

_SOURCES = Path(__file__).parent / "kernels"


def integer(kernel: str, name: str, value: object, minimum: int) -> int:
    """An argument as a Python integer, which no arithmetic overflows, as NumPy's would.

    Raises
    ------
    ArgumentError : it is none, or not from `minimum` to MAX_BYTES.
    """
    try:
        found = None if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None or found < minimum:
        raise ArgumentError(f"{kernel}: {name} must be an integer of at least {minimum}; given: {value!r}")
    if found > MAX_BYTES:
        raise ArgumentError(f"{kernel}: {name} must fit a signed 64-bit integer, at most {MAX_BYTES}; given: {found}")
    return found


@dataclass(frozen=True)
class Operation:
    """What is computed, apart from how.

    Parameters
    ----------
    name : what a person calls it.
    minimum : the operation's integer arguments in the order in which kernels take them, each with the smallest
        value allowed.
    shapes : arguments -> (output shape, input shape), in elements.
    elements : arguments -> elements that are moved, each read once and written once.
    reference : (output before, input, arguments) -> output after, as an array or a view; neither is changed.
    """

    name: str
    minimum: dict[str, int]
    shapes: Callable[..., tuple[Shape, Shape]]
    elements: Callable[..., int]
    reference: Callable[..., Array]


@dataclass(frozen=True)
class Geometry:
    """The grid in blocks and the block in threads, each as (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True)
class Kernel:
    """One kernel of the catalog.

    Its entry point is `extern "C"`, bears its name and takes (output, input, the operation's arguments as signed
    64-bit integers). The macro ELEMENT holds the element type.

    Parameters
    ----------
    name : the kernel's name and its entry point's.
    source : file under `gpu_kernels/kernels`.
    operation : what it computes.
    block : threads a block, (x, y, z).
    grid_over : the argument that the grid covers along x and, for matrices, along y.
    """

    name: str
    source: str
    operation: Operation
    block: tuple[int, int, int]
    grid_over: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the integer arguments, in the order in which the entry point takes them."""
        return tuple(self.operation.minimum)

    def source_text(self) -> str:
        """The CUDA C++ of the kernel's family."""
        return (_SOURCES / self.source).read_text(encoding="utf-8")

    def check(self, dtype: DTypeLike = np.int8, /, **arguments: int) -> tuple[int, ...]:
        """Return the arguments in the entry point's order.

        Raises
        ------
        ArgumentError : a name is missing or unknown, a value is no integer or too small, or an array of that
            dtype would outgrow signed 64-bit addressing or the largest grid.
        UnknownDtypeError : no kernel moves that dtype.
        """
        return tuple(self._checked(dtype, arguments).values())

    def _checked(self, dtype: DTypeLike, arguments: dict[str, int]) -> dict[str, int]:
        """The arguments as Python integers, in the entry point's order. Raises as `check`."""
        if set(arguments) != set(self.parameters):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.parameters)}; given: {', '.join(sorted(arguments)) or 'nothing'}"
            )
        minimum = self.operation.minimum
        checked = {name: integer(self.name, name, arguments[name], minimum[name]) for name in self.parameters}
        itemsize = dtypes.get(dtype).itemsize
        for shape in self.operation.shapes(**checked):
            needed = itemsize * math.prod(shape)
            if needed > MAX_BYTES:
                raise ArgumentError(
                    f"{self.name}: an array of shape {shape} and {itemsize} bytes an element takes {needed} bytes; "
                    f"signed 64-bit addressing allows {MAX_BYTES}; use smaller arguments"
                )
        self._grid(**checked)
        return checked

    def _grid(self, **arguments: int) -> tuple[int, int, int]:
        """Blocks along x, y and z; where a matrix needs more along y than a grid allows, z carries on."""
        x, y = (*(-(-arguments[name] // extent) for name, extent in zip(self.grid_over, self.block, strict=False)), 1)[
            :2
        ]
        z = -(-y // MAX_GRID[1])
        limits = (MAX_GRID[0], MAX_GRID[1] * MAX_GRID[2])
        for name, extent, blocks, limit in zip(self.grid_over, self.block, (x, y), limits, strict=False):
            if blocks > limit:
                raise ArgumentError(
                    f"{self.name}: {name} = {arguments[name]} needs {blocks} blocks; a grid allows {limit}, "
                    f"so {name} may be at most {limit * extent}"
                )
        return x, -(-y // z), z

    def geometry(self, **arguments: int) -> Geometry:
        """Return the launch geometry: enough whole blocks to cover every element. Raises as `check`."""
        return Geometry(self._grid(**self._checked(np.int8, arguments)), self.block)

    def arrays(self, **arguments: int) -> tuple[Shape, Shape]:
        """Return (output shape, input shape) in elements. Raises as `check`."""
        return self.operation.shapes(**self._checked(np.int8, arguments))

    def useful_bytes(self, dtype: DTypeLike, /, **arguments: int) -> int:
        """Bytes that the operation must move: every element once in and once out (as BabelStream counts)."""
        return 2 * self.operation.elements(**self._checked(dtype, arguments)) * dtypes.get(dtype).itemsize

    def reference(self, output: Array, input: Array, **arguments: int) -> Array:
        """What NumPy says `output` must hold after the kernel ran on `input`; elements not written keep theirs.

        Raises
        ------
        ArgumentError : the arrays do not have the shapes that `arrays` gives.
        """
        checked = self._checked(np.int8, arguments)
        shapes = self.operation.shapes(**checked)
        if (output.shape, input.shape) != shapes:
            raise ArgumentError(
                f"{self.name}: output and input must have the shapes {shapes[0]} and {shapes[1]}; "
                f"given: {output.shape} and {input.shape}"
            )
        return self.operation.reference(output, input, **checked)
