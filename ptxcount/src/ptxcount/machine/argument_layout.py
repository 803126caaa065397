"""Arguments of a kernel: their bytes, and in memory the arrays that these point to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..lanes.warps import Array
from ..util.errors import LaunchError
from .global_memory import ArrayMemory


@dataclass(frozen=True, eq=False)
class ArrayDescriptor:
    """Array that a kernel gets with a description: as a handle, or as bytes that only the chip reads."""

    array: Array

    #: Bytes of the argument.
    size = 8
    #: True if the array may have strides of its own.
    strided = False

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.array.nbytes


class BoundDescriptor(NamedTuple):
    """Descriptor behind a handle, and the address of its array."""

    descriptor: ArrayDescriptor
    base: int


Argument = Array | np.generic
#: Also textures and the like, structs by their members, and what a pointer points to.
KernelArgument = Argument | ArrayDescriptor | Mapping[str, Any] | list[Any] | None
#: The only key of a mapping that stands for a pointer.
POINTER = "*"
#: The first handle of a texture or the like: no address.
FIRST_HANDLE = 1 << 53
_ADDRESS = np.dtype("u8")


def total_bytes(argument: KernelArgument) -> int:
    """Sum the bytes of all arrays and scalars in an argument."""
    if argument is None:
        return 0
    if isinstance(argument, Mapping):
        return sum(map(total_bytes, argument.values()))
    return sum(map(total_bytes, argument)) if isinstance(argument, list) else argument.nbytes


class ArgumentLayout:
    """Layout of arguments: places each array once in memory, and makes handles of descriptors."""

    def __init__(self, memory: ArrayMemory, descriptors: dict[int, BoundDescriptor]) -> None:
        self._memory, self._descriptors = memory, descriptors
        self._addresses: dict[tuple[int, int, bool], int] = {}

    def encode_argument(self, argument: KernelArgument, name: str) -> bytes:
        """Encode an argument or a variable as bytes.

        ==================  ========================================================================
        an array            its address, as it lies in memory: ``a.T`` where ``a`` does, ``a[1:]`` behind ``a[0]``
        a scalar            its bytes
        a texture, ...      its handle
        a mapping           a struct with these members, laid out as in C++
        a list in one       an array of such elements in the struct
        ``{"*": given}``    the address of memory that holds ``given``
        a list              the same of all its elements
        None                the null pointer
        ==================  ========================================================================

        Raises `LaunchError`, which calls it by its name, for anything else.
        """
        dtype, value = self._lay_out({POINTER: argument} if isinstance(argument, list) else argument, name)
        return _encode_value(dtype, value)

    def _lay_out(self, argument: KernelArgument, name: str) -> tuple[np.dtype[Any], Any]:
        """Return the dtype of an argument's bytes, and the value that NumPy makes them from."""
        if argument is None:
            return _ADDRESS, 0
        if isinstance(argument, Mapping) and {*argument} == {POINTER}:
            pointee = argument[POINTER]
            if not isinstance(pointee, np.ndarray):
                content = _encode_value(*self._lay_out(pointee, f"*{name}"))
                pointee = np.frombuffer(bytearray(content), np.uint8)
            return _ADDRESS, self._place_array(pointee, name)
        if isinstance(argument, Mapping) and argument:
            parts = {key: self._lay_out(member, f"{name}.{key}") for key, member in argument.items()}
            dtype = np.dtype([(key, kind) for key, (kind, _) in parts.items()], align=True)
            return dtype, tuple(value for _, value in parts.values())
        if isinstance(argument, list) and argument:
            elements = [self._lay_out(element, f"{name}[{place}]") for place, element in enumerate(argument)]
            if len({element_type for element_type, _ in elements}) > 1:
                raise LaunchError(f"{name}: the elements of a list have one type")
            return np.dtype((elements[0][0], (len(elements),))), [value for _, value in elements]
        if isinstance(argument, ArrayDescriptor):
            if not (argument.strided or argument.array.flags.c_contiguous):
                raise LaunchError(f"{name}: the array of a {type(argument).__name__} must be C-contiguous")
            handle = FIRST_HANDLE + len(self._descriptors)
            self._descriptors[handle] = BoundDescriptor(argument, self._place_array(argument.array, name))
            return np.dtype((np.void, argument.size)), np.void(handle.to_bytes(argument.size, "little"))
        if isinstance(argument, np.ndarray):
            return _ADDRESS, self._place_array(argument, name)
        if isinstance(argument, np.generic):
            return argument.dtype, argument
        raise LaunchError(f"{name}: an array or a NumPy scalar, not {type(argument).__name__}")

    def _place_array(self, array: Array, name: str) -> int:
        """Return the address of an array: within the one around it, if that lies in memory in one piece."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        writable = array.flags.writeable
        if not (owner.flags.forc and owner.flags.writeable >= writable):
            owner = array
        if not owner.flags.forc:
            raise LaunchError(f"{name}: the array has gaps, and what lies there is not known; copy it")
        key = (owner.ctypes.data, owner.nbytes, writable)
        if key not in self._addresses:
            contents = owner.reshape(-1, order="A").view()
            if not writable:
                contents.flags.writeable = False
            self._addresses[key] = self._memory.add(
                contents, name if owner.nbytes == array.nbytes else f"the array around {name}"
            )
        return self._addresses[key] + array.ctypes.data - owner.ctypes.data


def _encode_value(dtype: np.dtype[Any], value: Any) -> bytes:
    encoded = np.zeros((), dtype)
    encoded[()] = value
    return encoded.tobytes()
