"""Tensor maps of cuTile's kernels. A cubin contains the host function that makes them at a launch."""

import ctypes
import mmap
import platform
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ..isa.hopper.map_fields import SWIZZLES
from ..isa.hopper.tensor_maps import TensorMap
from ..util.errors import LaunchError
from .kernel_sources import open_object, read_section

#: The host function. Its fourth argument points to the parameters of the kernel; it writes the maps after them.
_FUNCTION = "__CUDA_TILEIR_FUNC_ON_ARGUMENTS_CHANGE_0"
#: Fields of a tensor map that it writes, x first: pitches in units of 16 bytes; lengths and boxes minus 1.
_FIELDS = np.dtype({
    "names": ["address", "flags", "pitches", "lengths", "steps", "box"],
    "formats": ["u8", "u4", "(4,)u4", "(5,)u4", "(3,)u1", "(5,)u1"],
    "offsets": [0, 8, 12, 32, 52, 55],
    "itemsize": TensorMap.size,
})  # fmt: skip
#: Flags: the version in bits 0 to 3, axes minus 1 and type in 4 to 10, place of the swizzle in `SWIZZLES` in 13 and 14,
#: promotion in L2 in 17 and 18, and a size of 128 KiB in 21.
_VERSION, _KNOWN_FLAGS = 0x2, 0x2667F0
#: First address that stands for an array.
_ADDRESS = 1 << 56


def make_tensor_maps(cubin: bytes, arguments: Sequence[Any], count: int) -> list[TensorMap]:
    """Make the ``count`` tensor maps of a launch with these arguments; none if the host function cannot run here.

    The host function gets an address that stands for each array. A map in its result has the address of its array.
    """
    arrays = {_ADDRESS | n << 40: value for n, value in enumerate(arguments) if isinstance(value, np.ndarray)}
    addresses = iter(arrays)
    values = [np.uint64(next(addresses)) if isinstance(value, np.ndarray) else value for value in arguments]
    layout = np.dtype([(f"p{n}", value.dtype) for n, value in enumerate(values)], align=True)
    parameters = np.zeros(layout.itemsize + (count + 1) * _FIELDS.itemsize, np.uint8)
    parameters[: layout.itemsize] = np.array([tuple(values)], layout).view(np.uint8)
    _call_host_function(cubin, parameters.ctypes.data)
    # A map may begin at each multiple of 16 bytes after the parameters.
    places = range(-(-layout.itemsize // 16) * 16, layout.itemsize + count * _FIELDS.itemsize, 16)
    maps = [np.frombuffer(parameters, _FIELDS, 1, place)[0] for place in places]
    return [_read_map(fields, arrays[int(fields["address"])]) for fields in maps if int(fields["address"]) in arrays]


def _call_host_function(cubin: bytes, parameters: int) -> None:
    """Call the host function with the parameters' address, if this is x86-64 Linux and the code needs no linker."""
    content = read_section(cubin, ".nv.host")
    if not content or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return
    host = open_object(content)
    if host["e_machine"] != "EM_X86_64":
        return
    for symbol in host.get_section_by_name(".symtab").get_symbol_by_name(_FUNCTION) or ():
        code = host.get_section(symbol["st_shndx"])
        links = host.get_section_by_name(f".rela{code.name}")
        within = range(symbol["st_value"], symbol["st_value"] + symbol["st_size"])
        if links and any(link["r_offset"] in within for link in links.iter_relocations()):
            return
        pages = mmap.mmap(-1, code.data_size, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        pages.write(code.data())
        first = ctypes.c_char.from_buffer(pages, within.start)  # keeps the pages until the call returns
        ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(ctypes.addressof(first))(None, None, None, parameters)


def _read_map(fields: Any, array: Any) -> TensorMap:
    """Return the `TensorMap` of these fields over the array; raise `LaunchError` for a form unknown to ptxcount."""
    rank, flags = array.ndim, int(fields["flags"])
    lengths = (*(fields["lengths"][:rank].astype(int)[::-1] + 1).tolist(),)
    strides = (*(fields["pitches"][: rank - 1].astype(int)[::-1] * 16).tolist(), array.itemsize)
    views = [array.transpose(axes) for axes in permutations(range(rank))]
    views = [view for view in views if (view.shape, view.strides) == (lengths, strides)]
    if not views or fields["steps"].any() or flags & ~_KNOWN_FLAGS != _VERSION:
        raise LaunchError(
            f"cuTile made a tensor map of {lengths} with strides of {strides} bytes and flags {flags:#x}, of an array "
            f'of {array.shape}; ptxcount does not know this form; pass arch="sm_80", which has no tensor maps'
        )
    box = (*(fields["box"][:rank].astype(int)[::-1] + 1),)
    swizzle = [*SWIZZLES][flags >> 13 & 3]
    return TensorMap(views[0], box, swizzle)
