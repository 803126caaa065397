"""Copy ratios of all timed classes: a kernel's time divided by the time of a plain copy of the same useful bytes."""

from __future__ import annotations

import kernelwatch.benchmarks as kw
from benchmarks import time_copy, time_kernel, time_transpose


class OffsetCopy(kw.Control):
    timed = time_copy.OffsetCopy


class MatrixSizedCopy(kw.Control):
    timed = time_copy.MatrixSizedCopy


class StrideCopy(kw.Control):
    timed = time_copy.StrideCopy


class StrideCopyFetching32(kw.Control):
    timed = time_copy.StrideCopyFetching32


class StrideCopyFetching64(kw.Control):
    timed = time_copy.StrideCopyFetching64


class StrideCopyFetching128(kw.Control):
    timed = time_copy.StrideCopyFetching128


class Transpose(kw.Control):
    timed = time_transpose.Transpose


class TransposeInL2(kw.Control):
    timed = time_transpose.TransposeInL2


class IsolatedTranspose(kw.Control):
    timed = time_transpose.IsolatedTranspose


class LectureTranspose(kw.Control):
    timed = time_transpose.LectureTranspose


class SerialTranspose(kw.Control):
    timed = time_transpose.SerialTranspose


class Add(kw.Control):
    timed = time_kernel.Add


class MatrixProduct(kw.Control):
    timed = time_kernel.MatrixProduct


class MatrixProductInOtherDtypes(kw.Control):
    timed = time_kernel.MatrixProductInOtherDtypes


class TransposedProduct(kw.Control):
    timed = time_kernel.TransposedProduct


class TransposedProductInOtherDtypes(kw.Control):
    timed = time_kernel.TransposedProductInOtherDtypes


class RowSum(kw.Control):
    timed = time_kernel.RowSum


class Gather(kw.Control):
    timed = time_kernel.Gather


class GatherFetching32(kw.Control):
    timed = time_kernel.GatherFetching32


class GatherFetching64(kw.Control):
    timed = time_kernel.GatherFetching64


class GatherFetching128(kw.Control):
    timed = time_kernel.GatherFetching128


class Histogram(kw.Control):
    timed = time_kernel.Histogram
