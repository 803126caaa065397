"""A kernel of anybody's: its arguments in the entry point's order, several outputs, any dtypes, from any source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError, UnknownDtypeError
from kernelwatch.kernel import dtypes, expressions, geometry, parameters, sources
from kernelwatch.kernel.geometry import Geometry, Side
from kernelwatch.kernel.launch import FLAGS, words
from kernelwatch.kernel.operation import Array, Shape
from kernelwatch.kernel.parameters import ArrayArgument, ArrayParameter, Parameter, ScalarArgument, Taken
from kernelwatch.kernel.sources import Made, Module, Source
from kernelwatch.toolchain.build import Cubin

#: Where a grid, shared memory or blocks depend on extents: an expression, a number, or a function of extents.
Length = str | int | Callable[..., int]


class Kernel:
    """A kernel of a project that is watched.

    Parameters
    ----------
    name : str
        What it is called.
    arguments : sequence
        What the entry point takes, in its order: `inputs`, `outputs`, `in_and_out`, `scalar`; a text is a scalar.
    block : int, sequence of int or callable
        Threads a block, x first; a function of extents.
    over : sequence of str
        The lengths that the grid covers along x, y and z, a block each `tile` of them.
    tile : sequence of int, optional
        Elements that a block covers along each; as many as it has threads if not given.
    grid : sequence or callable, optional
        Blocks along x, y and z instead: numbers, expressions over extents, or a function of extents.
    file : str
        The file of CUDA C++ or PTX: in the installed package, "imaging/blur.cu", or a path in the repository.
    text, ptx : str or callable
        What the package makes instead: CUDA C++ or PTX, "imaging.kernels:BLUR" or a function; a function may take
        `dtype` and `arch`.
    entry : str
        The entry point in C++, such as "imaging::blur<{T}, 4>"; {T} stands for the swept dtype's C++ type. Its name if
        not given.
    options : sequence of str
        Options of nvcc; {T} as above.
    include : sequence of str
        Folders of the repository or of the package that are searched for includes.
    dynamic_shared : int, str or callable
        Bytes of dynamic shared memory.
    constants : mapping of str to array or callable
        `__constant__` and `__device__` variables by name -> what a host sets them to.
    reference : callable or Kernel, optional
        What outputs must hold: a function takes what it names of arrays and extents, and returns one array or a tuple
        in the order of the outputs. Another kernel must take the same arguments. Without one, numbers are marked "not
        verified".
    useful_bytes : str, int or callable, optional
        The bytes that must be moved; every array once if not given.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[Parameter | str],
        block: int | Sequence[int] | Callable[..., Sequence[int]],
        *,
        over: Sequence[str] = (),
        tile: Sequence[int] | None = None,
        grid: Sequence[Length] | Callable[..., Sequence[int]] | None = None,
        file: str = "",
        text: Made = "",
        ptx: Made = "",
        entry: str = "",
        options: Sequence[str] = (),
        include: Sequence[str] = (),
        dynamic_shared: Length = 0,
        constants: Mapping[str, Any] | None = None,
        reference: Callable[..., Any] | Kernel | None = None,
        useful_bytes: Length | None = None,
    ) -> None:
        if sum(map(bool, (file, text, ptx))) != 1:
            raise ArgumentError(f"{name}: give one of file, text and ptx")
        if not over and grid is None:
            raise ArgumentError(f"{name}: give the grid, or what it is over")
        self.name, self.entry = name, entry or name
        self.file, self.source = file, Path(file or f"{name}.cu")
        self.says = reference
        self.constants = dict(constants or {})
        self._text, self._ptx = text, ptx
        self._declared = parameters.declared(arguments)
        names = [each.name for each in self._declared]
        if len(set(names)) < len(names):
            raise ArgumentError(f"{name}: two arguments have the same name; given: {', '.join(names)}")
        self._block, self._over, self._tile, self._grid = block, tuple(over), tile, grid
        self._options, self._include = tuple(options), tuple(include)
        self._shared, self._useful = dynamic_shared, useful_bytes
        if not any(isinstance(each, ArrayParameter) and each.is_written for each in self._declared):
            raise ArgumentError(f"{name}: it has no output; declare what it writes with outputs or in_and_out")

    @property
    def is_verified(self) -> bool:
        """Whether anything says what the outputs must hold."""
        return self.says is not None

    @property
    def place(self) -> Path:
        """The file, or the file of the module, that its source comes from: in the package, or in the repository."""
        if self.file:
            return Path(self.file)
        made = self._text or self._ptx
        module = made.partition(":")[0] if isinstance(made, str) else made.__module__
        return Path(*module.split(".")).with_suffix(".py")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what a launch gives, in the order in which the arguments name them."""
        found = [name for each in self._declared for name in each.extents()]
        for one in (*self._over, self._shared, self._useful, *(() if callable(self._grid) else self._grid or ())):
            found += expressions.names(one) if isinstance(one, str) else []
        for function in (self._grid, self._block, self._shared, self._useful):
            found += expressions.asked(function) if callable(function) else []
        return tuple(dict.fromkeys(found))

    def options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return the kernel's own options of nvcc. Raises UnknownDtypeError where the dtype has no C++ type."""
        return tuple(_filled(each, {"{T}": _cuda(dtype)}) for each in self._options)

    def fixed(self) -> tuple[int, int] | None:
        """Return a block's threads and its bytes of dynamic shared memory; None where they depend on extents."""
        if callable(self._block) or not isinstance(self._shared, int):
            return None
        x, y, z = _three([self._block] if isinstance(self._block, int) else self._block)
        return x * y * z, self._shared

    def functions(self) -> list[Callable[..., Any]]:
        """Return the user's functions that a number depends on: of references, values and constants."""
        held = [each.values for each in self._declared if isinstance(each, ArrayParameter)]
        return [each for each in (self.says, *held, *self.constants.values()) if callable(each)]

    def element(self, dtype: DTypeLike) -> str:
        """Return the name of the swept dtype. Raises UnknownDtypeError if there is none such."""
        return parameters.dtype_of(dtype).name

    def bound(self, dtype: DTypeLike, /, **extents: Any) -> list[ArrayArgument | ScalarArgument]:
        """Return the arguments of a launch in the entry point's order.

        Raises
        ------
        ArgumentError
            A name is missing or unknown, or a length is none.
        """
        if set(extents) != set(self.parameters):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.parameters)}; given: {', '.join(sorted(extents)) or 'nothing'}"
            )
        found: list[ArrayArgument | ScalarArgument] = []
        for each in self._declared:
            known = {**extents, "dtype": dtype}
            one = each.of(dtype, extents) if isinstance(each, ArrayParameter) else each.of(known)
            found.append(replace(one, place=len(found)) if isinstance(one, ArrayArgument) else one)
        return found

    def arrays(self, dtype: DTypeLike = "float32", /, **extents: Any) -> tuple[Shape, ...]:
        """Return the shapes of the arrays in the entry point's order. Raises as `bound`."""
        return tuple(each.shape for each in self.bound(dtype, **extents) if isinstance(each, ArrayArgument))

    def geometry(
        self, dtype: DTypeLike | None = None, multiprocessors: int = geometry.MULTIPROCESSORS, /, **extents: Any
    ) -> Geometry:
        """Return the launch geometry. Raises ArgumentError where a grid is too large, or a name is missing."""
        block = expressions.called(self._block, extents) if callable(self._block) else self._block
        threads = _three([block] if isinstance(block, int) else block)
        if self._grid is None:
            tile = threads if self._tile is None else self._tile
            sides = [
                Side(text, expressions.value(text, extents), of) for text, of in zip(self._over, tile, strict=False)
            ]
            grid = _three([side.tiles for side in sides])
        else:
            given = expressions.called(self._grid, extents) if callable(self._grid) else self._grid
            grid = _three([_length(each, extents) for each in given])
        if not all(1 <= blocks <= most for blocks, most in zip(grid, geometry.MAX_GRID, strict=True)):
            raise ArgumentError(f"{self.name}: a grid of {grid} blocks; from 1 to {geometry.MAX_GRID} are allowed")
        return Geometry(grid, threads, _length(self._shared, extents))

    def useful_bytes(self, dtype: DTypeLike, /, **extents: Any) -> int:
        """Return the bytes that must be moved: every array once, in-and-outs twice, unless it says otherwise."""
        if self._useful is not None:
            return _length(self._useful, extents)
        arrays = [each for each in self.bound(dtype, **extents) if isinstance(each, ArrayArgument)]
        return sum(each.nbytes * (2 if each.direction.value == "in and out" else 1) for each in arrays)

    def flops(self, **extents: Any) -> int:
        """Return 0: nothing says how many there are."""
        return 0

    def at_commit(self, dtype: DTypeLike, arch: str) -> Source:
        """Return its source at the commit that is measured. Raises UnknownKernelError where that has none."""
        if self.file:
            return sources.of_file(self.file, self._include)
        known = {"dtype": parameters.dtype_of(dtype).name, "arch": arch}
        text = sources.made(self._text or self._ptx, known)
        folders = tuple(sources.checkout() / each for each in self._include)
        return Source(text, folders, is_ptx=not self._text)

    def source_text(self) -> str:
        """Return the text of its source, for float32."""
        return self.at_commit("float32", "sm_90").text

    def module(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str, lines: bool = False) -> Module:
        """Compile it to PTX, and find its entry point. Errors as `sources.module`."""
        known = self.at_commit(dtype, arch)
        entry = _filled(self.entry, {"{T}": _cuda(dtype)})
        return sources.module(known, entry, (*words(flags), *self.options(dtype)), arch, lines=lines)

    def taken(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> list[Taken]:
        """Return what the entry point takes. Errors as `module`."""
        return self.module(dtype, flags, arch=arch).parameters()

    def values_of_variables(self, extents: Mapping[str, Any]) -> dict[str, Array]:
        """Return what a host sets variables of the module to, by their names in the source."""
        return {
            name: np.asarray(expressions.called(each, extents) if callable(each) else each)
            for name, each in self.constants.items()
        }

    def variables(self, dtype: DTypeLike, flags: str = FLAGS, /, *, arch: str, **extents: Any) -> dict[str, bytes]:
        """Return the same as bytes, by their names in the machine code. Errors as `module`."""
        module = self.module(dtype, flags, arch=arch)
        values = self.values_of_variables(extents)
        return {module.variable(name): value.tobytes() for name, value in values.items()}

    def expected(self, arrays: Mapping[str, Array], extents: Mapping[str, Any]) -> list[Array | None]:
        """Return what the reference, a function, says of each output, in their order; None of what it leaves out.

        Raises
        ------
        ArgumentError
            It fails, or returns another number of arrays, or one of another shape.
        """
        assert callable(self.says), "there is a reference, and it is no kernel"
        try:
            found = expressions.called(self.says, {**extents, **arrays})
        except MemoryError:
            raise
        except Exception as error:  # whatever a user's function raises
            raise ArgumentError(f"{self.name}: its reference raises {type(error).__name__}: {error}") from error
        several = list(found) if isinstance(found, tuple) else [found]
        written = [each.name for each in self._declared if isinstance(each, ArrayParameter) and each.is_written]
        if len(several) != len(written):
            names = ", ".join(written)
            raise ArgumentError(f"{self.name}: its reference returns {len(several)} arrays; the outputs are {names}")
        for name, one in zip(written, several, strict=True):
            if one is not None and np.shape(one) != arrays[name].shape:
                said = f"the shape {np.shape(one)}, which has {arrays[name].shape}"
                raise ArgumentError(f"{self.name}: its reference gives {name} {said}")
        return several

    def ptx(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> str:
        """Return its PTX with source lines. Errors as `module`."""
        return self.module(dtype, flags, arch=arch, lines=True).ptx

    def cubin(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> Cubin:
        """Compile it to machine code. Errors as `module`."""
        return self.module(dtype, flags, arch=arch).cubin(words(flags), arch)


def _three(given: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*map(int, given), 1, 1, 1)[:3]
    return x, y, z


def _length(given: Length, extents: Mapping[str, Any]) -> int:
    if callable(given):
        return int(expressions.called(given, extents))
    return int(expressions.value(given, extents) if isinstance(given, str) else given)


def _cuda(dtype: DTypeLike) -> str:
    known = dtypes.DTYPES.get(parameters.dtype_of(dtype).name)
    return _MORE.get(parameters.dtype_of(dtype).name, "") if known is None else known.cuda


#: C++ names of dtypes that this suite does not sweep.
_MORE = {
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "complex64": "cuda::std::complex<float>",
}


def _filled(text: str, named: Mapping[str, str]) -> str:
    for name, value in named.items():
        if name in text and not value:
            raise UnknownDtypeError(f"{text!r}: the swept dtype has no C++ type; write it out")
        text = text.replace(name, value)
    return text
