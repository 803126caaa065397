"""Launch geometry: the grid, the block and the dynamic shared memory of a launch, from its extents."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kernelwatch.errors import ArgumentError, UnknownDtypeError
from kernelwatch.kernel import expressions
from ptxcount.util.architectures import MAX_GRID
from ptxcount.util.grammar import count_noun

Extent = tuple[int, int, int]
Value = TypeVar("Value")

#: A length that may depend on extents: an expression, a number, or a function of extents.
LengthLike = str | int | Callable[..., int]

#: Number of multiprocessors of an H200, for persistent grids if no device is given.
DEFAULT_MULTIPROCESSORS = 132


@dataclass(frozen=True)
class Geometry:
    """The grid in blocks, the block in threads, each as (x, y, z), and a block's bytes of dynamic shared memory."""

    grid: Extent
    block: Extent
    dynamic_shared: int = 0


class GridSide(NamedTuple):
    """One side of a grid: its expression in `over` (`argument`), its length and its tile's length, in elements."""

    argument: str
    length: int
    tile: int

    @property
    def tiles(self) -> int:
        """The number of tiles that cover the side. The last tile may be partial."""
        return -(-self.length // self.tile)


def make_sides(kernel: str, over: Sequence[str], tile: Sequence[int], extents: Mapping[str, Any]) -> list[GridSide]:
    """Return the sides of `over`. Raises ArgumentError if there are more than three, or one has no or an empty tile."""
    if len(over) > len(MAX_GRID):
        raise ArgumentError(f"{kernel}: over= must give at most three sides, x, y and z; given: {list(over)}")
    if len(tile) < len(over) or min(tile) < 1:
        raise ArgumentError(
            f"{kernel}: tile, by default the block, is {tuple(tile)}; each side of over= ({', '.join(over)}) needs a "
            "tile of at least 1"
        )
    return [GridSide(text, expressions.evaluate(text, extents), side) for text, side in zip(over, tile, strict=False)]


def check_sides(kernel: str, sides: Iterable[GridSide], limits: Iterable[int]) -> None:
    """Raise ArgumentError unless each side has a finite length of at least 1, and at most its limit of tiles."""
    for side, limit in zip(sides, limits, strict=False):
        if not 1 <= side.length < math.inf:
            raise ArgumentError(
                f"{kernel}: {side.argument} = {side.length}; each side of over= must be a finite number of at least 1"
            )
        if side.tiles > limit:
            raise ArgumentError(
                f"{kernel}: {side.argument} = {side.length} needs {side.tiles} blocks; a grid allows {limit}, "
                f"so {side.argument} may be at most {limit * side.tile}"
            )


#: Function that returns a grid, from the kernel's name, the sides of `over`, and the device's multiprocessors.
Grid = Callable[[str, Sequence[GridSide], int], Extent]


def cover(kernel: str, sides: Sequence[GridSide], multiprocessors: int) -> Extent:
    """Return a grid with a block for each tile. Tiles beyond the limit of y continue along z.

    Then some blocks may have no tile. A third side is ignored. Raises the exceptions of `check_sides`.
    """
    check_sides(kernel, sides, (MAX_GRID[0], MAX_GRID[1] * MAX_GRID[2]))
    y = sides[1].tiles if len(sides) > 1 else 1
    z = -(-y // MAX_GRID[1])
    return sides[0].tiles, -(-y // z), z


def one_block(kernel: str, sides: Sequence[GridSide], multiprocessors: int) -> Extent:
    """Return a grid of one block, whose threads do all work."""
    return 1, 1, 1


def cover_or_finer(
    side: int,
    least: int,
    multiple: int | Mapping[tuple[int, ...], tuple[int, ...]],
    ragged: Mapping[tuple[int, ...], tuple[int, ...]],
    least_ragged: int,
    small: Mapping[tuple[int, ...], tuple[int, ...]] | None = None,
) -> Grid:
    """Return a function like `cover`, with other tiles for ragged lengths and smaller tiles for small grids.

    Lengths are ragged unless all are multiples of `multiple`: one number, or kernel's tile -> one number per side.
    `ragged` maps the kernel's tile to the tile for ragged lengths. A grid is small if it has fewer than `least` tiles;
    for ragged lengths, fewer than `least_ragged`. Its tiles are cut to at most `side` elements per side. For lengths
    that are not ragged, `small` may map the kernel's tile to the smaller one instead.
    """

    def grid(kernel: str, sides: Sequence[GridSide], multiprocessors: int) -> Extent:
        tile = tuple(grid_side.tile for grid_side in sides)
        multiples = multiple[tile] if isinstance(multiple, Mapping) else [multiple] * len(sides)
        is_ragged = any(grid_side.length % number for grid_side, number in zip(sides, multiples, strict=True))
        used = ragged[tile] if is_ragged else tile
        tiles = math.prod(-(-grid_side.length // extent) for grid_side, extent in zip(sides, used, strict=True))
        if tiles < (least_ragged if is_ragged else least):
            finer = tuple(min(side, extent) for extent in used)
            used = finer if is_ragged or small is None else small[tile]
        tiled = [grid_side._replace(tile=extent) for grid_side, extent in zip(sides, used, strict=True)]
        return cover(kernel, tiled, multiprocessors)

    return grid


def persistent(per_multiprocessor: int) -> Grid:
    """Return a function for grids of `per_multiprocessor` blocks per multiprocessor along x, at most one per tile."""

    def grid(kernel: str, sides: Sequence[GridSide], multiprocessors: int) -> Extent:
        tiles = math.prod(side.tiles for side in sides)
        return min(tiles, per_multiprocessor * multiprocessors), 1, 1

    return grid


def select_by_itemsize(setting: str, value: Value | Mapping[int, Value], itemsize: int) -> Value:
    """Return a setting for elements of `itemsize` bytes: 128 for {4: 256, 8: 128} and 8, and 256 for 256 and 8.

    `setting` is its name in messages, such as "saxpy: block=". Raises UnknownDtypeError if a mapping has no such size.
    """
    if not isinstance(value, Mapping):
        return value
    if itemsize not in value:
        sizes = ", ".join(map(str, value)) or "none"
        elements = f"elements of {count_noun(itemsize, 'byte')}"
        raise UnknownDtypeError(f"{setting} has no value for {elements}, only for {sizes}; add one")
    return value[itemsize]


def to_extent(setting: str, value: Any, extents: Mapping[str, Any]) -> Extent:
    """Return the numbers of blocks or threads along x, y and z: (5, 1, 1) for "n" and {"n": 5}.

    `setting` is as in `select_by_itemsize`. Raises ArgumentError for more than three numbers.
    """
    lengths = evaluate_lengths(setting, value, extents)
    if len(lengths) > len(MAX_GRID):
        raise ArgumentError(f"{setting} must give at most three sides, x, y and z; given: {lengths}")
    x, y, z = (*lengths, 1, 1, 1)[: len(MAX_GRID)]
    return x, y, z


def evaluate_lengths(setting: str, value: Any, extents: Mapping[str, Any]) -> list[int]:
    """Return the lengths that `value` gives: a length, a sequence, or a function of extents that returns either.

    `setting` is as in `select_by_itemsize`. Raises ArgumentError if a length is not an integer.
    """
    lengths = expressions.evaluate_function(value, extents) if callable(value) else value
    if not isinstance(lengths, Sequence) or isinstance(lengths, str):
        lengths = lengths.tolist() if isinstance(lengths, np.ndarray) and lengths.ndim else [lengths]
    numbers = list(lengths) if callable(value) else [_evaluate(length, extents) for length in lengths]
    with suppress(TypeError, ValueError, OverflowError):
        integers = list(map(int, numbers))
        if integers == numbers:
            return integers
    raise ArgumentError(f"{setting} must give integers; given: {', '.join(map(repr, numbers))}")


def evaluate_length(setting: str, value: LengthLike, extents: Mapping[str, Any]) -> int:
    """Return a length for the extents of a launch, rounded down.

    `setting` is as in `select_by_itemsize`. Raises ArgumentError if the length is not a finite number of at least 0.
    """
    number = _evaluate(value, extents)
    with suppress(TypeError, ValueError, OverflowError):
        if number >= 0:
            return int(number)
    raise ArgumentError(f"{setting} must give a finite number of at least 0; given: {number!r}")


def _evaluate(value: LengthLike, extents: Mapping[str, Any]) -> Any:
    if callable(value):
        return expressions.evaluate_function(value, extents)
    return expressions.evaluate(value, extents) if isinstance(value, str) else value
