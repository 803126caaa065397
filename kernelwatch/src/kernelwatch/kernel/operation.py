"""What kernels compute: their arguments, the shapes of their arrays, and what NumPy says of the output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelwatch.errors import UnknownDtypeError
from kernelwatch.kernel import dtypes
from kernelwatch.kernel.dtypes import ElementType

Shape = tuple[int, ...]
Array = NDArray[Any]

#: Inputs that an operation may have.
MAX_INPUTS = 8

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
