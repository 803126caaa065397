"""Textures and surfaces, and the elements that a fetch reads (CUDA guide, Texture Fetching).

Float coordinates first become fixed point with 8 fractional bits, like on the GPU. They are rounded for linear
filtering and gathers, else rounded down. The weights of linear filtering have 8 fractional bits (measured on an H200).
In two dimensions, the product of the weights along x and y is rounded to 8 bits, and the three other weights are
remainders. Weighted elements are summed in float64 and rounded once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...machine.argument_layout import ArrayDescriptor
from ...util.errors import LaunchError

FILTERS = ("point", "linear")
LAYOUTS = ("array", "rows")
#: Fractional bits of a coordinate.
PLACES = 8
#: Number of dimensions of each geometry, and True if the coordinates begin with a layer.
GEOMETRIES = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True)}
_FAR = 2.0**40


#: Address modes: functions that map an index out of bounds to one inside. With ``border``, there are zeros outside.
ADDRESSES: dict[str, Callable[[Array, int], Array]] = {
    **dict.fromkeys(("clamp", "border"), lambda index, extent: np.clip(index, 0, extent - 1)),
    "wrap": lambda index, extent: np.asarray(index % extent),
    "mirror": lambda index, extent: np.asarray(np.minimum(index % (2 * extent), (-1 - index) % (2 * extent))),
}


class Tap(NamedTuple):
    """One element of each thread's fetch."""

    #: Index in the array.
    place: Array
    weight: Array
    #: Mask of threads that get the element. All others get zeros, because the index is out of bounds.
    inside: Array
    #: Mask of threads that read the element: its weight is not 0, or the fetch is a gather.
    read: Array


