"""What kernels of one output compute whose arrays all have one dtype, and how such a row becomes a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import UnknownDtypeError
from kernelwatch.kernel import dtypes, geometry
from kernelwatch.kernel.arguments import Array, Shape, Taken
from kernelwatch.kernel.dtypes import ElementType
from kernelwatch.kernel.geometry import Extent, Grid
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, inputs, outputs, scalar
from kernelwatch.kernel.sources import Source

#: What inputs hold when a kernel is measured and verified. Bits: any bytes, for operations that move data, whatever it
#: is. Exact: small multiples of 1/8, whose sums and products are exact in float32 and float64, in any order.
Values = Literal["bits", "exact"]


@dataclass(frozen=True)
class Operation:
    """What is computed. The verification, useful bytes and flops are made from it.

    Parameters
    ----------
    name : str
        What a person calls it.
    minimum : dict of str to int
        The integer arguments in the order in which kernels take them, each with the smallest value allowed.
    shapes : callable
        Integer arguments -> shapes in elements: the output's first, then each input's.
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

    def __post_init__(self) -> None:
        if self.computes and not self.names:
            raise ValueError(f"{self.name} computes: name the dtypes that it has")

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

    def arguments(self) -> list[Parameter]:
        """Return what its kernels take: the output, the inputs, the integers, the scalars."""
        arrays: list[ArrayParameter] = [outputs("output", self._shape(0), ulp=self.ulp)]
        arrays += [inputs(f"input {place}", self._shape(1 + place), values=self.values) for place in range(self.inputs)]
        integers = [scalar(name, "int64", least=least) for name, least in self.minimum.items()]
        return [*arrays, *integers, *(scalar(name, "float64") for name in self.scalars)]

    def _shape(self, array: int) -> Callable[..., Shape]:
        return lambda **extents: self.shapes(**self.integers(extents))[array]

    def integers(self, extents: Mapping[str, Any]) -> dict[str, int]:
        """Return the integers of what a launch gives."""
        return {name: extents[name] for name in self.minimum}


class Row(Kernel):
    """A kernel of an operation.

    Its entry point is `extern "C"` and has the kernel's name. It takes the output, the inputs, the operation's integers
    as signed 64-bit integers, then its scalars as double. The macro ELEMENT holds the element type.

    Parameters
    ----------
    name : str
        The kernel's name and its entry point's.
    source : Path
        The file of CUDA C++ that holds it, perhaps among others.
    operation : Operation
        What it computes.
    block, over, tile, grid, dynamic_shared
        As of `Kernel`; a block for each tile if no grid is given, along z where a grid is too long along y.
    """

    def __init__(
        self,
        name: str,
        source: Path,
        operation: Operation,
        block: Extent | Mapping[int, Extent],
        over: Sequence[str],
        tile: Sequence[int] | Mapping[int, Sequence[int]] | None = None,
        grid: Grid = geometry.cover,
        dynamic_shared: int | Mapping[int, int] = 0,
    ) -> None:
        self.operation = operation
        shape: dict[str, Any] = {"over": over, "tile": tile, "grid": grid, "dynamic_shared": dynamic_shared}
        super().__init__(name, operation.arguments(), block, file=str(source), reference=operation.reference, **shape)

    def element(self, dtype: DTypeLike) -> str:
        """Return the name of the element type that serves a dtype. Raises UnknownDtypeError if there is none."""
        return self.operation.element(dtype).name

    def options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return nvcc's options that choose the element type. Raises as `element`."""
        return self.operation.element(dtype).options(computes=self.operation.computes)

    def at_commit(self, dtype: DTypeLike, arch: str) -> Source:
        """Return its source, which includes nothing of its package."""
        return Source(self.source.read_text(encoding="utf-8"), name=self.source.name)

    def taken(self, *_: object, **__: object) -> list[Taken]:
        """Return what the entry point takes: eight bytes for each argument."""
        return [(8, 8, None)] * len(self.declared)

    def variables(self, *_: object, **__: object) -> dict[str, bytes]:
        """Return what variables of the module hold before a launch: there are none."""
        return {}

    def useful_bytes(self, dtype: DTypeLike, /, **extents: Any) -> int:
        """Return the bytes that must be moved, those read and those written (as BabelStream counts)."""
        shapes, elements = self.arrays(dtype, **extents), self.operation.elements
        count = elements(**self.operation.integers(self.checked(extents))) if elements else sum(map(math.prod, shapes))
        return count * dtypes.get(dtype).itemsize

    def flops(self, **extents: Any) -> int:
        """Return the floating-point operations that the operation must do; 0 for one that only moves data."""
        integers = self.operation.integers(self.checked(extents))
        return self.operation.flops(**integers) if self.operation.flops else 0

    def said(self, arrays: Mapping[str, Array], extents: Mapping[str, Any]) -> Any:
        """Return what the reference says of the output; elements not written keep theirs."""
        return self.operation.reference(*arrays.values(), **extents)
