"""What outputs must hold. A number is measured anew where this module changes: the rows are in another."""

from __future__ import annotations

import numpy as np

from kernelwatch.kernel import Array


def offset_copy(output: Array, input: Array, offset: int) -> Array:
    """Elements offset .. offset + size - 1 are copied, those before keep their values."""
    output[offset:] = input[offset:]
    return output


def stride_copy(output: Array, input: Array, stride: int) -> Array:
    """Elements 0, stride, 2 stride, ... (size of them) are copied, those between keep their values."""
    output[::stride] = input[::stride]
    return output


def transpose(input: Array) -> Array:
    """A row-major rows x columns matrix becomes a row-major columns x rows one."""
    return input.T


def add(a: Array, b: Array) -> Array:
    """The sum of two vectors."""
    return a + b


def matrix_product(m: Array, n: Array) -> Array:
    """Both matrices are row-major."""
    return m @ n


def transposed_product(m: Array, n: Array) -> Array:
    """The second matrix is stored by columns: in memory lies its transpose."""
    return m @ n.T


def row_sum(input: Array) -> Array:
    """The sum of each row."""
    return np.asarray(input.sum(axis=1, dtype=np.float64).astype(input.dtype))


def gather(input: Array, index: Array) -> Array:
    """Elements by their indices."""
    return input[index]


def histogram(counts: Array, values: Array, bins: int) -> Array:
    """How often each value occurs, added to the counts."""
    return counts + np.bincount(values, minlength=bins).astype(np.uint32)
