"""Textures and surfaces: what a host binds to an array, and what a fetch reads (CUDA guide, Texture Fetching).

A coordinate becomes a number with 8 binary places before anything else is done with it, as on the chip: so has the
weights of linear filtering, as far as they are known of an H200: in two dimensions the product of both is rounded to as
many places, and the others are what is left. Sums of weighted elements are made in float64, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ...lanes.warps import Array
from ...machine.argument_layout import ArrayDescriptor
from ...util.errors import LaunchError

FILTERS = ("point", "linear")
LAYOUTS = ("array", "rows")
#: Binary places of a coordinate.
PLACES = 8
#: Geometry -> its dimensions, and True if layers come first.
GEOMETRIES = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True)}
_FAR = 2.0**40


def _clamp_index(index: Array, extent: int) -> Array:
    return np.clip(index, 0, extent - 1)


def _mirror_index(index: Array, extent: int) -> Array:
    within = index % (2 * extent)
    return np.asarray(np.minimum(within, 2 * extent - 1 - within))


#: Index in place of one beyond an edge. Beyond a border there are zeros.
ADDRESSES: dict[str, Callable[[Array, int], Array]] = {
    "clamp": _clamp_index,
    "border": _clamp_index,
    "wrap": lambda index, extent: np.asarray(index % extent),
    "mirror": _mirror_index,
}


class Tap(NamedTuple):
    """One of the elements of a fetch: its number in the array, its weight, and whether there is one, and it is read."""

    place: Array
    weight: Array
    inside: Array
    read: Array


@dataclass(frozen=True, eq=False)
class Surface(ArrayDescriptor):
    """An array that a kernel reads and writes as a surface: an argument of the kernel for its handle.

    Parameters
    ----------
    array : ndarray
        C-contiguous, with its last axis along x; behind it one of the channels, if there are several.
    channels : int
        The numbers of an element: 1, 2 or 4.
    layout : str
        How the chip holds it, which decides the sectors of a request: ``array``, as ``cudaMallocArray`` does, in
        sectors of 16 bytes and two rows; or ``rows``, of neighbouring bytes. One dimension is ``rows`` unless
        said.
    """

    channels: int = 1
    layout: str = ""

    def __post_init__(self) -> None:
        if self.channels not in (1, 2, 4) or (self.channels > 1 and self.array.shape[-1:] != (self.channels,)):
            raise LaunchError(f"channels {self.channels}: 1, or 2 or 4 along the last axis of {self.array.shape}")
        if not 1 <= len(self.extents) <= 3 or self.array.dtype.itemsize > 4 or self.array.dtype.kind not in "iuf":
            raise LaunchError(
                f"{self.array.dtype}{list(self.array.shape)}: up to 3 dimensions, of 8 to 32 bits, are read"
            )
        for option, allowed in (("layout", (*LAYOUTS, "")), ("filter", FILTERS), ("address", tuple(ADDRESSES))):
            if getattr(self, option, allowed[0]) not in allowed:
                raise LaunchError(
                    f"{option} {getattr(self, option)!r}: one of {', '.join(filter(None, allowed))} is allowed"
                )

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements along each axis, x last."""
        return self.array.shape[:-1] if self.channels > 1 else self.array.shape

    @property
    def element(self) -> int:
        """Bytes of an element."""
        return self.array.dtype.itemsize * self.channels

    def fits(self, geometry: str) -> bool:
        """Tell if an instruction's geometry has as many axes."""
        return sum(GEOMETRIES[geometry]) == len(self.extents)

    def place(self, byte: Array, *, layered: bool = False) -> Array:
        """Return the address of a byte: blocks of 64 bytes and 8 rows, of sectors of 16 bytes and 2 rows.

        Layers of one dimension have a row each.
        """
        if (self.layout or LAYOUTS[len(self.extents) == 1]) == "rows":
            return byte
        pitch = self.extents[-1] * self.element
        x, row = byte % pitch, byte // pitch
        rows = self.extents[-2] if len(self.extents) > 1 + layered else 1
        y, layer = row % rows, row // rows
        across, down = -(-pitch // 64), -(-rows // 8)
        block = (layer * down + y // 8) * across + x // 64
        return np.asarray(block * 512 + x % 64 // 32 * 256 + y % 8 // 2 * 64 + x % 32 // 16 * 32 + y % 2 * 16 + x % 16)


def _plane(x: Array, y: Array) -> dict[tuple[int, int], Array]:
    """Weights of four neighbours, of `PLACES` binary places, which make one."""
    both = np.floor(x * y * 2**PLACES + 0.5) / 2**PLACES
    return {(0, 0): 1 - x - y + both, (0, 1): y - both, (1, 0): x - both, (1, 1): both}


def _space(x: Array, y: Array, z: Array) -> dict[tuple[int, int, int], Array]:
    """Weights of eight neighbours: those of the plane of x and z are shared out along y, half a place to the first."""
    weights: dict[tuple[int, int, int], Array] = {}
    for (i, k), whole in _plane(x, z).items():
        part = np.ceil(whole * y * 2**PLACES - 0.5) / 2**PLACES
        weights |= {(i, 1, k): part, (i, 0, k): whole - part}
    return weights


@dataclass(frozen=True, eq=False)
class Texture(Surface):
    """An array that a kernel reads as a texture: an argument of the kernel for its handle.

    Parameters
    ----------
    array, channels, layout
        As of `Surface`.
    filter : str
        ``point``, or ``linear``.
    address : str
        What lies beyond the edges: ``clamp``, ``border`` (zeros), and of normalized coordinates ``wrap`` or ``mirror``.
    normalized : bool
        Whether coordinates go from 0 to 1.
    fractions : bool
        Whether integers are read as numbers from 0 or -1 to 1.
    """

    filter: str = FILTERS[0]
    address: str = "clamp"
    normalized: bool = False
    fractions: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.address in ("wrap", "mirror") and not self.normalized:
            raise LaunchError(f"address {self.address!r}: it goes with normalized coordinates")
        if self.filter == "linear" and self.array.dtype.kind != "f" and not self.fractions:
            raise LaunchError(f"filter 'linear': it goes with floats, or with fractions, not with {self.array.dtype}")

    def taps(self, coordinates: Sequence[Array], layer: Array | None, *, gather: bool = False) -> list[Tap]:
        """Return the elements of a fetch, from its coordinates, x first; for ``gather`` four, as of ``tld4``."""
        whole = coordinates[0].dtype.kind != "f"  # there are zeros beyond the edges, whatever else is said
        wide = gather or (self.filter == "linear" and not whole)
        extents = self.extents[::-1]
        axes = [self._axis(coordinate, extent, wide) for coordinate, extent in zip(coordinates, extents, strict=False)]
        start = np.zeros((1, 1), np.int64)
        if layer is not None:
            start = np.clip(layer.astype(np.int64), 0, self.extents[0] - 1)
        taps = []
        choices = [(0, 1), (1, 1), (1, 0), (0, 0)] if gather else product(*(range(len(axis)) for axis in axes))
        for choice in choices:
            place, weight, inside, read = start, np.ones((1, 1)), np.ones((1, 1), bool), np.ones((1, 1), bool)
            for axis, extent, which in reversed(list(zip(axes, extents, choice, strict=False))):
                index, part = axis[which]
                inside = inside & ((index >= 0) & (index < extent) if self.address == "border" or whole else True)
                place = place * extent + ADDRESSES[self.address](index, extent)
                weight, read = weight * part, read & ((part != 0) | gather)
            taps.append(Tap(place, weight, inside, read))
        if gather or not wide or len(axes) == 1:
            return taps
        weights: dict[Any, Array] = (_plane if len(axes) == 2 else _space)(*(axis[1][1] for axis in axes))
        return [tap._replace(weight=weight) for tap, (_, weight) in zip(taps, sorted(weights.items()), strict=True)]

    def _axis(self, coordinate: Array, extent: int, wide: bool) -> list[tuple[Array, Array]]:
        """Return indices and weights along an axis: one, or two neighbours."""
        if coordinate.dtype.kind != "f":
            return [(coordinate.astype(np.int64), np.ones((1, 1)))]
        scaled = np.nan_to_num(coordinate.astype(np.float64)) * (extent if self.normalized else 1)
        fixed = np.floor(np.clip(scaled, -_FAR, _FAR) * 2**PLACES + (0.5 if wide else 0)).astype(np.int64)
        if not wide:
            return [(fixed >> PLACES, np.ones((1, 1)))]
        fixed = fixed - 2 ** (PLACES - 1)
        part = (fixed & (2**PLACES - 1)) / 2**PLACES
        return [(fixed >> PLACES, 1 - part), ((fixed >> PLACES) + 1, part)]

    def decode_texels(self, raw: Array) -> Array:
        """Numbers of the array, from their bits: floats as float32, integers as 32 bits, or as fractions of one."""
        numbers = raw.view(self.array.dtype)
        if numbers.dtype.kind == "f":
            return numbers.astype(np.float32)
        if not self.fractions:
            return numbers.astype("i4" if numbers.dtype.kind == "i" else "u4")
        return np.maximum(numbers.astype(np.float64) / np.iinfo(numbers.dtype).max, -1).astype(np.float32)
