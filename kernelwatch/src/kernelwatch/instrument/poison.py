"""What outputs and guards hold before a launch: bytes that no input has in a row, so what was not written shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Every byte of poisoned memory.
POISON = 0xA5


def poisoned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of poison, to be written to."""
    element = np.dtype(dtype)
    return np.full(int(np.prod(shape)) * element.itemsize, POISON, np.uint8).view(element).reshape(shape)
