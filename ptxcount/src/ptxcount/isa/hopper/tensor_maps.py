"""Tensor maps: host-side descriptors of arrays for tensor copies (PTX ISA, "Tensors").

The conditions are those of ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col`` of the CUDA driver API.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...machine.argument_layout import ArrayDescriptor
from ...util.errors import LaunchError
from .map_fields import Column, MapFields


class EncodedMap(ArrayDescriptor):
    """An array whose descriptor is a ``CUtensorMap``, of 128 bytes. The descriptor's fields are checked on creation."""

    size = 128

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map of the array, if it is at the address in global memory."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        problem = self.make_fields().find_problem()
        if problem:
            raise LaunchError(problem)
        if self.array.strides[-1:] != (self.array.dtype.itemsize,):
            given = f"the array of shape {self.array.shape} with strides of {self.array.strides} bytes"
            raise LaunchError(f"{given} has no contiguous rows; pass a copy")

    def _fill_steps(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return element strides, x first; default 1."""
        return (*steps[::-1],) or (1,) * self.array.ndim


@dataclass(frozen=True, eq=False)
class TensorMap(EncodedMap):
    """An array for tensor copies of boxes: the argument for a ``CUtensorMap`` parameter.

    Raises `LaunchError` for values that the driver API does not allow.

    Parameters
    ----------
    array : ndarray
        1 to 5 dimensions, with contiguous rows. Rows may be padded: ``matrix[:, :60]``.
    box : tuple of int
        Box size along each axis, in the order of the array's shape: x last.
    swizzle : int
        Swizzle span of the box in shared memory, in bytes: 0, 32, 64 or 128.
    steps : tuple of int
        Element strides in the order of the shape, 1 to 8: along an axis, every ``step``-th element of the box is
        copied. The stride of x has no effect. Default: 1.
    fills_nan : bool
        Fill elements out of bounds with NaN instead of 0.
    """

    box: tuple[int, ...] = ()
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    fills_nan: bool = False

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map of the array, if it is at the address in global memory."""
        box, steps = (*self.box[::-1],), self._fill_steps(self.steps)
        options = {"steps": steps, "swizzle": self.swizzle, "fills_nan": self.fills_nan}
        return MapFields.describe(self.array, address, box=box, **options)


@dataclass(frozen=True, eq=False)
class Im2colMap(EncodedMap):
    """Images for tensor copies in ``im2col`` mode: the argument for a ``CUtensorMap`` parameter.

    Raises `LaunchError` for values that the driver API does not allow.

    Parameters
    ----------
    array : ndarray
        Images, then [depth, [height,]] width, then channels, which are contiguous. Other axes may be padded.
    lower, upper : tuple of int
        Corners of the bounding box of filter positions, in the order of the shape: relative to the first pixel, and to
        the last pixel.
    channels, pixels : int
        Channels per pixel, and pixels per column, that a copy moves.
    swizzle, steps, fills_nan
        As in `TensorMap`. Of the steps, which are strides between pixels, those of images and channels have no effect.
    """

    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0
    swizzle: int = 0
    steps: tuple[int, ...] = ()
    fills_nan: bool = False

    def make_fields(self, address: int = 0) -> MapFields:
        """Return the fields of the map of the array, if it is at the address in global memory."""
        column = Column((*self.lower[::-1],), (*self.upper[::-1],), self.channels, self.pixels)
        options = {"steps": self._fill_steps(self.steps), "swizzle": self.swizzle, "fills_nan": self.fills_nan}
        return MapFields.describe(self.array, address, column=column, **options)
