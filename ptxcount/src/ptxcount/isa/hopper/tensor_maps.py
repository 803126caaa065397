"""Tensor maps: what a host tells of an array whose boxes a kernel copies at once (PTX ISA, "Tensors").

Conditions are those of the CUDA driver API on ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...machine.argument_layout import ArrayDescriptor
from ...util.errors import LaunchError
from .map_fields import Column, MapFields


class EncodedMap(ArrayDescriptor):
    """An array whose description takes the bytes of a ``CUtensorMap``."""

    size = 128
    strided = True

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map of an array that lies at an address."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        problem = self.make_fields().find_problem()
        if problem:
            raise LaunchError(problem)
        if self.array.strides[-1:] != (self.array.dtype.itemsize,):
            raise LaunchError(
                f"an array of {self.array.shape} with strides of {self.array.strides} bytes: a row's elements must lie "
                "side by side"
            )

    def _fill_steps(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return element strides, x first: 1 where there are none."""
        return (*steps[::-1],) or (1,) * self.array.ndim


@dataclass(frozen=True, eq=False)
class TensorMap(EncodedMap):
    """An array that a kernel copies by boxes: an argument of the kernel for its ``CUtensorMap``.

    Parameters
    ----------
    array : ndarray
        Of 1 to 5 dimensions, its elements side by side in rows. Rows may be padded: ``matrix[:, :60]``.
    box : tuple of int
        Elements of a box along each axis, in the order of the array's shape: x last.
    swizzle : int
        Bytes of the pattern in which shared memory holds a box: 0, 32, 64 or 128.
    steps : tuple of int
        Element strides in the order of the shape, 1 to 8: of ``n`` elements of a box along an axis, every ``step``-th
        is copied. That of x has no effect.
    fills_nan : bool
        Elements that are loaded from beyond the array are NaN, not 0.
    """

    box: tuple[int, ...] = ()
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    fills_nan: bool = False

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map of an array that lies at an address."""
        box, steps = (*self.box[::-1],), self._fill_steps(self.steps)
        options = {"steps": steps, "swizzle": self.swizzle, "fills_nan": self.fills_nan}
        return MapFields.describe(self.array, address, box=box, **options)


@dataclass(frozen=True, eq=False)
class Im2colMap(EncodedMap):
    """Images that a kernel copies by columns of pixels: an argument for a ``CUtensorMap`` of ``im2col`` mode.

    Parameters
    ----------
    array : ndarray
        C-contiguous: images, then depth, height and width or the last of these, then channels.
    lower, upper : tuple of int
        Corners of the box that a filter's first place may take, in the order of the shape: relative to the first
        pixel, and to the last one.
    channels, pixels : int
        Channels of a pixel, and pixels, that a copy moves.
    swizzle : int
        Bytes of the pattern in which shared memory holds the pixels: 0, 32, 64 or 128.
    steps : tuple of int
        Element strides in the order of the array's shape, 1 to 8: how far the next pixel lies. Those of images and
        channels have no effect.
    fills_nan : bool
        Elements that are loaded from beyond the images are NaN, not 0.
    """

    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    fills_nan: bool = False

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map of an array that lies at an address."""
        column = Column((*self.lower[::-1],), (*self.upper[::-1],), self.channels, self.pixels)
        options = {"steps": self._fill_steps(self.steps), "swizzle": self.swizzle, "fills_nan": self.fills_nan}
        return MapFields.describe(self.array, address, column=column, **options)
