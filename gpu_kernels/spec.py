"""What a kernel is: the operation that it performs, its source and its launch geometry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import dtypes, geometry
from .arguments import MAX_BYTES, integer, real
from .dtypes import ElementType
from .errors import ArgumentError, UnknownDtypeError
from .geometry import Extent, Geometry, Grid, Side, of_itemsize
from .sweep import Sweep

Shape = tuple[int, ...]
Array = NDArray[Any]

#: Inputs that an operation may have.
MAX_INPUTS = 8

_SOURCES = Path(__file__).parent / "kernels"


#: What inputs hold when a kernel is measured and verified. Bits: any bytes, for operations that move data, whatever it
#: is. Exact: small multiples of 1/8, whose sums and products are exact in float32 and float64, in any order.
Values = Literal["bits", "exact"]


@dataclass(frozen=True)
class Operation:
    """What is computed: one row of `operations`. The benchmarks and the verification are made from it.

    Parameters
    ----------
    name : str
        What a person calls it.
    minimum : dict of str to int
        The integer arguments in the order in which kernels take them, each with the smallest value allowed.
    shapes : callable
        Integer arguments -> shapes in elements: the output's first, then each input's, of which there are 0 to 8.
    reference : callable
        Takes the output as it was before, each input, and all arguments by name. Returns the output as it must be
        afterwards: a new array, a view, or the given output, written into. It must not write into the inputs.
    scalars : tuple of str
        Floating-point arguments; kernels take them behind the integers, as double.
    values : {"bits", "exact"}
        What inputs hold.
    names : tuple of str
        The dtypes that it has, by name; any that can be moved if none is named, which computing operations must not.
    ulp : dict of str to float
        For dtypes in which the result is not exact: how far it may lie from the reference in float64, in units of
        the last place of the larger of the reference and 1. All other dtypes are compared bit for bit.
    elements : callable, optional
        Integer arguments -> elements that must be moved, those read and those written together; every element of
        every array once if not given.
    flops : callable, optional
        Integer arguments -> floating-point operations that must be done; none if not given.
    awkward : tuple of tuple of int
        Integer arguments at which kernels go wrong easily: at the edges of blocks and tiles, thin, prime. Tests verify
        every kernel there, and profile it.
    timed, counted : tuple of Sweep
        Where its kernels are measured: on a GPU, and by counting.
    """

    name: str
    minimum: dict[str, int]
    shapes: Callable[..., tuple[Shape, ...]]
    reference: Callable[..., Array]
    scalars: tuple[str, ...] = ()
    values: Values = "bits"
    names: tuple[str, ...] = ()
    ulp: Mapping[str, float] = field(default_factory=dict)
    elements: Callable[..., int] | None = None
    flops: Callable[..., int] | None = None
    awkward: tuple[tuple[int, ...], ...] = ()
    timed: tuple[Sweep, ...] = ()
    counted: tuple[Sweep, ...] = ()

    def __post_init__(self) -> None:
        if self.computes and not self.names:
            raise ValueError(f"{self.name} computes: name the dtypes that it has")
        if self.inputs > MAX_INPUTS:
            raise ValueError(f"{self.name} has {self.inputs} inputs; allowed are 0 to {MAX_INPUTS}")

    @property
    def computes(self) -> bool:
        """Whether it does arithmetic. Otherwise it only moves data."""
        return self.values == "exact"

    @property
    def inputs(self) -> int:
        """How many inputs it has."""
        return len(self.shapes(**self.minimum)) - 1

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes to measure it with, by name."""
        return self.names or dtypes.ONE_OF_EACH_SIZE

    def useful_bytes(self, dtype: DTypeLike, /, **integers: int) -> int:
        """Return the bytes that must be moved, those read and those written (as BabelStream counts)."""
        elements = self.elements(**integers) if self.elements else sum(map(math.prod, self.shapes(**integers)))
        return elements * dtypes.get(dtype).itemsize

    def element(self, dtype: DTypeLike) -> ElementType:
        """Return the element type of `dtype`.

        Raises
        ------
        UnknownDtypeError
            No element type serves the dtype, or the operation does not have it.
        """
        found = dtypes.get(dtype)
        if self.names and np.dtype(dtype).name not in self.names:
            raise UnknownDtypeError(f"{self.name} has no {np.dtype(dtype).name}; it has {', '.join(self.names)}")
        return found


