"""Launch geometry: from the elements of a launch to its grid and its blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kernelwatch.errors import ArgumentError, UnknownDtypeError
from kernelwatch.kernel import expressions
from ptxcount.util.architectures import MAX_GRID

Extent = tuple[int, int, int]
Value = TypeVar("Value")

#: What may depend on extents: an expression, a number, or a function of extents.
Length = str | int | Callable[..., int]

#: Multiprocessors of an H200. Persistent grids are made for these if no device is given.
MULTIPROCESSORS = 132


@dataclass(frozen=True)
class Geometry:
    """The grid in blocks and the block in threads, each as (x, y, z), and a block's bytes of dynamic shared memory."""

    grid: Extent
    block: Extent
    dynamic_shared: int = 0


class Side(NamedTuple):
    """One side of what a grid covers: the argument that says how long it is, elements, and elements a block covers."""

    argument: str
    length: int
    tile: int

    @property
    def tiles(self) -> int:
        """Blocks that cover the side. The last may be partial."""
        return -(-self.length // self.tile)


#: The kernel's name, the sides along x and, for matrices, along y, and the device's multiprocessors -> the grid.
Grid = Callable[[str, Sequence[Side], int], Extent]


def cover(kernel: str, sides: Sequence[Side], multiprocessors: int) -> Extent:
    """Return a block for each tile. If a matrix needs more blocks along y than a grid allows, z continues.

    Raises ArgumentError if more are needed than a grid allows.
    """
    limits = (MAX_GRID[0], MAX_GRID[1] * MAX_GRID[2])
    for side, limit in zip(sides, limits, strict=False):
        if side.tiles > limit:
            raise ArgumentError(
                f"{kernel}: {side.argument} = {side.length} needs {side.tiles} blocks; a grid allows {limit}, "
                f"so {side.argument} may be at most {limit * side.tile}"
            )
    x, y = sides[0].tiles, sides[1].tiles if len(sides) > 1 else 1
    z = -(-y // MAX_GRID[1])
    return x, -(-y // z), z


def one_block(kernel: str, sides: Sequence[Side], multiprocessors: int) -> Extent:
    """Return a single block, whose threads do everything."""
    return 1, 1, 1


def cover_or_finer(
    side: int, least: int, multiple: int, ragged: Mapping[tuple[int, ...], tuple[int, ...]], least_ragged: int
) -> Grid:
    """Return `cover`, of tiles of at most `side` elements where its blocks are less than `least`.

    Where a length is no multiple of `multiple`, `ragged` says which tiles stand for the kernel's, and `least_ragged` is
    the least.
    """

    def grid(kernel: str, sides: Sequence[Side], multiprocessors: int) -> Extent:
        tile = tuple(each.tile for each in sides)
        is_ragged = any(each.length % multiple for each in sides)
        tile = ragged[tile] if is_ragged else tile
        tiled = [each._replace(tile=extent) for each, extent in zip(sides, tile, strict=True)]
        if math.prod(each.tiles for each in tiled) < (least_ragged if is_ragged else least):
            tiled = [each._replace(tile=min(side, each.tile)) for each in tiled]
        return cover(kernel, tiled, multiprocessors)

    return grid


def persistent(per_multiprocessor: int) -> Grid:
    """Return a grid of blocks that stay: so many a multiprocessor, all along x, or fewer if there are fewer tiles."""

    def grid(kernel: str, sides: Sequence[Side], multiprocessors: int) -> Extent:
        tiles = math.prod(side.tiles for side in sides)
        return min(tiles, per_multiprocessor * multiprocessors), 1, 1

    return grid


def of_itemsize(value: Value | Mapping[int, Value], itemsize: int) -> Value:
    """Return a mapping's entry for elements of so many bytes, or what is no mapping. Raises UnknownDtypeError."""
    if not isinstance(value, Mapping):
        return value
    if itemsize not in value:
        sizes = ", ".join(map(str, value))
        raise UnknownDtypeError(f"an element of {itemsize} bytes has no geometry; those of {sizes} bytes have")
    return value[itemsize]


def three(given: Any, extents: Mapping[str, Any]) -> Extent:
    """Return blocks or threads along x, y and z for these extents: 1 where they are not given."""
    x, y, z = (*lengths(given, extents), 1, 1, 1)[:3]
    return x, y, z


def lengths(given: Any, extents: Mapping[str, Any]) -> list[int]:
    """Return what one length, several, or a function of extents that returns such, are for these extents."""
    found = expressions.called(given, extents) if callable(given) else given
    return [length(each, extents) for each in ([found] if np.ndim(found) == 0 else found)]


def length(given: Length, extents: Mapping[str, Any]) -> int:
    """Return what a length is for these extents."""
    if callable(given):
        return int(expressions.called(given, extents))
    return int(expressions.value(given, extents) if isinstance(given, str) else given)
