"""A kernel: the operation that it performs, its source and its launch geometry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import dtypes, geometry
from kernelwatch.kernel.arguments import MAX_BYTES, integer, real
from kernelwatch.kernel.geometry import Extent, Geometry, Grid, Side, of_itemsize
from kernelwatch.kernel.launch import FLAGS, words
from kernelwatch.kernel.operation import Array, Operation, Shape
from kernelwatch.kernel.parameters import ArrayArgument, Direction, ScalarArgument, Taken
from kernelwatch.toolchain import build


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    Its entry point is `extern "C"` and has the kernel's name. It takes the output, the inputs, the operation's integers
    as signed 64-bit integers, then its scalars as double. The macro ELEMENT holds the element type. A parameter that
    depends on the size of an element maps each size in bytes to a value.

    Parameters
    ----------
    name : str
        The kernel's name and its entry point's.
    source : Path
        The file of CUDA C++ that holds it, perhaps among others.
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
    """

    name: str
    source: Path
    operation: Operation
    block: Extent | Mapping[int, Extent]
    over: tuple[str, ...]
    tile: tuple[int, ...] | Mapping[int, tuple[int, ...]] | None = None
    grid: Grid = geometry.cover
    dynamic_shared: int | Mapping[int, int] = 0

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arguments, in the order in which the entry point takes them."""
        return (*self.operation.minimum, *self.operation.scalars)

    def source_text(self) -> str:
        """Return the CUDA C++ of the kernel's file."""
        return self.source.read_text(encoding="utf-8")

    def element(self, dtype: DTypeLike) -> str:
        """Return the name of the element type that serves a dtype. Raises UnknownDtypeError if there is none."""
        return self.operation.element(dtype).name

    def options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return nvcc's options that choose the element type.

        Raises
        ------
        UnknownDtypeError
            The operation does not have it.
        """
        return self.operation.element(dtype).options(computes=self.operation.computes)

    def cubin(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> build.Cubin:
        """Compile it to machine code.

        Parameters
        ----------
        dtype : dtype
            The element type: one that the operation has.
        flags : str
            nvcc's flags, as typed.
        arch : str
            For example "sm_90".

        Raises
        ------
        UnknownDtypeError, UnknownFlagsError
            The operation does not have the dtype, or the flags are no words.
        NvccNotFoundError, CompileError
            As `build.cubin`.
        """
        return build.cubin(self.source, self.name, (*words(flags), *self.options(dtype)), arch=arch)

    def ptx(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> str:
        """Compile its file to PTX with source lines. Arguments and errors as `cubin`."""
        return build.ptx(self.source, (*words(flags), *self.options(dtype)), arch=arch)

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

    def bound(self, dtype: DTypeLike, /, **arguments: float) -> list[ArrayArgument | ScalarArgument]:
        """Return the arguments of a launch in the entry point's order, as of any kernel. Raises as `check`."""
        element, values = np.dtype(dtype), "exact" if self.is_exact else "bits"
        output, *inputs = self.arrays(**arguments)
        given = dict(zip(self.parameters, self.check(dtype, **arguments), strict=True))
        return [
            ArrayArgument("output", output, element, Direction.OUT, "", self.ulp(element.name)),
            *(
                ArrayArgument(f"input {place}", shape, element, Direction.IN, values, place=place)
                for place, shape in enumerate(inputs)
            ),
            *(ScalarArgument(name, value, np.dtype(type(value))) for name, value in given.items()),
        ]

    def taken(self, *_: object, **__: object) -> list[Taken]:
        """Return what the entry point takes: eight bytes for each argument."""
        return [(8, 8, None)] * (1 + self.operation.inputs + len(self.parameters))

    def variables(self, *_: object, **__: object) -> dict[str, bytes]:
        """Return what variables of the module hold before a launch: there are none."""
        return {}

    def expected(self, arrays: Mapping[str, Array], arguments: Mapping[str, float]) -> list[Array | None]:
        """Return what NumPy says of each output. Raises as `reference`."""
        output, *inputs = arrays.values()
        return [self.reference(output, *inputs, **arguments)]

    @property
    def is_exact(self) -> bool:
        """Whether inputs hold values whose sums and products are exact, not any bits."""
        return self.operation.computes

    @property
    def says(self) -> Callable[..., Array]:
        """The function that says what the output must hold."""
        return self.operation.reference

    def ulp(self, dtype: str) -> float | None:
        """Return how far an output may lie from its reference, in units of the last place; None: not at all."""
        return self.operation.ulp.get(dtype)

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
                f"{output.dtype}: indices would, too. Mend it where the operation is defined, or count the kernel "
                "with ptxcount"
            ) from error
        if (found.shape, found.dtype) != (output.shape, output.dtype):
            raise ArgumentError(
                f"{self.name}: the reference of {self.operation.name} gives {found.dtype} of shape {found.shape}; it "
                f"must give the output's {output.dtype} of shape {output.shape}"
            )
        return found
