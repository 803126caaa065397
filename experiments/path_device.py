"""A device for launches with large buffers: device memory, managed memory, a texture, or memory that persists in L2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from experiments import cubins
from experiments.path_cases import Buffer, Path
from tests.gpu.driver import Device

SOURCE = FilePath(__file__).with_name("memory_paths.cu")
#: Kernels that `LaunchDevice.measure_chain` launches.
CHAIN_KERNELS = "link", "chase"


def compile_paths(flags: str = "") -> bytes:
    """Return the cubin of `SOURCE` for sm_90."""
    return cubins.compile_cubin(SOURCE, "sm_90", flags)


class LaunchDevice(Device):
    """A device for launches with large buffers, which are allocated for the launch and not copied to the host."""

    def launch(self, path: Path, around: Callable[[Callable[[], None]], None]) -> list[int]:
        """Launch a path: call `around` with a function that launches the kernel.

        Return the first two 64-bit words of the last argument if it is a `Buffer` of 16 bytes, else zeros.
        """
        call, cu = self._call, self.cu
        data = np.frombuffer(compile_paths(path.flags) + b"\0", np.uint8)
        function = call("cuModuleGetFunction", call("cuModuleLoadData", data.ctypes.data), path.kernel.encode())
        memory: list[Any] = []
        values = [self._bind(argument, memory) for argument in path.arguments]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        configuration = cu.CUlaunchConfig()
        configuration.gridDimX, configuration.blockDimX = path.blocks, path.threads
        for axis in ("gridDimY", "gridDimZ", "blockDimY", "blockDimZ"):
            setattr(configuration, axis, 1)
        configuration.hStream = cu.CUstream(0)
        if path.window:
            attribute = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE
            most = call("cuDeviceGetAttribute", attribute, call("cuCtxGetDevice"))
            self._persist(min(path.window, most))
            configuration.attrs = [make_window(cu, int(memory[0]), path.window)]
            configuration.numAttrs = 1
        around(lambda: call("cuLaunchKernelEx", configuration, function, pointers.ctypes.data, 0))
        call("cuCtxSynchronize")
        if path.window:
            call("cuCtxResetPersistingL2Cache")
            self._persist(0)
        result = np.zeros(2, np.uint64)
        last = path.arguments[-1]
        if isinstance(last, Buffer) and last.nbytes == 16:
            call("cuMemcpyDtoH", result.ctypes.data, memory[-1], 16)
        for address in memory:
            call("cuMemFree", address)
        return [int(word) for word in result]

    def synchronize(self) -> None:
        """Wait until the GPU has finished all work of the context."""
        self._call("cuCtxSynchronize")

    def _persist(self, nbytes: int) -> None:
        self._call("cuCtxSetLimit", self.cu.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, nbytes)

    def _bind(self, argument: Any, memory: list[Any]) -> Any:
        if isinstance(argument, np.generic):
            return np.frombuffer(argument.tobytes(), np.uint8)
        kind, nbytes = (argument.kind, argument.nbytes) if isinstance(argument, Buffer) else ("", argument.nbytes)
        is_managed = kind in ("managed", "untouched")
        address = self._call("cuMemAllocManaged", nbytes, 1) if is_managed else self._call("cuMemAlloc", nbytes)
        memory.append(address)
        if not kind:
            self._call("cuMemcpyHtoD", address, argument.ctypes.data, nbytes)
        elif kind != "untouched":
            self._call("cuMemsetD8", address, 0, nbytes)
        handle = self._make_texture(address, nbytes) if kind == "texture" else int(address)
        return np.array([handle], np.uint64)

    def _make_texture(self, address: Any, nbytes: int) -> int:
        resource = self.cu.CUDA_RESOURCE_DESC()
        resource.resType = self.cu.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        resource.res.linear.devPtr, resource.res.linear.numChannels = address, 1
        resource.res.linear.format = self.cu.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
        resource.res.linear.sizeInBytes = nbytes
        description = self.cu.CUDA_TEXTURE_DESC()
        description.flags = 1  # CU_TRSF_READ_AS_INTEGER
        return int(self._call("cuTexObjectCreate", resource, description, None))

    def measure_chain(self, kind: str, stride: int, footprint: int) -> float:
        """Return the average clocks of a load in a chain of loads `stride` bytes apart, over `footprint` bytes."""
        count = footprint // stride
        memory: list[Any] = []
        base = self._bind(Buffer(footprint + (1 << 16), kind), memory)
        out = self._bind(Buffer(24), memory)
        step = int(count * 0.618) | 1
        data = np.frombuffer(compile_paths() + b"\0", np.uint8)
        module = self._call("cuModuleLoadData", data.ctypes.data)
        launches = (64, 256, (stride, count, step), ()), (1, 1, (count,), (out,))
        for kernel, (blocks, threads, numbers, last) in zip(CHAIN_KERNELS, launches, strict=True):
            function = self._call("cuModuleGetFunction", module, kernel.encode())
            values = [base, *(np.array([number], np.uint64) for number in numbers), *last]
            pointers = np.array([value.ctypes.data for value in values], np.uint64)
            self._call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, 0, pointers.ctypes.data, 0)
        self._call("cuCtxSynchronize")
        laps = np.zeros(3, np.uint64)
        self._call("cuMemcpyDtoH", laps.ctypes.data, memory[1], 24)
        for address in memory:
            self._call("cuMemFree", address)
        return float(laps[1]) / count


def make_window(cu: Any, address: int, nbytes: int) -> Any:
    """Return the launch attribute that makes `nbytes` bytes at an address persist in L2."""
    window = cu.CUaccessPolicyWindow()
    window.base_ptr, window.num_bytes, window.hitRatio = address, nbytes, 1.0
    window.hitProp = cu.CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
    window.missProp = cu.CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING
    attribute = cu.CUlaunchAttribute()
    attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    attribute.value.accessPolicyWindow = window
    return attribute