@dataclass(frozen=True, eq=False)
class Surface(ArrayDescriptor):
    """An array that a kernel reads and writes as a surface: the argument for the surface handle.

    Raises `LaunchError` for other values than these.

    Parameters
    ----------
    array : ndarray
        C-contiguous, not empty, of integers or floats of 8 to 32 bits, with 1 to 3 dimensions without channels. The
        last axis is x, or the channels after x if there are several.
    channels : int
        Channels per element: 1, 2 or 4.
    layout : str
        Layout in GPU memory, which determines the sectors of a request. ``array``: that of ``cudaMallocArray``, with
        sectors of 16 bytes and two rows. ``rows``: linear memory. Default: ``rows`` for one dimension, else ``array``.
    """

    channels: int = 1
    layout: str = ""

    def __post_init__(self) -> None:
        if self.channels not in (1, 2, 4) or (self.channels > 1 and self.array.shape[-1:] != (self.channels,)):
            allowed = f"use 1, or the length of the last axis of {self.array.shape} if that is 2 or 4"
            raise LaunchError(f"channels is {self.channels}; {allowed}")
        is_number = self.array.dtype.kind in "iuf" and self.array.dtype.itemsize <= 4
        if not (1 <= len(self.extents) <= 3 and self.array.size and is_number):
            name = type(self).__name__.lower()
            needed = f"a {name} has 1 to 3 dimensions, and at least one number, of 8, 16 or 32 bits"
            raise LaunchError(f"the array is {self.array.dtype}{list(self.array.shape)}; {needed}")
        if not self.array.flags.c_contiguous:
            given = f"the array of shape {self.array.shape} with strides of {self.array.strides} bytes"
            raise LaunchError(f"{given} is not C-contiguous; pass a copy")
        if self.layout:
            _require_choice("layout", self.layout, LAYOUTS)

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements along each axis, x last."""
        return self.array.shape[:-1] if self.channels > 1 else self.array.shape

    @property
    def element(self) -> int:
        """Size of an element in bytes."""
        return self.array.dtype.itemsize * self.channels

    def find_offset(self, byte: Array, *, layered: bool = False) -> Array:
        """Return the offset in GPU memory of bytes of the array, from their offsets in the array.

        Without the layout ``rows``, memory has tiles of 64 bytes by 8 rows, with sectors of 16 bytes by 2 rows. If
        ``layered``, the first axis has layers; a one-dimensional layer is one row.
        """
        if (self.layout or ("rows" if len(self.extents) == 1 else "array")) == "rows":
            return byte
        pitch = self.extents[-1] * self.element
        x, row = byte % pitch, byte // pitch
        rows = self.extents[-2] if len(self.extents) > 1 + layered else 1
        y, layer = row % rows, row // rows
        across, down = -(-pitch // 64), -(-rows // 8)
        tile = (layer * down + y // 8) * across + x // 64
        offset_in_tile = x % 64 // 32 * 256 + y % 8 // 2 * 64 + x % 32 // 16 * 32 + y % 2 * 16 + x % 16
        return np.asarray(tile * 512 + offset_in_tile)


def _require_choice(option: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise LaunchError(f"{option} is {value!r}; allowed are {', '.join(allowed)}")


def _bilinear_weights(x: Array, y: Array) -> dict[tuple[int, int], Array]:
    """Return the weights of four neighbours. They are multiples of 2^-`PLACES`, and their sum is 1.

    Keys are 0, or 1 for the second neighbour, along x and y. ``x`` and ``y`` are the weights of the second neighbours.
    """
    both = np.floor(x * y * 2**PLACES + 0.5) / 2**PLACES
    return {(0, 0): 1 - x - y + both, (0, 1): y - both, (1, 0): x - both, (1, 1): both}


def _trilinear_weights(x: Array, y: Array, z: Array) -> dict[tuple[int, int, int], Array]:
    """Return the weights of eight neighbours: bilinear weights of x and z, each split along y.

    Keys are 0 or 1 along x, y and z. The part of the second neighbour along y is rounded to `PLACES` bits, ties down.
    """
    weights: dict[tuple[int, int, int], Array] = {}
    for (i, k), whole in _bilinear_weights(x, z).items():
        part = np.ceil(whole * y * 2**PLACES - 0.5) / 2**PLACES
        weights |= {(i, 1, k): part, (i, 0, k): whole - part}
    return weights


@dataclass(frozen=True, eq=False)
class Texture(Surface):
    """An array that a kernel reads as a texture: the argument for the texture handle.

    Raises `LaunchError` for other values than these.

    Parameters
    ----------
    array, channels, layout
        As in `Surface`.
    filter : str
        ``point``, or ``linear``, which needs floats or ``fractions``, and has no effect on integer coordinates.
    address : str
        Address mode out of bounds: ``clamp``, ``border`` (zeros), or for normalized coordinates ``wrap`` or ``mirror``.
        Integer coordinates give zeros out of bounds in each mode.
    normalized : bool
        Whether coordinates are in [0, 1).
    fractions : bool
        Whether integers of 8 or 16 bits are read as floats in [0, 1] or [-1, 1].
    """

    filter: str = FILTERS[0]
    address: str = "clamp"
    normalized: bool = False
    fractions: bool = False
    is_texture = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_choice("filter", self.filter, FILTERS)
        _require_choice("address", self.address, ADDRESSES)
        if self.address in ("wrap", "mirror") and not self.normalized:
            remedy = "set normalized=True, or use clamp or border"
            raise LaunchError(f"address {self.address!r} needs normalized coordinates; {remedy}")
        if self.fractions and self.array.dtype.kind != "f" and self.array.dtype.itemsize > 2:
            remedy = "pass integers of 8 or 16 bits, or floats"
            raise LaunchError(f"fractions do not exist for {self.array.dtype}; {remedy}")
        if self.filter == "linear" and self.array.dtype.kind != "f" and not self.fractions:
            remedy = "pass floats, or set fractions=True (normalized-float read mode)"
            raise LaunchError(f"filter 'linear' needs floats, not {self.array.dtype}; {remedy}")

    def find_taps(self, coordinates: Sequence[Array], layer: Array | None, *, gather: bool = False) -> list[Tap]:
        """Return the elements that a fetch reads at ``coordinates``, x first; with ``gather``, the four of ``tld4``."""
        by_integers = coordinates[0].dtype.kind != "f"
        has_neighbours = gather or (self.filter == "linear" and not by_integers)
        axes = [
            self._weigh_elements(coordinate, extent, has_neighbours)
            for coordinate, extent in zip(coordinates, self.extents[::-1], strict=False)
        ]
        first_index = np.zeros((1, 1), np.int64)
        if layer is not None:
            first_index = np.clip(layer.astype(np.int64), 0, self.extents[0] - 1)
        #: Place of each tap along each axis: 0, or 1 for the second neighbour.
        choices = [(0, 1), (1, 1), (1, 0), (0, 0)] if gather else [*product(*(range(len(axis)) for axis in axes))]
        taps = []
        for choice in choices:
            elements = [axis[place] for axis, place in zip(axes, choice, strict=False)]
            taps.append(self._make_tap(first_index, elements, by_integers=by_integers, gather=gather))
        if gather or not has_neighbours or len(axes) == 1:
            return taps
        seconds = [axis[1][1] for axis in axes]
        weights: dict[Any, Array] = _bilinear_weights(*seconds) if len(axes) == 2 else _trilinear_weights(*seconds)
        return [tap._replace(weight=weights[choice]) for tap, choice in zip(taps, choices, strict=True)]

    def _make_tap(
        self, first_index: Array, elements: list[tuple[Array, Array]], *, by_integers: bool, gather: bool
    ) -> Tap:
        """Return a tap from the index and the weight of its element along each axis, x first.

        ``first_index`` is the layer, or zeros. Except by a gather, elements of weight 0 are not read.
        """
        place, weight, inside, read = first_index, np.ones((1, 1)), np.ones((1, 1), bool), np.ones((1, 1), bool)
        for (index, axis_weight), extent in reversed([*zip(elements, self.extents[::-1], strict=False)]):
            if self.address == "border" or by_integers:  # integers give zeros out of bounds in each address mode
                inside = inside & (index >= 0) & (index < extent)
            place = place * extent + ADDRESSES[self.address](index, extent)
            weight, read = weight * axis_weight, read & ((axis_weight != 0) | gather)
        return Tap(place, weight, inside, read)

    def _weigh_elements(self, coordinate: Array, extent: int, has_neighbours: bool) -> list[tuple[Array, Array]]:
        """Return the index and the weight of each element along an axis: one, or two neighbours."""
        if coordinate.dtype.kind != "f":
            return [(coordinate.astype(np.int64), np.ones((1, 1)))]
        scaled = np.nan_to_num(coordinate.astype(np.float64)) * (extent if self.normalized else 1)
        fixed = np.floor(np.clip(scaled, -_FAR, _FAR) * 2**PLACES + (0.5 if has_neighbours else 0)).astype(np.int64)
        if not has_neighbours:
            return [(fixed >> PLACES, np.ones((1, 1)))]
        fixed = fixed - 2 ** (PLACES - 1)
        fraction = (fixed & (2**PLACES - 1)) / 2**PLACES
        return [(fixed >> PLACES, 1 - fraction), ((fixed >> PLACES) + 1, fraction)]

    def decode_texels(self, raw: Array) -> Array:
        """Decode elements from bits to float32 or 32-bit integers; with ``fractions``, integers to float32."""
        numbers = raw.view(self.array.dtype)
        if numbers.dtype.kind == "f":
            return numbers.astype(np.float32)
        if not self.fractions:
            return numbers.astype("i4" if numbers.dtype.kind == "i" else "u4")
        return np.maximum(numbers.astype(np.float64) / np.iinfo(numbers.dtype).max, -1).astype(np.float32)
