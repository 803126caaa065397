"""A kernel: its arguments in the entry point's order, several outputs, any dtypes, from any source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError, UnknownDtypeError
from kernelwatch.kernel import dtypes, expressions, geometry, sources
from kernelwatch.kernel.arguments import (
    Array,
    ArrayArgument,
    ArrayParameter,
    Direction,
    Parameter,
    ScalarArgument,
    ScalarParameter,
    Shape,
    Taken,
    declared,
    dtype_of,
    integer,
)
from kernelwatch.kernel.geometry import Geometry, Side, of_itemsize
from kernelwatch.kernel.launch import DTYPE, FLAGS, words
from kernelwatch.kernel.sources import Made, Module, Source
from kernelwatch.toolchain import build
from kernelwatch.toolchain.build import Cubin

#: Where a grid, shared memory or blocks depend on extents: an expression, a number, or a function of extents.
Length = str | int | Callable[..., int]

#: What functions that make a grid may ask for beside extents: as `geometry.Grid` takes it.
_OF_GRID = ("kernel", "sides", "multiprocessors")


class Kernel:
    """A kernel of a project that is watched.

    Parameters
    ----------
    name : str
        What it is called.
    arguments : sequence
        What the entry point takes, in its order: `inputs`, `outputs`, `in_and_out`, `scalar`; a text is a scalar.
    block : int, sequence of int, mapping or callable
        Threads a block, x first; a function of extents. This, `tile` and `dynamic_shared` may map the bytes of an
        element of the swept dtype to a value.
    over : sequence of str
        The lengths that the grid covers along x, y and z, a block each `tile` of them.
    tile : sequence of int or mapping, optional
        Elements that a block covers along each; as many as it has threads if not given.
    grid : sequence or callable, optional
        Blocks along x, y and z instead: numbers, expressions over extents, or a function of extents or of tiles, as
        those of `kernelwatch.kernel.geometry`.
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
    dynamic_shared : int, str, mapping or callable
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
        block: int | Sequence[int] | Mapping[int, Sequence[int]] | Callable[..., Sequence[int]],
        *,
        over: Sequence[str] = (),
        tile: Sequence[int] | Mapping[int, Sequence[int]] | None = None,
        grid: Sequence[Length] | Callable[..., Sequence[int]] | None = None,
        file: str = "",
        text: Made = "",
        ptx: Made = "",
        entry: str = "",
        options: Sequence[str] = (),
        include: Sequence[str] = (),
        dynamic_shared: Length | Mapping[int, int] = 0,
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
        self.declared = declared(arguments)
        names = [each.name for each in self.declared]
        if len(set(names)) < len(names):
            raise ArgumentError(f"{name}: two arguments have the same name; given: {', '.join(names)}")
        self.over, self.grid = tuple(over), grid
        self.block: Any = block
        self.tile: Any = tile
        self.dynamic_shared: Any = dynamic_shared
        self._options, self._include, self._useful = tuple(options), tuple(include), useful_bytes
        if not self._outputs:
            raise ArgumentError(f"{name}: it has no output; declare what it writes with outputs or in_and_out")

    @property
    def _outputs(self) -> list[str]:
        return [each.name for each in self.declared if isinstance(each, ArrayParameter) and each.is_written]

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

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of what a launch gives, in the order in which the arguments name them."""
        found = [name for each in self.declared for name in each.extents()]
        for one in (*self.over, self.dynamic_shared, self._useful, *(() if callable(self.grid) else self.grid or ())):
            found += expressions.names(one) if isinstance(one, str) else []
        for function in (self.grid, self.block, self.dynamic_shared, self._useful):
            found += expressions.asked(function) if callable(function) else []
        return tuple(name for name in dict.fromkeys(found) if name not in _OF_GRID)

    def options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return the kernel's own options of nvcc. Raises UnknownDtypeError where the dtype has no C++ type."""
        return tuple(_filled(each, dtype) for each in self._options)

    def fixed(self, dtype: DTypeLike) -> tuple[int, int] | None:
        """Return a block's threads and its bytes of dynamic shared memory; None where they depend on extents."""
        itemsize = dtype_of(dtype).itemsize
        block, shared = of_itemsize(self.block, itemsize), of_itemsize(self.dynamic_shared, itemsize)
        if callable(block) or not isinstance(shared, int):
            return None
        x, y, z = _three(block)
        return x * y * z, shared

    def functions(self) -> list[Callable[..., Any]]:
        """Return the user's functions that a number depends on: of references, values and constants."""
        held = [each.values for each in self.declared if isinstance(each, ArrayParameter)]
        return [each for each in (self.says, *held, *self.constants.values()) if callable(each)]

    def element(self, dtype: DTypeLike) -> str:
        """Return the name of the swept dtype. Raises UnknownDtypeError if there is none such."""
        return dtype_of(dtype).name

    def checked(self, extents: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a launch gives as Python's own numbers, which no arithmetic overflows.

        Raises
        ------
        ArgumentError
            A name is missing or unknown, or an integer is too small.
        """
        if set(extents) != set(self.parameters):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.parameters)}; given: {', '.join(sorted(extents)) or 'nothing'}"
            )
        found = {name: each.item() if isinstance(each, np.generic) else each for name, each in extents.items()}
        for each in self.declared:
            if isinstance(each, ScalarParameter) and each.least is not None:
                found[each.name] = integer(self.name, each.name, found[each.name], each.least)
        return found

    def bound(self, dtype: DTypeLike, /, **extents: Any) -> list[ArrayArgument | ScalarArgument]:
        """Return a launch's arguments in the entry point's order. Raises as `checked`, and where a length is none."""
        extents = self.checked(extents)
        found: list[ArrayArgument | ScalarArgument] = []
        place = 0
        for each in self.declared:
            one = each.of(dtype, extents) if isinstance(each, ArrayParameter) else each.of({**extents, "dtype": dtype})
            if isinstance(one, ArrayArgument) and one.direction is not Direction.OUT:
                one, place = replace(one, place=place), place + 1
            found.append(one)
        return found

    def arrays(self, dtype: DTypeLike = DTYPE, /, **extents: Any) -> tuple[Shape, ...]:
        """Return the shapes of the arrays in the entry point's order. Raises as `bound`."""
        return tuple(each.shape for each in self.bound(dtype, **extents) if isinstance(each, ArrayArgument))

    def geometry(
        self, dtype: DTypeLike = DTYPE, multiprocessors: int = geometry.MULTIPROCESSORS, /, **extents: Any
    ) -> Geometry:
        """Return the launch geometry. Raises ArgumentError where a grid is too large, or a name is missing."""
        extents, itemsize = self.checked(extents), dtype_of(dtype).itemsize
        block, tile = of_itemsize(self.block, itemsize), of_itemsize(self.tile, itemsize)
        threads = _three(expressions.called(block, extents) if callable(block) else block)
        given = zip(self.over, threads if tile is None else tile, strict=False)
        sides = [Side(text, expressions.value(text, extents), each) for text, each in given]
        if callable(self.grid):
            known = dict(zip(_OF_GRID, (self.name, sides, multiprocessors), strict=True))
            blocks = expressions.called(self.grid, {**extents, **known})
        else:
            blocks = self.grid or [side.tiles for side in sides]
        grid = _three([_length(each, extents) for each in blocks])
        if not all(1 <= blocks <= most for blocks, most in zip(grid, geometry.MAX_GRID, strict=True)):
            raise ArgumentError(f"{self.name}: a grid of {grid} blocks; from 1 to {geometry.MAX_GRID} are allowed")
        return Geometry(grid, threads, _length(of_itemsize(self.dynamic_shared, itemsize), extents))

    def useful_bytes(self, dtype: DTypeLike, /, **extents: Any) -> int:
        """Return the bytes that must be moved: every array once, in-and-outs twice, unless it says otherwise."""
        if self._useful is not None:
            return _length(self._useful, self.checked(extents))
        arrays = [each for each in self.bound(dtype, **extents) if isinstance(each, ArrayArgument)]
        return sum(each.nbytes * (2 if each.direction.value == "in and out" else 1) for each in arrays)

    def flops(self, **extents: Any) -> int:
        """Return 0: nothing says how many there are."""
        return 0

    def at_commit(self, dtype: DTypeLike, arch: str) -> Source:
        """Return its source at the commit that is measured. Raises UnknownKernelError where that has none."""
        if self.file:
            return sources.of_file(self.file, self._include)
        text = sources.made(self._text or self._ptx, {"dtype": dtype_of(dtype).name, "arch": arch})
        folders = tuple(sources.checkout() / each for each in self._include)
        return Source(text, folders, is_ptx=not self._text)

    def source_text(self) -> str:
        """Return the text of its source, for float32."""
        return self.at_commit(DTYPE, "sm_90").text

    def module(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str, lines: bool = False) -> Module:
        """Compile it to PTX, and find its entry point. Errors as `sources.module`."""
        options = (*words(flags), *self.options(dtype), *(["-lineinfo"] if lines else []))
        known = self.at_commit(dtype, arch)
        return sources.module(known, _filled(self.entry, dtype), tuple(build.without_ptxas(options)), arch)

    def ptx(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> str:
        """Return its PTX with source lines. Errors as `module`."""
        return self.module(dtype, flags, arch=arch, lines=True).ptx

    def cubin(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> Cubin:
        """Compile it to machine code.

        Parameters
        ----------
        dtype : dtype
            The swept one.
        flags : str
            nvcc's flags, as typed.
        arch : str
            For example "sm_90".

        Raises
        ------
        UnknownDtypeError, UnknownFlagsError, UnknownKernelError
            It does not have the dtype, the flags are no words, or its source has no such entry point.
        NvccNotFoundError, CompileError
            As `build.ptx`.
        """
        module = self.module(dtype, flags, arch=arch)
        return build.cubin(module.ptx, module.entry, words(flags), arch=arch, name=self.place.name)

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
        try:
            found = self.said(arrays, self.checked(extents))
        except (ArgumentError, MemoryError):
            raise
        except Exception as error:  # whatever a user's function raises
            raise ArgumentError(f"{self.name}: its reference raises {type(error).__name__}: {error}") from error
        several = list(found) if isinstance(found, tuple) else [found]
        if len(several) != len(self._outputs):
            names = ", ".join(self._outputs)
            raise ArgumentError(f"{self.name}: its reference returns {len(several)} arrays; the outputs are {names}")
        for name, one in zip(self._outputs, several, strict=True):
            if one is not None and np.shape(one) != arrays[name].shape:
                said = f"the shape {np.shape(one)}, which has {arrays[name].shape}"
                raise ArgumentError(f"{self.name}: its reference gives {name} {said}")
        return several

    def said(self, arrays: Mapping[str, Array], extents: Mapping[str, Any]) -> Any:
        """Return what the reference, a function, returns."""
        assert callable(self.says), "there is a reference, and it is no kernel"
        return expressions.called(self.says, {**extents, **arrays})


def _three(given: int | Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*map(int, [given] if isinstance(given, int) else given), 1, 1, 1)[:3]
    return x, y, z


def _length(given: Length, extents: Mapping[str, Any]) -> int:
    if callable(given):
        return int(expressions.called(given, extents))
    return int(expressions.value(given, extents) if isinstance(given, str) else given)


def _filled(text: str, dtype: DTypeLike) -> str:
    if "{T}" not in text:
        return text
    name = dtype_of(dtype).name
    known = dtypes.CPP.get(name)
    if known is None:
        raise UnknownDtypeError(f"{text!r}: the swept dtype {name} has no C++ type; write it out")
    return text.replace("{T}", known)
