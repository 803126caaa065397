"""How packages of this project's earlier commits made their rows. Today's are made by `Kernel` alone."""

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
    """What is computed: the integers with their least values, the arrays' shapes by these, the output's first."""

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
    """Return the kernel of an operation: a file of their packages, and the geometry as of `Kernel`."""

    def shape_of(place: int) -> Callable[..., Shape]:
        return lambda **extents: operation.shapes(**{name: extents[name] for name in operation.minimum})[place]

    output, *others = expressions.asked(operation.reference)[: len(operation.shapes(**operation.minimum))]
    arrays: list[ArrayParameter] = [outputs(output, shape_of(0), ulp=operation.ulp)]
    arrays += [inputs(each, shape_of(1 + place), values=operation.values) for place, each in enumerate(others)]
    elements = operation.elements
    return Kernel(
        name,
        [*arrays, *(scalar(each, "int64", least=least) for each, least in operation.minimum.items())],
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
