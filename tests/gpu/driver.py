"""Launches on a device through the CUDA driver's own Python bindings: textures, tensor maps and cooperative grids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ptxcount import Surface, TensorMap, Texture
from ptxcount.isa.textures import ADDRESSES
from ptxcount.machine.argument_layout import ArrayDescriptor, KernelArgument

FORMATS = {"f4": "FLOAT", "f2": "HALF", "u1": "UNSIGNED_INT8", "i1": "SIGNED_INT8", "u2": "UNSIGNED_INT16",
           "i2": "SIGNED_INT16", "u4": "UNSIGNED_INT32", "i4": "SIGNED_INT32"}  # fmt: skip
TENSORS = {"f4": "FLOAT32", "f2": "FLOAT16", "f8": "FLOAT64", "u1": "UINT8", "u2": "UINT16", "u4": "UINT32",
           "i4": "INT32", "u8": "UINT64", "i8": "INT64"}  # fmt: skip
LAYERED, STORABLE, GATHERABLE = 1, 2, 8
INTEGERS, NORMALIZED = 1, 2
#: Bytes of a thread's stack: functions call themselves.
STACK = 16384


class Device:
    """The first device, with the modules that were loaded; ``cu`` is ``cuda.bindings.driver``."""

    def __init__(self, cu: Any) -> None:
        self.cu = cu
        self._do("cuInit", 0)
        device = self._do("cuDeviceGet", 0)
        self._do("cuCtxSetCurrent", self._do("cuDevicePrimaryCtxRetain", device))
        self._do("cuCtxSetLimit", self.cu.CUlimit.CU_LIMIT_STACK_SIZE, STACK)
        self._modules: dict[str, Any] = {}

    def _do(self, name: str, *arguments: Any) -> Any:
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
        """Launch a kernel of a cubin, or of PTX; arrays hold its results afterwards."""
        key = str(cubin)
        if key not in self._modules:
            data = cubin if isinstance(cubin, bytes) else cubin.read_bytes()
            ended = np.frombuffer(data + b"\0", np.uint8)  # lives until the driver has read it
            self._modules[key] = self._do("cuModuleLoadData", ended.ctypes.data)
        function = self._do("cuModuleGetFunction", self._modules[key], entry.encode())
        if shared > 48 << 10:
            attribute = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._do("cuFuncSetAttribute", function, attribute, shared)
        held: list[tuple[Any, Any]] = []
        values = [self._value(each, held, layered, gather) for each in arguments]
        pointers = np.array([each.ctypes.data for each in values], np.uint64)
        launch = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"
        more = () if cooperative else (0,)
        self._do(launch, function, *grid, *block, shared, 0, pointers.ctypes.data, *more)
        self._do("cuCtxSynchronize")
        for memory, array in held:
            if isinstance(memory, tuple):
                self._copy(array, *memory, to_device=False)
            else:
                self._do("cuMemcpyDtoH", array.ctypes.data, memory, array.nbytes)
                self._do("cuMemFree", memory)

    def _value(self, given: KernelArgument, held: list[tuple[Any, Any]], layered: bool, gather: bool) -> Any:
        """An argument's bytes, as an array; memory that must be copied back goes to ``held``."""
        if isinstance(given, np.generic):
            return np.frombuffer(given.tobytes(), np.uint8)
        if isinstance(given, Surface):
            return np.array([self._bound(given, held, layered, gather)], np.uint64)
        array = given.array if isinstance(given, ArrayDescriptor) else given
        assert isinstance(array, np.ndarray), "no structs here"
        memory = self._do("cuMemAlloc", max(array.nbytes, 1))
        self._do("cuMemcpyHtoD", memory, array.ctypes.data, array.nbytes)
        held.append((memory, array))
        return self._map(given, memory) if isinstance(given, TensorMap) else np.array([int(memory)], np.uint64)

    def _map(self, given: TensorMap, memory: Any) -> Any:
        cu, array = self.cu, given.array
        kind = getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{TENSORS[array.dtype.str[1:]]}")
        swizzle = getattr(
            cu.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{given.swizzle}B' if given.swizzle else 'NONE'}"
        )
        sizes = [cu.cuuint64_t(n) for n in array.shape[::-1]]
        strides = [cu.cuuint64_t(n) for n in array.strides[::-1][1:]]
        box = [cu.cuuint32_t(n) for n in given.box[::-1]]
        made = self._do(
            "cuTensorMapEncodeTiled", kind, array.ndim, int(memory), sizes, strides, box,
            [cu.cuuint32_t(1)] * array.ndim, cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
            cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )  # fmt: skip
        return np.array([int(each) for each in made.opaque], np.uint64)

    def _bound(self, given: Surface, held: list[tuple[Any, Any]], layered: bool, gather: bool) -> int:
        cu, array = self.cu, given.array
        kind = getattr(cu.CUarray_format, f"CU_AD_FORMAT_{FORMATS[array.dtype.str[1:]]}")
        resource = cu.CUDA_RESOURCE_DESC()
        extents = given.extents[::-1]
        rows = given.layout == "rows" or (not given.layout and len(extents) == 1 and isinstance(given, Texture))
        if rows:
            memory = self._do("cuMemAlloc", array.nbytes)
            self._do("cuMemcpyHtoD", memory, array.ctypes.data, array.nbytes)
            name = "linear" if len(extents) == 1 else "pitch2D"
            resource.resType = getattr(cu.CUresourcetype, f"CU_RESOURCE_TYPE_{name.upper()}")
            part = getattr(resource.res, name)
            part.devPtr, part.format, part.numChannels = memory, kind, given.channels
            if name == "linear":
                part.sizeInBytes = array.nbytes
            else:
                part.width, part.height, part.pitchInBytes = extents[0], extents[1], extents[0] * given.element
            held.append((memory, array))
        else:
            made = cu.CUDA_ARRAY3D_DESCRIPTOR()
            last = len(extents) - 1 if layered else None
            made.Width, made.Format, made.NumChannels = extents[0], kind, given.channels
            made.Height = extents[1] if len(extents) > 1 and last != 1 else 0
            made.Depth = extents[last] if last else (extents[2] if len(extents) > 2 else 0)
            made.Flags = LAYERED * layered | (0 if isinstance(given, Texture) else STORABLE) | GATHERABLE * gather
            place = self._do("cuArray3DCreate", made)
            self._copy(array, place, given, layered, to_device=True)
            resource.resType, resource.res.array.hArray = cu.CUresourcetype.CU_RESOURCE_TYPE_ARRAY, place
            held.append(((place, given, layered), array))
        if not isinstance(given, Texture):
            return int(self._do("cuSurfObjectCreate", resource))
        how = cu.CUDA_TEXTURE_DESC()
        modes = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
        assert modes.keys() == ADDRESSES.keys()
        # As a host does that says it of the axes there are. A border of more halves what is filtered in one dimension.
        used = [modes[given.address]] * (len(extents) - layered)
        how.addressMode = [cu.CUaddress_mode(each) for each in (*used, 0, 0)[:3]]
        how.filterMode = cu.CUfilter_mode(int(given.filter == "linear"))
        whole = array.dtype.kind != "f" and not given.fractions
        how.flags = INTEGERS * whole | NORMALIZED * given.normalized
        return int(self._do("cuTexObjectCreate", resource, how, None))

    def _copy(self, array: Any, place: Any, given: Surface, layered: bool, *, to_device: bool) -> None:
        """Between an array of the host and one of the device, all layers."""
        copy = self.cu.CUDA_MEMCPY3D()
        kinds = self.cu.CUmemorytype
        here, there = ("src", "dst") if to_device else ("dst", "src")
        extents = given.extents
        pitch = extents[-1] * given.element
        height = extents[-2] if len(extents) > 1 + (layered and len(extents) == 2) else 1
        for side, kind in ((here, kinds.CU_MEMORYTYPE_HOST), (there, kinds.CU_MEMORYTYPE_ARRAY)):
            setattr(copy, f"{side}MemoryType", kind)
        setattr(copy, f"{here}Host", array.ctypes.data)
        setattr(copy, f"{here}Pitch", pitch)
        setattr(copy, f"{here}Height", height)
        setattr(copy, f"{there}Array", place)
        copy.WidthInBytes, copy.Height, copy.Depth = pitch, height, array.nbytes // pitch // height
        self._do("cuMemcpy3D", copy)
