"""Tensor maps: what a host tells of an array whose boxes a kernel copies at once (PTX ISA, "Tensors")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...lanes.warps import Array
from ...machine.argument_layout import ArrayDescriptor
from ...util.errors import LaunchError

#: The bits of an address in shared memory that a swizzle changes, by its bytes: by those three places further up.
SWIZZLES = {0: 0x00, 32: 0x10, 64: 0x30, 128: 0x70}


@dataclass(frozen=True, eq=False)
class TensorMap(ArrayDescriptor):
    """An array that a kernel copies by boxes: an argument of the kernel for its ``CUtensorMap``.

    Parameters
    ----------
    array : ndarray
        Of 1 to 5 dimensions, its elements side by side in rows. Rows may be padded: ``matrix[:, :60]``.
    box : tuple of int
        Elements of a box along each axis, in the order of the array's shape: x last.
    swizzle : int
        Bytes of the pattern in which shared memory holds a box: 0, 32, 64 or 128.
    """

    box: tuple[int, ...] = ()
    swizzle: int = 0

    strided = True

    size = 128

    def __post_init__(self) -> None:
        if len(self.box) != self.array.ndim or not all(1 <= n <= 256 for n in self.box):
            raise LaunchError(f"box {self.box}: a number from 1 to 256 for each axis of {self.array.shape} is needed")
        if self.swizzle not in SWIZZLES:
            raise LaunchError(f"swizzle {self.swizzle}: one of {', '.join(map(str, SWIZZLES))} is allowed")
        if self.array.dtype.itemsize * self.box[-1] % 16 or (
            self.swizzle and self.array.dtype.itemsize * self.box[-1] > self.swizzle
        ):
            raise LaunchError(f"box {self.box}: a row takes a multiple of 16 bytes, and no more than a swizzle")
        *strides, innermost = self.array.strides
        if innermost != self.array.dtype.itemsize or not all(stride > 0 and stride % 16 == 0 for stride in strides):
            raise LaunchError(
                f"an array of {self.array.shape} with strides of {self.array.strides} bytes: a row's elements lie side "
                "by side, and a multiple of 16 is needed for the other axes"
            )

    def elements(self, start: Sequence[int]) -> tuple[Array, Array]:
        """Return the places of a box that begins at coordinates, x first, and a mask of those in the array."""
        place, inside = np.zeros((1,) * len(self.box), np.int64), np.ones((1,) * len(self.box), bool)
        strides = [stride // self.array.dtype.itemsize for stride in self.array.strides]
        axes = zip(reversed(start), self.box, self.array.shape, strides, strict=True)
        for axis, (first, count, extent, stride) in enumerate(axes):
            index = (first + np.arange(count)).reshape(
                [-1 if dimension == axis else 1 for dimension in range(len(self.box))]
            )
            place = place + stride * np.clip(index, 0, extent - 1)
            inside = inside & (index >= 0) & (index < extent)
        return place.reshape(-1), np.broadcast_to(inside, self.box).reshape(-1)

    def swizzle_offsets(self, offsets: Array) -> Array:
        """Return the offsets in shared memory of the bytes of a box."""
        return np.asarray(offsets ^ ((offsets >> 3) & SWIZZLES[self.swizzle]))
