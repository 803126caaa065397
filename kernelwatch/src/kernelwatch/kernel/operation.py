"""Rows of this project's earlier packages. `Kernel` alone makes today's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelwatch.kernel import expressions, geometry
from kernelwatch.kernel.arguments import Array, Shape
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.parameters import ArrayParameter, inputs, outputs, scalar


@dataclass(frozen=True)
class Operation:
    """A computation: the integers with their least values, and the arrays' shapes by these, the output's first."""

    name: str
    minimum: Mapping[str, int]
    shapes: Callable[..., tuple[Shape, ...]]
    reference: Callable[..., Array]
    values: str = "bits"
    names: tuple[str, ...] = ()
    ulp: Mapping[str, float] = field(default_factory=dict)
    elements: Callable[..., int] | None = None
    flops: Callable[..., int] | None = None
    awkward: tuple[tuple[int, ...], ...] = ()


def Row(name: str, source: Path, operation: Operation, block: Any, over: Sequence[str], **shape: Any) -> Kernel:  # noqa: N802
    """Return the kernel of an operation: a file of an earlier package, and the geometry as of `Kernel`."""

    def shape_at(place: int) -> Callable[..., Shape]:
        return lambda **extents: operation.shapes(**{name: extents[name] for name in operation.minimum})[place]

    output, *input_names = expressions.list_parameters(operation.reference)[
        : len(operation.shapes(**operation.minimum))
    ]
    arrays: list[ArrayParameter] = [outputs(output, shape_at(0), ulp=operation.ulp)]
    arrays += [inputs(name, shape_at(1 + place), values=operation.values) for place, name in enumerate(input_names)]
    elements = operation.elements
    return Kernel(
        name,
        [*arrays, *(scalar(name, "int64", least=least) for name, least in operation.minimum.items())],
        block,
        over=over,
        file="/".join(source.parts[-3:]),
        options=["-DELEMENT={T}" if operation.values == "exact" else "-DELEMENT={bits}"],
        dtypes=operation.names,
        reference=operation.reference,
        useful_bytes=elements and (lambda itemsize, **extents: itemsize * elements(**extents)),
        flops=operation.flops or 0,
        **{"grid": geometry.cover, **shape},
    )
