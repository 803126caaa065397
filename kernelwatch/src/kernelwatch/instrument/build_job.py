"""Build jobs for the measuring process from launches of the installed commit's kernels, with their references."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from kernelwatch.instrument import buffers, fingerprint, helper_kernels, inputs, parallel_copy, skip_reasons
from kernelwatch.instrument.inputs import POISON, Bytes
from kernelwatch.instrument.job_messages import DeviceArray, DeviceFacts, Job
from kernelwatch.instrument.reference_memory import Reference
from kernelwatch.kernel import Launch, matrix_copy
from kernelwatch.kernel.arguments import Array, ArrayArgument, ParameterLayout, pack_arguments
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.suite import registry
from kernelwatch.toolchain.build import Cubin


class JobDescription(NamedTuple):
    """A function that makes the job of a launch for a device, and the reference of the launch."""

    make_job: Callable[[DeviceFacts], Job]
    reference: Reference


@cache
def package_digest() -> str:
    """Return the SHA-256 of the Python modules, .cu files and headers in the folder of the measured code."""
    folder, digest = registry.find_measured_folder(), hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        if path.suffix in (".py", ".cu", ".cuh", ".h", ".hpp"):
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def describe_launch(launch: Launch, **job_fields: Any) -> JobDescription:
    """Describe a launch of a kernel of the installed commit, or of the library's copy kernel.

    `job_fields` are further fields of `Job`. Raises NotImplementedError if the commit does not have the kernel, the
    dtype or an argument, ArgumentError if a value is not valid. `make_job` compiles the kernel. It raises
    NotImplementedError if the source lacks the entry point, or else the errors of `Kernel.compile_cubin`.
    """
    if launch.kernel == matrix_copy.NAME:
        return _describe_copy(launch, job_fields)
    with skip_reasons.skip_unknown_names():
        kernel = registry.find_kernel(launch.kernel)
        kernel.check_dtype(launch.dtype)
        bound = kernel.bind_arguments(launch.dtype, **launch.arguments)
    extents, oracle = dict(launch.arguments), kernel.reference
    arguments = [argument for argument in bound if isinstance(argument, ArrayArgument)]
    arrays = tuple(map(_device_array, arguments))
    layout = buffers.lay_out_reference(arrays, is_verified=callable(oracle))

    def make_job(facts: DeviceFacts) -> Job:
        return Job(
            name=str(launch),
            package_digest=package_digest(),
            **_call_fields(kernel, launch, facts),
            arrays=arrays,
            useful_bytes=max(2, kernel.useful_bytes(launch.dtype, **extents)),  # half is the copy's length
            reference=f"{package_digest()} {_reference_name(kernel, arguments)} {extents}",
            is_verified=callable(oracle),
            oracle=_make_oracle_job(oracle, launch, facts, arrays) if isinstance(oracle, Kernel) else None,
            **job_fields,
        )

    fill = partial(_fill_reference, kernel, extents, arguments, arrays, layout)
    return JobDescription(make_job, Reference(layout.length, fill))


def _fill_reference(
    kernel: Kernel,
    extents: dict[str, Any],
    arguments: Sequence[ArrayArgument],
    arrays: Sequence[DeviceArray],
    layout: buffers.ReferenceLayout,
    memory: Bytes,
) -> None:
    """Write the reference of a launch into memory. Poison fills the gaps."""
    parallel_copy.copy_array(np.broadcast_to(np.uint8(POISON), len(memory)), memory)
    contents = {
        argument.name: _content_before_launch(argument, array)
        for argument, array in zip(arguments, arrays, strict=True)
    }
    for array, start, length in layout.prefilled:
        memory[start : start + length] = contents[array.name].reshape(-1).view(np.uint8)
    contents |= _map_exact_outputs(layout, contents, memory)
    has_tolerance = any(array.ulp is not None for array in arrays)
    outputs = kernel.compute_expected(contents, extents, as_float64=has_tolerance) if layout.outputs else []
    for part, output in zip(layout.outputs, outputs, strict=True):
        dtype = contents[part.array.name].dtype if part.array.ulp is None else np.dtype(np.float64)
        _write_part(output.astype(dtype, copy=False), part.view_in(memory))


def _map_exact_outputs(
    layout: buffers.ReferenceLayout, contents: Mapping[str, Array], memory: Bytes
) -> dict[str, Array]:
    """Return the views in memory of the outputs without a tolerance, by name.

    The kernel's reference can write into them, which saves a copy. Outputs that are also read get their content.
    """
    views = {}
    for array, start, length in layout.outputs:
        if array.ulp is None:
            view = memory[start : start + length].view(contents[array.name].dtype).reshape(array.shape)
            if array.is_prefilled:
                view[...] = contents[array.name]
            views[array.name] = view
    return views


def _call_fields(kernel: Kernel, launch: Launch, facts: DeviceFacts) -> dict[str, Any]:
    """Compile a kernel; return the fields of `Call` for a launch on a device."""
    dtype, flags, arguments = launch.dtype, launch.flags, dict(launch.arguments)
    with skip_reasons.skip_unknown_names():
        cubin, parameter_layout = _compile_kernel(kernel, dtype, flags, facts.arch)
        variables = kernel.variable_bytes(dtype, flags, arch=facts.arch, **arguments)
        packed, address_offsets = pack_arguments(kernel.bind_arguments(dtype, **arguments), parameter_layout)
    return {
        **vars(kernel.compute_geometry(dtype, facts.multiprocessors, **arguments)),
        "cubin": cubin.data,
        "entry": cubin.entry,
        "parameters": packed,
        "addresses": address_offsets,
        "variables": tuple(variables.items()),
    }


@cache
def _compile_kernel(kernel: Kernel, dtype: str, flags: str, arch: str) -> tuple[Cubin, list[ParameterLayout]]:
    return kernel.compile_cubin(dtype, flags, arch=arch), kernel.parameter_layout(dtype, flags, arch=arch)


def _make_oracle_job(kernel: Kernel, launch: Launch, facts: DeviceFacts, arrays: tuple[DeviceArray, ...]) -> Job:
    call_fields = _call_fields(kernel, replace(launch, kernel=kernel.name), facts)
    # Without these texts, the job is the same for all commits.
    texts: dict[str, Any] = dict.fromkeys(("name", "package_digest", "reference"), "")
    return Job(**texts, **call_fields, arrays=arrays, useful_bytes=1, samples=1, is_verified=False)


def _device_array(argument: ArrayArgument) -> DeviceArray:
    values = argument.values
    if not isinstance(values, str):
        values = f"a function, {fingerprint.list_function_facts(values)}"
    if argument.has_own_content:
        values = f"{values}, seed {argument.seed}, below {argument.limit}, {dict(argument.extents or {})}"
    return DeviceArray(
        name=argument.name,
        dtype=argument.dtype.name if argument.dtype.names is None else f"V{argument.dtype.itemsize}",
        shape=argument.shape,
        direction=argument.direction,
        values="" if argument.direction == "out" else values,
        ordinal=argument.ordinal,
        ulp=argument.ulp,
    )


def _content_before_launch(argument: ArrayArgument, array: DeviceArray) -> Array:
    """Return an array's content before a launch; empty for an output of `_map_exact_outputs`."""
    if array.direction == "out" and array.ulp is None:
        return np.empty(0, argument.dtype)
    if array.is_prefilled or array.is_written:
        return inputs.make_content(argument)
    return array.repeat_block(array.nbytes).view(argument.dtype).reshape(argument.shape)


