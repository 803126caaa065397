"""Expected outputs of the kernels. A change of this module makes all its numbers be measured again."""

from __future__ import annotations

import numpy as np

from kernelwatch.kernel import Array


def offset_copy(output: Array, input: Array, offset: int) -> Array:
    """Copy elements offset .. offset + size - 1; the elements before keep their values."""
    output[offset:] = input[offset:]
    return output


def stride_copy(output: Array, input: Array, stride: int) -> Array:
    """Copy size elements 0, stride, 2 stride, ...; the elements between keep their values."""
    output[::stride] = input[::stride]
    return output


def transpose(input: Array) -> Array:
    """Turn a row-major rows x columns matrix into a row-major columns x rows one."""
    return input.T


def add(a: Array, b: Array) -> Array:
    """Add two vectors."""
    return a + b


def matrix_product(m: Array, n: Array) -> Array:
    """Multiply two row-major matrices."""
    return m @ n


def transposed_product(m: Array, n: Array) -> Array:
    """Multiply a row-major matrix by one stored by columns: memory holds its transpose."""
    return m @ n.T


def row_sum(input: Array) -> Array:
    """Sum each row."""
    return np.asarray(input.sum(axis=1, dtype=np.float64).astype(input.dtype))


def gather(input: Array, index: Array) -> Array:
    """Read elements by their indices."""
    return input[index]


def histogram(counts: Array, values: Array, bins: int) -> Array:
    """Add the number of occurrences of each value to the counts."""
    return counts + np.bincount(values, minlength=bins).astype(np.uint32)
