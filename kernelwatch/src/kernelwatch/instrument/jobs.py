"""Makes a job for the measuring process from a launch of the installed commit's kernels, with the expected output."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from kernelwatch import suite
from kernelwatch.instrument import buffers, matrix_copy, messages, skips, threads, tools, verification
from kernelwatch.instrument.exchange import Reference
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job import Job, Ready
from kernelwatch.instrument.poison import POISON
from kernelwatch.instrument.verification import Near
from kernelwatch.kernel import Array, Kernel, Launch


class Description(NamedTuple):
    """A launch: its job for the device that is ready, and what its output must hold."""

    job: Callable[[Ready], Job]
    reference: Reference


@cache
def package() -> str:
    """Return the SHA-256 of the installed package: its modules and its sources."""
    folder, digest = suite.folder(), hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        if path.suffix in (".py", ".cu"):
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def of(launch: Launch, **how: Any) -> Description:
    """Describe a launch.

    Parameters
    ----------
    launch : Launch
        Of a kernel of the installed commit, or of the instrument's copy.
    **how
        How it is measured: fields of Job.

    Raises
    ------
    NotImplementedError
        The installed commit knows no such kernel, dtype or flag set.
    """
    return _copy(launch, how) if launch.kernel == matrix_copy.NAME else _kernel(launch, how)


def _kernel(launch: Launch, how: dict[str, Any]) -> Description:
    with skips.of_unknown_names():
        kernel = suite.kernel(launch.kernel)
        kernel.element(launch.dtype)
    arguments = dict(launch.arguments)
    bound = kernel.ulp(launch.dtype)
    near = None if bound is None else Near(launch.dtype, bound)
    exact_dtype = launch.dtype if kernel.is_exact else None
    output_shape, *input_shapes = kernel.arrays(**arguments)
    output_bytes, *input_bytes = (_bytes(shape, launch.dtype) for shape in (output_shape, *input_shapes))

    def job(ready: Ready) -> Job:
        with skips.of_unknown_names():
            cubin = kernel.cubin(launch.dtype, launch.flags, arch=ready.arch)
        messages.machine_code(cubin.sha256, launch.machine_code, ready.arch)
        shape = kernel.geometry(launch.dtype, ready.multiprocessors, **arguments)
        values = kernel.check(launch.dtype, **arguments)
        return Job(
            name=str(launch),
            commit=package(),
            cubin=cubin.data,
            entry=cubin.entry,
            grid=shape.grid,
            block=shape.block,
            dynamic_shared=shape.dynamic_shared,
            integers=tuple(value for value in values if isinstance(value, int)),
            scalars=tuple(value for value in values if isinstance(value, float)),
            dtype=launch.dtype,
            output_shape=output_shape,
            output_bytes=output_bytes,
            input_bytes=tuple(input_bytes),
            useful_bytes=kernel.useful_bytes(launch.dtype, **arguments),
            reference=f"{package()} {_operation(kernel)} {launch.dtype} {arguments}",
            exact_dtype=exact_dtype,
            near=near,
            **how,
        )

    def fill(into: Bytes) -> None:
        held = buffers.host_inputs(input_bytes, exact_dtype)
        sources = [each.view(launch.dtype).reshape(shape) for each, shape in zip(held, input_shapes, strict=True)]
        before = into[:output_bytes].view(launch.dtype).reshape(output_shape)
        _poison(into)
        reference = partial(kernel.reference, **arguments)
        _lay_out(verification.expected_output(reference, before, sources, near), into)

    length = buffers.pitch(output_bytes) if near is None else 8 * math.prod(output_shape)
    return Description(job, Reference(length, fill))


def _operation(kernel: Kernel) -> str:
    """Return a name for a kernel's operation: the first kernel of the package that performs it."""
    known = suite.current().kernels()
    return next((name for name, each in known.items() if each.operation is kernel.operation), kernel.name)


def _copy(launch: Launch, how: dict[str, Any]) -> Description:
    """Describe the instrument's copy of a matrix."""
    shape, _ = matrix_copy.OPERATION.shapes(**launch.arguments)
    length = _bytes(shape, launch.dtype)
    arguments = {"size": tools.elements(length), "length": length}

    def job(ready: Ready) -> Job:
        tool = tools.DEVICE_COPY
        geometry = tool.geometry(None, ready.multiprocessors, **arguments)
        return Job(
            name=str(launch),
            commit=package(),
            cubin=tools.cubin(tool.name, ready.arch),
            entry=tool.name,
            grid=geometry.grid,
            block=geometry.block,
            integers=tuple(arguments.values()),
            dtype=launch.dtype,
            output_shape=shape,
            output_bytes=length,
            input_bytes=(length,),
            useful_bytes=2 * length,
            reference=f"{tool.name} {length}",
            **how,
        )

    def fill(into: Bytes) -> None:
        _lay_out(buffers.host_inputs([length], None)[0], into)

    return Description(job, Reference(buffers.pitch(length), fill))


def _bytes(shape: Sequence[int], dtype: str) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize


def _poison(into: Bytes) -> None:
    """Fill memory with poison, on all cores."""

    def fill(first: int) -> None:
        into[first : first + threads.WORTH_IT] = POISON

    threads.each(fill, range(0, len(into), threads.WORTH_IT))


def _lay_out(expected: Array, into: Bytes) -> None:
    """Copy an array's bytes to the beginning of memory unless they lie there, and poison the rest, on all cores."""
    bits = verification.as_bits(expected)
    out = into[: expected.nbytes].view(bits.dtype).reshape(bits.shape)
    if bits.__array_interface__ != out.__array_interface__:
        _copy_rows(bits.copy() if np.may_share_memory(bits, into) else bits, out)
    into[expected.nbytes :] = POISON


def _copy_rows(source: Array, target: Array) -> None:
    """Copy, on all cores."""
    rows = max(1, threads.WORTH_IT * len(source) // max(1, source.nbytes))

    def copy(first: int) -> None:
        target[first : first + rows] = source[first : first + rows]

    threads.each(copy, range(0, len(source), rows))