def _reference_name(kernel: Kernel, arguments: Sequence[ArrayArgument]) -> str:
    """Return a text that identifies the expected outputs: a kernel's name, and the facts of the arrays.

    The name is that of the suite's first kernel with the same reference. If a function computes an array's values, it
    is the kernel's own name.
    """
    name = kernel.name
    if kernel.reference is not None and not any(callable(argument.values) for argument in arguments):
        kernels = registry.current_suite().kernels().items()
        name = next((other for other, candidate in kernels if candidate.reference is kernel.reference), name)
    facts = [
        (argument.name, argument.shape, argument.dtype, argument.values, argument.seed, argument.limit, argument.ulp)
        for argument in arguments
    ]
    return f"{name} {facts}"


def _describe_copy(launch: Launch, job_fields: dict[str, Any]) -> JobDescription:
    shape = (launch.arguments["rows"], launch.arguments["columns"])
    output = DeviceArray(name="output", dtype=launch.dtype, shape=shape, direction="out")
    input_array = DeviceArray(name="input 0", dtype=launch.dtype, shape=shape, direction="in")
    copy = replace(launch, dtype=helper_kernels.DTYPE, arguments=helper_kernels.copy_arguments(output.nbytes))

    def make_job(facts: DeviceFacts) -> Job:
        return Job(
            name=str(launch),
            package_digest=package_digest(),
            **_call_fields(helper_kernels.DEVICE_COPY, copy, facts),
            arrays=(output, input_array),
            useful_bytes=2 * output.nbytes,
            reference=f"{launch.kernel} {output.nbytes}",
            **job_fields,
        )

    def fill_reference(memory: Bytes) -> None:
        _write_part(input_array.repeat_block(output.nbytes), memory)

    return JobDescription(make_job, Reference(buffers.pad_length(output.nbytes), fill_reference))


def _write_part(expected: Array, memory: Bytes) -> None:
    """Copy an array to the beginning of memory unless it is there already. Poison the rest of the memory."""
    target = memory[: expected.nbytes].view(expected.dtype).reshape(expected.shape)
    if expected.__array_interface__ != target.__array_interface__:
        if np.may_share_memory(expected, memory):
            expected = expected.copy()
        parallel_copy.copy_array(expected, target)
    memory[expected.nbytes :] = POISON