@dataclass(frozen=True)
class Kernel:
    """One kernel of the catalog.

    Its entry point is `extern "C"` and has the kernel's name. It takes the output, the inputs, the operation's integers
    as signed 64-bit integers, then its scalars as double. The macro ELEMENT holds the element type. A parameter that
    depends on the size of an element maps each size in bytes to a value.

    Parameters
    ----------
    name : str
        The kernel's name and its entry point's.
    source : str
        File under `gpu_kernels/kernels`.
    operation : Operation
        What it computes.
    block : tuple of int, or mapping
        Threads a block, (x, y, z).
    over : tuple of str
        The arguments that the grid covers along x and, for matrices, along y.
    tile : tuple of int, or mapping, optional
        Elements that a block covers along each; as many as it has threads if not given.
    grid : callable
        From tiles to blocks, a function of `geometry`.
    dynamic_shared : int, or mapping
        Bytes of dynamic shared memory a block.
    sweeps : tuple of str
        Of its operation's sweeps over every kernel, those that measure it; all of them if none is named. A sweep that
        names its kernels measures these, whatever they say.
    """

    name: str
    source: str
    operation: Operation
    block: Extent | Mapping[int, Extent]
    over: tuple[str, ...]
    tile: tuple[int, ...] | Mapping[int, tuple[int, ...]] | None = None
    grid: Grid = geometry.cover
    dynamic_shared: int | Mapping[int, int] = 0
    sweeps: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments, in the order in which the entry point takes them."""
        return (*self.operation.minimum, *self.operation.scalars)

    def source_text(self) -> str:
        """Return the CUDA C++ of the kernel's family."""
        return (_SOURCES / self.source).read_text(encoding="utf-8")

    def options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return nvcc's options that choose the element type.

        Raises
        ------
        UnknownDtypeError
            The operation does not have it.
        """
        return self.operation.element(dtype).options(computes=self.operation.computes)

    def check(self, dtype: DTypeLike | None = None, /, **arguments: float) -> tuple[int | float, ...]:
        """Return the arguments in the entry point's order, for the operation's first dtype if none is given.

        Raises
        ------
        ArgumentError
            A name is missing or unknown, a value is no number or too small, or an array of that dtype would outgrow
            signed 64-bit addressing or the largest grid.
        UnknownDtypeError
            There is no such element type.
        """
        integers, scalars = self._checked(dtype, arguments)
        return (*integers.values(), *scalars.values())

    def _itemsize(self, dtype: DTypeLike | None) -> int:
        return dtypes.get(self.operation.dtypes[0] if dtype is None else dtype).itemsize

    def _checked(
        self, dtype: DTypeLike | None, arguments: Mapping[str, float]
    ) -> tuple[dict[str, int], dict[str, float]]:
        """Return integers and scalars as Python numbers, in the entry point's order. Raises as `check`."""
        if set(arguments) != set(self.parameters):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.parameters)}; given: {', '.join(sorted(arguments)) or 'nothing'}"
            )
        least = self.operation.minimum
        integers = {name: integer(self.name, name, arguments[name], least[name]) for name in least}
        scalars = {name: real(self.name, name, arguments[name]) for name in self.operation.scalars}
        itemsize = self._itemsize(dtype)
        for shape in self.operation.shapes(**integers):
            needed = itemsize * math.prod(shape)
            if needed > MAX_BYTES:
                raise ArgumentError(
                    f"{self.name}: an array of shape {shape} and {itemsize} bytes an element takes {needed} bytes; "
                    f"signed 64-bit addressing allows {MAX_BYTES}; use smaller arguments"
                )
        self._geometry(itemsize, geometry.MULTIPROCESSORS, integers)
        return integers, scalars

    def _geometry(self, itemsize: int, multiprocessors: int, integers: Mapping[str, int]) -> Geometry:
        block = of_itemsize(self.block, itemsize)
        tile = block if self.tile is None else of_itemsize(self.tile, itemsize)
        sides = [Side(name, integers[name], extent) for name, extent in zip(self.over, tile, strict=False)]
        dynamic = of_itemsize(self.dynamic_shared, itemsize)
        return Geometry(self.grid(self.name, sides, multiprocessors), block, dynamic)

    def geometry(
        self, dtype: DTypeLike | None = None, multiprocessors: int = geometry.MULTIPROCESSORS, /, **arguments: float
    ) -> Geometry:
        """Return the launch geometry for a device of so many multiprocessors. Dtype and errors as `check`."""
        integers, _ = self._checked(dtype, arguments)
        return self._geometry(self._itemsize(dtype), multiprocessors, integers)

    def arrays(self, **arguments: float) -> tuple[Shape, ...]:
        """Return shapes in elements: the output's, then each input's. Raises as `check`."""
        return self.operation.shapes(**self._checked(None, arguments)[0])

    def useful_bytes(self, dtype: DTypeLike, /, **arguments: float) -> int:
        """Return the bytes that the operation must move, those read and those written. Raises as `check`."""
        dtypes.get(dtype)  # None is none here
        return self.operation.useful_bytes(dtype, **self._checked(dtype, arguments)[0])

    def flops(self, **arguments: float) -> int:
        """Return the floating-point operations that the operation must do; 0 for one that only moves data."""
        integers, _ = self._checked(None, arguments)
        return self.operation.flops(**integers) if self.operation.flops else 0

    def reference(self, output: Array, *inputs: Array, **arguments: float) -> Array:
        """Return what NumPy says `output` must hold after the kernel ran; elements not written keep theirs.

        It may be `output` itself, written into.

        Raises
        ------
        ArgumentError
            The arrays do not have the shapes that `arrays` gives, or the operation's reference fails or gives another
            array.
        """
        integers, scalars = self._checked(None, arguments)
        shapes, given = self.operation.shapes(**integers), tuple(array.shape for array in (output, *inputs))
        if given != shapes:
            raise ArgumentError(
                f"{self.name}: output and inputs must have the shapes {', '.join(map(str, shapes))}; "
                f"given: {', '.join(map(str, given))}"
            )
        try:
            found = self.operation.reference(output, *inputs, **integers, **scalars)
        except MemoryError:
            raise
        except Exception as error:  # whatever a row's function raises
            raise ArgumentError(
                f"{self.name}: its reference raises {type(error).__name__}: {error}. All arrays have one dtype, here "
                f"{output.dtype}: indices would, too. Mend it in gpu_kernels/operations.py, or count the kernel with "
                "ptxcount: docs/add-a-kernel.md"
            ) from error
        if (found.shape, found.dtype) != (output.shape, output.dtype):
            raise ArgumentError(
                f"{self.name}: the reference of {self.operation.name} gives {found.dtype} of shape {found.shape}; it "
                f"must give the output's {output.dtype} of shape {output.shape}"
            )
        return found
