"""Makes a job for the measuring process from a launch of the installed commit's kernels, with the expected output."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import buffers, fingerprint, helper_kernels, inputs, parallel_copy, skip_reasons
from kernelwatch.instrument.inputs import POISON, Bytes
from kernelwatch.instrument.protocol import DeviceArray, Job, Ready
from kernelwatch.instrument.reference_memory import Reference
from kernelwatch.kernel import Launch, matrix_copy
from kernelwatch.kernel.arguments import Array, ArrayArgument, laid_out
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.suite import registry


class Description(NamedTuple):
    """A launch: its job for the device that is ready, and what its output must hold."""

    job: Callable[[Ready], Job]
    reference: Reference


@cache
def package_digest() -> str:
    """Return the SHA-256 of the installed package: its modules and its sources."""
    folder, digest = registry.folder(), hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        if path.suffix in (".py", ".cu", ".cuh", ".h", ".hpp"):
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def of(launch: Launch, **how: Any) -> Description:
    """Describe a launch of a kernel of the installed commit, or of the instrument's copy.

    `how` are the fields of `Job` that say how it is measured. Raises NotImplementedError where the commit knows no such
    kernel, dtype or flag set.
    """
    return _copy(launch, how) if launch.kernel == matrix_copy.NAME else _kernel(launch, how)


def _kernel(launch: Launch, how: dict[str, Any]) -> Description:
    with skip_reasons.of_unknown_names():
        kernel = registry.kernel(launch.kernel)
        kernel.element(launch.dtype)
    arguments, oracle = dict(launch.arguments), kernel.reference
    named = [each for each in kernel.bound(launch.dtype, **arguments) if isinstance(each, ArrayArgument)]
    arrays, is_verified = tuple(map(_array, named)), callable(oracle)
    expected, given, length = buffers.stretches(arrays, is_verified=is_verified)

    def job(ready: Ready) -> Job:
        return Job(
            name=str(launch),
            package_digest=package_digest(),
            **_called(kernel, launch, ready),
            arrays=arrays,
            useful_bytes=max(2, kernel.useful_bytes(launch.dtype, **arguments)),
            reference=f"{package_digest()} {_expectation(kernel, named)} {arguments}",
            is_verified=is_verified,
            oracle=_oracle(oracle, launch, ready, arrays) if isinstance(oracle, Kernel) else None,
            **how,
        )

    def fill(into: Bytes) -> None:
        parallel_copy.copy(np.broadcast_to(np.uint8(POISON), len(into)), into)
        held = {one.name: _held(one, array) for one, array in zip(named, arrays, strict=True)}
        for array, start, length in given:
            into[start : start + length] = held[array.name].reshape(-1).view(np.uint8)
        for array, start, length in expected:
            if array.ulp is None:  # the reference may write into it, which saves a copy
                view = into[start : start + length].view(held[array.name].dtype).reshape(array.shape)
                if array.is_given:
                    view[...] = held[array.name]
                held[array.name] = view
        is_near = any(array.ulp is not None for array in arrays)
        found = kernel.expected(held, arguments, is_near=is_near) if is_verified else []
        for stretch, says in zip(expected, found, strict=True):
            dtype = held[stretch.array.name].dtype if stretch.array.ulp is None else np.dtype(np.float64)
            _lay_out(says.astype(dtype, copy=False), stretch.of(into))

    return Description(job, Reference(length, fill))


def _called(kernel: Kernel, launch: Launch, ready: Ready) -> dict[str, Any]:
    """Return the fields of a job that say what is launched."""
    dtype, flags, arguments = launch.dtype, launch.flags, dict(launch.arguments)
    with skip_reasons.of_unknown_names():
        cubin = kernel.cubin(dtype, flags, arch=ready.arch)
        taken = kernel.taken(dtype, flags, arch=ready.arch)
        variables = kernel.variables(dtype, flags, arch=ready.arch, **arguments)
    packed, places = laid_out(kernel.bound(dtype, **arguments), taken)
    return {
        **vars(kernel.geometry(dtype, ready.multiprocessors, **arguments)),
        "cubin": cubin.data,
        "entry": cubin.entry,
        "parameters": packed,
        "addresses": places,
        "variables": tuple(variables.items()),
    }


def _oracle(kernel: Kernel, launch: Launch, ready: Ready, arrays: tuple[DeviceArray, ...]) -> Job:
    """Return the job of a kernel that says what another one must write; its texts are those of any commit."""
    called = _called(kernel, replace(launch, kernel=kernel.name), ready)
    texts: dict[str, Any] = dict.fromkeys(("name", "package_digest", "reference"), "")
    return Job(**texts, **called, arrays=arrays, useful_bytes=1, samples=1, is_verified=False)


def _array(one: ArrayArgument) -> DeviceArray:
    values = one.values if isinstance(one.values, str) else f"a function, {fingerprint.function(one.values)}"
    if one.has_own_content:
        values = f"{values}, seed {one.seed}, below {one.limit}, {dict(one.extents or {})}"
    return DeviceArray(
        name=one.name,
        dtype=one.dtype.name if one.dtype.names is None else f"V{one.dtype.itemsize}",
        shape=one.shape,
        direction=one.direction,
        values=values if one.direction != "out" else "",
        ordinal=one.ordinal,
        ulp=one.ulp,
    )


def _held(one: ArrayArgument, array: DeviceArray) -> Array:
    """Return what an array holds before a launch; nothing of an output that is compared bit for bit."""
    if array.direction == "out" and array.ulp is None:
        return np.empty(0, one.dtype)
    if array.is_given or array.is_written:
        return inputs.content(one)
    return array.repeated(array.nbytes).view(one.dtype).reshape(one.shape)


def _expectation(kernel: Kernel, named: Sequence[ArrayArgument]) -> str:
    """Return a name for what a kernel must write: the first kernel's that shares its reference, and the arrays."""
    shared = kernel.reference is not None and not any(callable(each.values) for each in named)
    known = registry.current().kernels().items() if shared else ()
    facts = [(each.name, each.shape, str(each.dtype), each.values, each.seed, each.limit, each.ulp) for each in named]
    return f"{next((name for name, each in known if each.reference is kernel.reference), kernel.name)} {facts}"


def _copy(launch: Launch, how: dict[str, Any]) -> Description:
    """Describe the instrument's copy of a matrix."""
    shape = (launch.arguments["rows"], launch.arguments["columns"])
    output = DeviceArray(name="output", dtype=launch.dtype, shape=shape, direction="out")
    read = DeviceArray(name="input 0", dtype=launch.dtype, shape=shape, direction="in")
    copy = replace(launch, dtype=helper_kernels.DTYPE, arguments=helper_kernels.copied(output.nbytes))

    def job(ready: Ready) -> Job:
        return Job(
            name=str(launch),
            package_digest=package_digest(),
            **_called(helper_kernels.DEVICE_COPY, copy, ready),
            arrays=(output, read),
            useful_bytes=2 * output.nbytes,
            reference=f"{launch.kernel} {output.nbytes}",
            **how,
        )

    def fill(into: Bytes) -> None:
        _lay_out(read.repeated(output.nbytes), into)

    return Description(job, Reference(buffers.pitch(output.nbytes), fill))


def _lay_out(expected: Array, into: Bytes) -> None:
    """Copy an array's bytes to the beginning of memory unless they lie there, and poison the rest, on all cores."""
    out = into[: expected.nbytes].view(expected.dtype).reshape(expected.shape)
    if expected.__array_interface__ != out.__array_interface__:
        parallel_copy.copy(expected.copy() if np.may_share_memory(expected, into) else expected, out)
    into[expected.nbytes :] = POISON
