"""What a kernel is given: the bytes of its arguments, and in memory the arrays that these point to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..lanes.warps import Array
from ..util.errors import LaunchError
from .global_memory import ArrayMemory


@dataclass(frozen=True, eq=False)
class Described:
    """An array that a kernel gets with a description of it: as a handle, or as bytes that only the chip reads."""

    array: Array

    #: Bytes of the argument.
    size = 8

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.array.nbytes


class Bound(NamedTuple):
    """What a handle stands for, and where its array begins."""

    what: Described
    base: int


Argument = Array | np.generic
#: Also textures and the like, structs by their members, and what a pointer points to.
Given = Argument | Described | Mapping[str, Any] | list[Any] | None
#: The only key of a mapping that stands for a pointer.
POINTER = "*"
#: The first handle of a texture or the like: no address.
FIRST_HANDLE = 1 << 53
_ADDRESS = np.dtype("u8")


def nbytes(given: Given) -> int:
    """The bytes of all arrays and scalars in it."""
    if given is None:
        return 0
    if isinstance(given, Mapping):
        return sum(map(nbytes, given.values()))
    return sum(map(nbytes, given)) if isinstance(given, list) else given.nbytes


class Layout:
    """Puts arrays into memory, each once, and handles into ``bound``, and says what a kernel gets for them."""

    def __init__(self, memory: ArrayMemory, bound: dict[int, Bound]) -> None:
        self._memory, self._bound = memory, bound
        self._mapped: dict[tuple[int, int, bool], int] = {}

    def content(self, given: Given, name: str) -> bytes:
        """The bytes of an argument or a variable.

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
        dtype, value = self._laid_out({POINTER: given} if isinstance(given, list) else given, name)
        return _encoded(dtype, value)

    def _laid_out(self, given: Given, name: str) -> tuple[np.dtype[Any], Any]:
        """The type of its bytes, and what NumPy makes them from."""
        if given is None:
            return _ADDRESS, 0
        if isinstance(given, Mapping) and {*given} == {POINTER}:
            behind = given[POINTER]
            if not isinstance(behind, np.ndarray):
                content = _encoded(*self._laid_out(behind, f"*{name}"))
                behind = np.frombuffer(bytearray(content), np.uint8)
            return _ADDRESS, self._address(behind, name)
        if isinstance(given, Mapping) and given:
            parts = {key: self._laid_out(each, f"{name}.{key}") for key, each in given.items()}
            dtype = np.dtype([(key, kind) for key, (kind, _) in parts.items()], align=True)
            return dtype, tuple(value for _, value in parts.values())
        if isinstance(given, list) and given:
            items = [self._laid_out(each, f"{name}[{place}]") for place, each in enumerate(given)]
            if len({kind for kind, _ in items}) > 1:
                raise LaunchError(f"{name}: the elements of a list have one type")
            return np.dtype((items[0][0], (len(items),))), [value for _, value in items]
        if isinstance(given, Described):
            if not given.array.flags.c_contiguous:
                raise LaunchError(f"{name}: the array of a {type(given).__name__} must be C-contiguous")
            handle = FIRST_HANDLE + len(self._bound)
            self._bound[handle] = Bound(given, self._address(given.array, name))
            return np.dtype((np.void, given.size)), np.void(handle.to_bytes(given.size, "little"))
        if isinstance(given, np.ndarray):
            return _ADDRESS, self._address(given, name)
        if isinstance(given, np.generic):
            return given.dtype, given
        raise LaunchError(f"{name}: an array or a NumPy scalar, not {type(given).__name__}")

    def _address(self, array: Array, name: str) -> int:
        """Where an array lies: within the one around it, if that lies in memory in one piece, in whatever order."""
        around = array
        while isinstance(around.base, np.ndarray):
            around = around.base
        writable = array.flags.writeable
        if not (around.flags.forc and around.flags.writeable >= writable):
            around = array
        if not around.flags.forc:
            raise LaunchError(f"{name}: the array has gaps, and what lies there is not known; copy it")
        key = (around.ctypes.data, around.nbytes, writable)
        if key not in self._mapped:
            whole = around.reshape(-1, order="A").view()
            if not writable:
                whole.flags.writeable = False
            self._mapped[key] = self._memory.add(
                whole, name if around.nbytes == array.nbytes else f"the array around {name}"
            )
        return self._mapped[key] + array.ctypes.data - around.ctypes.data


def _encoded(dtype: np.dtype[Any], value: Any) -> bytes:
    made = np.zeros((), dtype)
    made[()] = value
    return made.tobytes()
