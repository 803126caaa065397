"""Times of transposes."""

from __future__ import annotations

import kernelwatch.benchmarks as kw
from benchmarks.sweeps import (
    DEFAULT_FLAGS,
    FLAG_SETS,
    LARGEST,
    LECTURE,
    MATRICES,
    MATRICES_IN_L2,
    MOVED,
    SERIAL,
    SHORT_MATRICES,
    TRANSPOSES,
)

_AXES = ("kernel", "rows x columns", "dtype", "flags")


class Transpose(kw.BackToBack):
    """Transpose, DRAM."""

    param_names = _AXES
    params = (TRANSPOSES, MATRICES, MOVED, FLAG_SETS)
    shown = {"kernel": "transpose_read_write_coalesced", "rows x columns": LARGEST, "dtype": "float32"}
    note = "A plain copy of as many bytes, 16 a thread, is what a transpose could reach."


class TransposeInL2(kw.BackToBack):
    """Transpose, L2 cache."""

    in_l2 = True
    param_names = _AXES
    params = (TRANSPOSES, MATRICES_IN_L2, ("float32",), DEFAULT_FLAGS)


class IsolatedTranspose(kw.Isolated):
    """Transpose, DRAM."""

    param_names = _AXES
    params = (TRANSPOSES, SHORT_MATRICES, MOVED, DEFAULT_FLAGS)


class LectureTranspose(kw.BackToBack):
    """Transpose step by step, DRAM."""

    param_names = _AXES
    params = (LECTURE, ("2880x2880",), ("float64",), DEFAULT_FLAGS)
    note = "The steps of a lecture on its matrix, up to a tile without padding, and what comes after."


class SerialTranspose(kw.BackToBack):
    """Transpose by one thread, L2 cache."""

    in_l2 = True  # or else a sample is one thread's way through four times the L2
    param_names = _AXES
    params = (SERIAL, ("256x256",), ("float64",), DEFAULT_FLAGS)
    note = "The step before the first: nothing is done at the same time."
