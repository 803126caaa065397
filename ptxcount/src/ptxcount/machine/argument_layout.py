"""Arguments of a kernel: their bytes, and the arrays that they point to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..lanes.warps import Array
from ..util.errors import LaunchError
from .global_memory import ArrayMemory


@dataclass(frozen=True, eq=False)
class ArrayDescriptor:
    """Array behind a descriptor, such as a texture: the kernel's argument is a handle or opaque bytes."""

    array: Array

    #: Size of the argument in bytes.
    size = 8
    #: True if fetches read the array.
    is_texture = False

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return self.array.nbytes


class BoundDescriptor(NamedTuple):
    """A descriptor of a launch, and the address of its array."""

    descriptor: ArrayDescriptor
    base: int


Argument = Array | np.generic
#: Type of an argument (`ArgumentLayout.encode_argument`), or of a part of one.
KernelArgument = Argument | ArrayDescriptor | Mapping[str, Any] | list[Any] | None
#: The only key of a mapping that represents a pointer.
POINTER = "*"
#: The first handle of a descriptor; no address is as high.
FIRST_HANDLE = 1 << 53
_ADDRESS = np.dtype("u8")


def total_bytes(argument: KernelArgument) -> int:
    """Sum the bytes of all arrays and scalars in an argument; 0 for None."""
    if argument is None:
        return 0
    if isinstance(argument, Mapping):
        return sum(map(total_bytes, argument.values()))
    return sum(map(total_bytes, argument)) if isinstance(argument, list) else argument.nbytes


class ArgumentLayout:
    """Layout of arguments: places each array in memory, and assigns handles to descriptors.

    An array that is passed several times is placed once; twice if it is passed writable and read-only.
    """

    def __init__(self, memory: ArrayMemory, descriptors: dict[int, BoundDescriptor]) -> None:
        self._memory, self._descriptors = memory, descriptors
        self._addresses: dict[tuple[int, int, bool], int] = {}

    def encode_argument(self, argument: KernelArgument, name: str) -> bytes:
        """Encode an argument or a variable as bytes.

        ==================  ========================================================================
        an array            its address; a view such as ``a.T`` or ``a[1:]`` is within its base array ``a``
        a scalar            its bytes
        a texture, ...      its handle
        a mapping           a struct with these members, laid out as in C++
        a list in a struct  an array member with these elements
        ``{"*": value}``    the address of memory that holds the value
        a list              the address of memory that holds its elements
        None                the null pointer
        ==================  ========================================================================

        The base array must be contiguous, and writable if the view is. Otherwise a strided view raises `LaunchError`,
        and a contiguous view is treated as an array without a base. Other types, empty mappings, empty lists and lists
        of several types raise `LaunchError`, too. ``name`` is the argument's name in errors.
        """
        dtype, value = self._lay_out({POINTER: argument} if isinstance(argument, list) else argument, name)
        return _encode_value(dtype, value)

    def _lay_out(self, argument: KernelArgument, name: str) -> tuple[np.dtype[Any], Any]:
        """Return the dtype of an argument's bytes, and the value that `_encode_value` encodes."""
        if argument is None:
            return _ADDRESS, 0
        if isinstance(argument, np.ndarray):
            return _ADDRESS, self._place_array(argument, name)
        if isinstance(argument, np.generic):
            return argument.dtype, argument
        if isinstance(argument, ArrayDescriptor):
            handle = self._bind_descriptor(argument, name)
            return np.dtype((np.void, argument.size)), np.void(handle.to_bytes(argument.size, "little"))
        if isinstance(argument, Mapping) and {*argument} == {POINTER}:
            return _ADDRESS, self._place_pointee(argument[POINTER], name)
        if isinstance(argument, Mapping) and argument:
            return self._lay_out_members(argument, name)
        if isinstance(argument, list) and argument:
            return self._lay_out_elements(argument, name)
        problem = "is an empty" if isinstance(argument, list | Mapping) else "has the type"
        raise LaunchError(f"{name} {problem} {type(argument).__name__}; pass an array or a NumPy scalar")

    def _place_pointee(self, pointee: KernelArgument, name: str) -> int:
        if not isinstance(pointee, np.ndarray):
            content = _encode_value(*self._lay_out(pointee, f"*{name}"))
            pointee = np.frombuffer(bytearray(content), np.uint8)
        return self._place_array(pointee, name)

    def _lay_out_members(self, members: Mapping[str, KernelArgument], name: str) -> tuple[np.dtype[Any], Any]:
        parts = {key: self._lay_out(member, f"{name}.{key}") for key, member in members.items()}
        dtype = np.dtype([(key, kind) for key, (kind, _) in parts.items()], align=True)
        return dtype, tuple(value for _, value in parts.values())

    def _lay_out_elements(self, elements: list[KernelArgument], name: str) -> tuple[np.dtype[Any], Any]:
        parts = [self._lay_out(element, f"{name}[{place}]") for place, element in enumerate(elements)]
        types = {str(element_type) for element_type, _ in parts}
        if len(types) > 1:
            raise LaunchError(f"{name} is a list of {' and '.join(sorted(types))}; all elements must have one type")
        return np.dtype((parts[0][0], (len(parts),))), [value for _, value in parts]

    def _bind_descriptor(self, descriptor: ArrayDescriptor, name: str) -> int:
        handle = FIRST_HANDLE + len(self._descriptors)
        self._descriptors[handle] = BoundDescriptor(descriptor, self._place_array(descriptor.array, name))
        return handle

    def _place_array(self, array: Array, name: str) -> int:
        """Return the address of an array, if possible within its base array; add the array to memory once."""
        owner, writable = find_base(array), array.flags.writeable
        if not owner.flags.forc:
            needed = "contiguous writable array" if writable else "contiguous array"
            raise LaunchError(f"{name} is a strided array, but not a view of a {needed}; pass a copy")
        key = (owner.ctypes.data, owner.nbytes, writable)
        if key not in self._addresses:
            contents = owner.reshape(-1, order="A").view()
            if not writable:
                contents.flags.writeable = False
            owner_name = name if owner.nbytes == array.nbytes else f"the base array of {name}"
            self._addresses[key] = self._memory.add(contents, owner_name)
        return self._addresses[key] + array.ctypes.data - owner.ctypes.data


def find_base(array: Array) -> Array:
    """Return the array that memory holds for a view: its base array if possible, else the view itself.

    The base array must be contiguous, and writable if the view is.
    """
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return array if not base.flags.forc or (array.flags.writeable and not base.flags.writeable) else base


def _encode_value(dtype: np.dtype[Any], value: Any) -> bytes:
    encoded = np.zeros((), dtype)
    encoded[()] = value
    return encoded.tobytes()
