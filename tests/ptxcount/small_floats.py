"""ml_dtypes, the oracle of small floating-point types. Test modules that import this one are skipped without it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes, the oracle of small floats, is not installed")

#: Types of at most 8 bits, and their bits.
NARROW: dict[str, tuple[Any, int]] = {
    "e2m1": (ml_dtypes.float4_e2m1fn, 4), "e2m3": (ml_dtypes.float6_e2m3fn, 6), "e3m2": (ml_dtypes.float6_e3m2fn, 6),
    "e4m3": (ml_dtypes.float8_e4m3fn, 8), "e5m2": (ml_dtypes.float8_e5m2, 8),
}  # fmt: skip
#: Ranges of the codes of scales from 1/8 to 4, by type.
NEAR_ONE = {"ue8m0": (124, 130), "ue4m3": (0x30, 0x48)}


def decode_scales(codes: npt.NDArray[np.uint8], scale: str) -> npt.NDArray[Any]:
    """Return the numbers that codes of block scales of type ``ue8m0`` or ``ue4m3`` encode."""
    if scale == "ue8m0":
        return np.asarray(np.ldexp(1.0, codes.astype(int) - 127))
    return np.asarray(codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64))
