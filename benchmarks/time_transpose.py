"""Times of transposes."""

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
    note = "The limit of a transpose is a plain copy of as many bytes, with 16 bytes per thread."


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
    note = "The steps of a lecture on its matrix, up to a tile without padding, and later improvements."


class SerialTranspose(kw.BackToBack):
    """Transpose by one thread, L2 cache."""

    in_l2 = True  # otherwise one thread would process four times the L2 cache per sample
    param_names = _AXES
    params = (SERIAL, ("256x256",), ("float64",), DEFAULT_FLAGS)
    note = "The lecture's first version, without any parallelism."
