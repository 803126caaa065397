"""Launches through the CUDA driver's Python bindings: textures, tensor maps, cooperative grids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptxcount import Im2colMap, Surface, TensorMap, Texture
from ptxcount.isa.hopper.map_fields import MapFields
from ptxcount.isa.textures import ADDRESSES
from ptxcount.machine.argument_layout import ArrayDescriptor, KernelArgument

FORMATS = {"f4": "FLOAT", "f2": "HALF", "u1": "UNSIGNED_INT8", "i1": "SIGNED_INT8", "u2": "UNSIGNED_INT16",
           "i2": "SIGNED_INT16", "u4": "UNSIGNED_INT32", "i4": "SIGNED_INT32"}  # fmt: skip
TENSORS = {"f4": "FLOAT32", "f2": "FLOAT16", "f8": "FLOAT64", "u1": "UINT8", "u2": "UINT16", "u4": "UINT32",
           "i4": "INT32", "u8": "UINT64", "i8": "INT64"}  # fmt: skip
LAYERED, STORABLE, GATHERABLE = 1, 2, 8
INTEGERS, NORMALIZED = 1, 2
#: Stack of a thread, in bytes: some kernels call functions that call themselves.
STACK = 16384


class Device:
    """The first device, and the modules loaded on it. ``cu`` is the module ``cuda.bindings.driver``."""

    def __init__(self, cu: Any) -> None:
        self.cu = cu
        self._call("cuInit", 0)
        device = self._call("cuDeviceGet", 0)
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device))
        self._call("cuCtxSetLimit", self.cu.CUlimit.CU_LIMIT_STACK_SIZE, STACK)
        self._modules: dict[str, Any] = {}

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *results = getattr(self.cu, name)(*arguments)
        if int(error):
            raise RuntimeError(f"{name}: {error}")
        return results[0] if len(results) == 1 else results

    def run(
        self,
        cubin: Path | bytes,
        entry: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[KernelArgument],
        *,
        shared: int = 0,
        cooperative: bool = False,
        layered: bool = False,
        gather: bool = False,
    ) -> None:
        """Launch a kernel of a cubin or of PTX, and copy the results to the arrays of `arguments`."""
        key = str(cubin)
        if key not in self._modules:
            data = cubin if isinstance(cubin, bytes) else cubin.read_bytes()
            ended = np.frombuffer(data + b"\0", np.uint8)  # lives until the driver has read it
            self._modules[key] = self._call("cuModuleLoadData", ended.ctypes.data)
        function = self._call("cuModuleGetFunction", self._modules[key], entry.encode())
        if shared > 48 << 10:
            attribute = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, attribute, shared)
        copied_back: list[tuple[Any, Any]] = []
        values = [self._pack_value(argument, copied_back, layered, gather) for argument in arguments]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        launch = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"
        cooperative_argument = () if cooperative else (0,)
        self._call(launch, function, *grid, *block, shared, 0, pointers.ctypes.data, *cooperative_argument)
        self._call("cuCtxSynchronize")
        for memory, array in copied_back:
            if isinstance(memory, tuple):
                self._copy(array, *memory, to_device=False)
            else:
                self._call("cuMemcpyDtoH", array.ctypes.data, memory, array.nbytes)
                self._call("cuMemFree", memory)

    def _pack_value(
        self, argument: KernelArgument, copied_back: list[tuple[Any, Any]], layered: bool, gather: bool
    ) -> Any:
        """Return an argument's bytes as an array. Append memory to copy back to ``copied_back``."""
        if isinstance(argument, np.generic):
            return np.frombuffer(argument.tobytes(), np.uint8)
        if isinstance(argument, Surface):
            return np.array([self._bind_surface(argument, copied_back, layered, gather)], np.uint64)
        array = argument.array if isinstance(argument, ArrayDescriptor) else argument
        assert isinstance(array, np.ndarray), "no structs here"
        memory = self._call("cuMemAlloc", max(array.nbytes, 1))
        self._call("cuMemcpyHtoD", memory, array.ctypes.data, array.nbytes)
        copied_back.append((memory, array))
        if isinstance(argument, TensorMap | Im2colMap):
            return self.encode_map(argument.make_fields(int(memory)))
        return np.array([int(memory)], np.uint64)

    def encode_map(self, fields: MapFields) -> Any:
        """Return the 64-bit words of a tensor map that the driver encodes."""
        encoded = self._call(*list_encoding(self.cu, fields))
        return np.array([int(word) for word in encoded.opaque], np.uint64)

    def _bind_surface(self, surface: Surface, copied_back: list[tuple[Any, Any]], layered: bool, gather: bool) -> int:
        cu, array = self.cu, surface.array
        kind = getattr(cu.CUarray_format, f"CU_AD_FORMAT_{FORMATS[array.dtype.str[1:]]}")
        resource = cu.CUDA_RESOURCE_DESC()
        extents = surface.extents[::-1]
        rows = surface.layout == "rows" or (not surface.layout and len(extents) == 1 and isinstance(surface, Texture))
        if rows:
            memory = self._call("cuMemAlloc", array.nbytes)
            self._call("cuMemcpyHtoD", memory, array.ctypes.data, array.nbytes)
            name = "linear" if len(extents) == 1 else "pitch2D"
            resource.resType = getattr(cu.CUresourcetype, f"CU_RESOURCE_TYPE_{name.upper()}")
            part = getattr(resource.res, name)
            part.devPtr, part.format, part.numChannels = memory, kind, surface.channels
            if name == "linear":
                part.sizeInBytes = array.nbytes
            else:
                part.width, part.height, part.pitchInBytes = extents[0], extents[1], extents[0] * surface.element
            copied_back.append((memory, array))
        else:
            descriptor = cu.CUDA_ARRAY3D_DESCRIPTOR()
            last = len(extents) - 1 if layered else None
            descriptor.Width, descriptor.Format, descriptor.NumChannels = extents[0], kind, surface.channels
            descriptor.Height = extents[1] if len(extents) > 1 and last != 1 else 0
            descriptor.Depth = extents[last] if last else (extents[2] if len(extents) > 2 else 0)
            descriptor.Flags = (
                LAYERED * layered | (0 if isinstance(surface, Texture) else STORABLE) | GATHERABLE * gather
            )
            place = self._call("cuArray3DCreate", descriptor)
            self._copy(array, place, surface, layered, to_device=True)
            resource.resType, resource.res.array.hArray = cu.CUresourcetype.CU_RESOURCE_TYPE_ARRAY, place
            copied_back.append(((place, surface, layered), array))
        if not isinstance(surface, Texture):
            return int(self._call("cuSurfObjectCreate", resource))
        how = cu.CUDA_TEXTURE_DESC()
        modes = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
        assert modes.keys() == ADDRESSES.keys()
        # Border mode on an axis that the texture lacks would halve one-dimensional filters.
        used = [modes[surface.address]] * (len(extents) - layered)
        how.addressMode = [cu.CUaddress_mode(mode) for mode in (*used, 0, 0)[:3]]
        how.filterMode = cu.CUfilter_mode(int(surface.filter == "linear"))
        is_integer_read = array.dtype.kind != "f" and not surface.fractions
        how.flags = INTEGERS * is_integer_read | NORMALIZED * surface.normalized
        return int(self._call("cuTexObjectCreate", resource, how, None))

    def _copy(self, array: Any, place: Any, surface: Surface, layered: bool, *, to_device: bool) -> None:
        copy = self.cu.CUDA_MEMCPY3D()
        kinds = self.cu.CUmemorytype
        host_side, device_side = ("src", "dst") if to_device else ("dst", "src")
        extents = surface.extents
        pitch = extents[-1] * surface.element
        height = extents[-2] if len(extents) > 1 + (layered and len(extents) == 2) else 1
        for side, kind in ((host_side, kinds.CU_MEMORYTYPE_HOST), (device_side, kinds.CU_MEMORYTYPE_ARRAY)):
            setattr(copy, f"{side}MemoryType", kind)
        setattr(copy, f"{host_side}Host", array.ctypes.data)
        setattr(copy, f"{host_side}Pitch", pitch)
        setattr(copy, f"{host_side}Height", height)
        setattr(copy, f"{device_side}Array", place)
        copy.WidthInBytes, copy.Height, copy.Depth = pitch, height, array.nbytes // pitch // height
        self._call("cuMemcpy3D", copy)


def list_encoding(cu: Any, fields: MapFields) -> list[Any]:
    kind = getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{TENSORS[fields.dtype.str[1:]]}")
    name, column = "cuTensorMapEncodeTiled", fields.column
    shape: list[Any] = [[cu.cuuint32_t(number) for number in fields.box]]
    if column is not None:
        name, shape = "cuTensorMapEncodeIm2col", [[*column.lower], [*column.upper], column.channels, column.pixels]
    modes = [
        cu.CUtensorMapInterleave({0: 0, 16: 1, 32: 2}[fields.interleave]),
        cu.CUtensorMapSwizzle({0: 0, 32: 1, 64: 2, 128: 3}[fields.swizzle]),
        cu.CUtensorMapL2promotion(0),
        cu.CUtensorMapFloatOOBfill(int(fields.fills_nan)),
    ]
    dimensions = [[cu.cuuint64_t(number) for number in numbers] for numbers in (fields.extents, fields.pitches)]
    steps = [cu.cuuint32_t(number) for number in fields.steps]
    return [name, kind, len(fields.extents), fields.address, *dimensions, *shape, steps, *modes]
