"""A kernel: its arguments in the entry point's order, its geometry, and what a launch of it must write."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError
from kernelwatch.kernel import earlier_forms, expressions, geometry
from kernelwatch.kernel.arguments import Array, ArrayArgument, ScalarArgument, Shape, dtype_of, integer
from kernelwatch.kernel.compile import Code
from kernelwatch.kernel.geometry import Geometry, Length, Side, of_itemsize
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, ScalarParameter, declared
from kernelwatch.kernel.sources import Made
from ptxcount.util.architectures import MAX_GRID

#: What functions that make a grid may ask for beside extents: as `geometry.Grid` takes it.
_OF_GRID = ("kernel", "sides", "multiprocessors")

#: What `useful_bytes` may ask for beside extents: the bytes of an element of the swept dtype.
_ITEMSIZE = "itemsize"


class Kernel(Code):
    """A kernel of a project that is watched.

    Parameters
    ----------
    name : str
        What it is called.
    arguments : sequence
        What the entry point takes, in its order: `inputs`, `outputs`, `in_and_out`, `scalar`; a text is a scalar.
    block : int, str, sequence, mapping or callable
        Threads a block, x first: numbers, expressions, or a function of extents. This, `tile` and `dynamic_shared` may
        map the bytes of an element of the swept dtype to a value.
    over : sequence of str
        The lengths that the grid covers along x, y and z, a block each `tile` of them.
    tile : sequence or mapping, optional
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
        Options of nvcc; {T} as above, whose header is included, and {bits}, a built-in type of the same size. `-I` and
        `-include` may name folders and files of the repository.
    dtypes : sequence of str
        The swept dtypes that it is for; all if not given.
    prelude : str
        CUDA C++ that is compiled before the source: what a header needs that does not stand alone; {T} as above.
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
        The bytes that must be moved, also by `itemsize`, which the swept dtype has; every array once if not given.
    flops : str, int or callable
        The floating-point operations that must be done.
    read : sequence of str
        Integers that the source names by `#define`, `constexpr` or `const`: all lengths and functions may use them.
    where : str
        A text that the source holds at the commits that this is said of.
    earlier : sequence of mapping
        What was otherwise at earlier commits, newest first: arguments of this class, in place of those of the form
        before. A commit has the first form whose source has `where`, `read`, and the entry point with such arguments.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[Parameter | str],
        block: Any,
        *,
        over: Sequence[str] = (),
        tile: Sequence[Length] | Mapping[int, Sequence[Length]] | None = None,
        grid: Sequence[Length] | Callable[..., Sequence[int]] | None = None,
        file: str = "",
        text: Made = "",
        ptx: Made = "",
        entry: str = "",
        options: Sequence[str] = (),
        dtypes: Sequence[str] = (),
        include: Sequence[str] = (),
        prelude: str = "",
        dynamic_shared: Length | Mapping[int, int] = 0,
        constants: Mapping[str, Any] | None = None,
        reference: Callable[..., Any] | Kernel | None = None,
        useful_bytes: Length | None = None,
        flops: Length = 0,
        read: Sequence[str] = (),
        where: str = "",
        earlier: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        said = {name: value for name, value in locals().items() if name not in ("self", "earlier", "__class__")}
        if sum(map(bool, (file, text, ptx))) != 1:
            raise ArgumentError(f"{name}: give one of file, text and ptx")
        self.name, self.file, self.entry, self.dtypes = name, file, entry or name, tuple(dtypes)
        self._text, self._ptx, self._prelude = text, ptx, prelude
        self._options, self._include = tuple(options), tuple(include)
        if not over and grid is None:
            raise ArgumentError(f"{name}: give the grid, or what it is over")
        self.reference = reference
        self.declared = declared(arguments)
        # A number may stand at several places, as the length of a square matrix does.
        names = [*{each: each for each in arguments if isinstance(each, str)}]
        names += [each.name for each in arguments if not isinstance(each, str)]
        if len(set(names)) < len(names):
            raise ArgumentError(f"{name}: two arguments have the same name; given: {', '.join(names)}")
        self.over, self.read, self.where, self.constants = tuple(over), tuple(read), where, dict(constants or {})
        self.block, self.tile, self.grid = block, tile, grid
        self.dynamic_shared: Any = dynamic_shared
        self._useful, self._flops = useful_bytes, flops
        if not self._outputs:
            raise ArgumentError(f"{name}: it has no output; declare what it writes with outputs or in_and_out")
        self.earlier: list[Kernel] = []
        for change in earlier:
            said |= {"where": "", **change}
            one = Kernel(**said)
            if more := set(one.parameters) - set(self.parameters):
                raise ArgumentError(f"{name}: earlier it takes {', '.join(more)}, which no launch gives; give a value")
            one.given = self.given
            self.earlier.append(one)

    @property
    def _outputs(self) -> list[str]:
        return [each.name for each in self.declared if isinstance(each, ArrayParameter) and each.direction != "in"]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of what a launch gives, in the order in which the arguments name them."""
        found = [name for each in self.declared for name in each.extents()]
        for one in self._lengths():
            found += expressions.names(one) if isinstance(one, str) else []
            found += expressions.asked(one) if callable(one) else []
        return tuple(name for name in dict.fromkeys(found) if name not in (*_OF_GRID, _ITEMSIZE, *self.read))

    @cached_property
    def given(self) -> tuple[str, ...]:
        """Names of what a launch gives; of an earlier form those of the newest, of which it may need fewer."""
        return self.parameters

    @property
    def form(self) -> Kernel:
        """It, or its first earlier form, as the commit that is measured has it."""
        return earlier_forms.form(self) if self.earlier else self

    def _lengths(self) -> Iterator[Any]:
        """Yield what may depend on extents: texts, numbers and functions."""
        for one in (self.over, self.block, self.tile, self.grid, self.dynamic_shared, self._useful, self._flops):
            for each in one.values() if isinstance(one, Mapping) else [one]:
                yield from each if isinstance(each, list | tuple) else [each]

    def fixed(self, dtype: DTypeLike) -> tuple[int, int] | None:
        """Return a block's threads and its bytes of dynamic shared memory; None where they depend on extents."""
        block, shared = (of_itemsize(each, dtype_of(dtype).itemsize) for each in (self.block, self.dynamic_shared))
        named = self._named()
        try:
            return math.prod(geometry.three(block, named)), geometry.length(shared, named)
        except (NameError, TypeError):  # extents are asked for
            return None

    def functions(self) -> list[Callable[..., Any]]:
        """Return the user's functions that a number depends on: of references, values and constants."""
        held = [each.values for each in self.declared if isinstance(each, ArrayParameter)]
        return [each for each in (self.reference, *held, *self.constants.values()) if callable(each)]

    def checked(self, extents: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a launch gives as Python's own numbers, which no arithmetic overflows.

        Raises ArgumentError if a name is missing or unknown, or an integer is too small.
        """
        if set(extents) != set(self.given):
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.given)}; given: {', '.join(sorted(extents)) or 'nothing'}"
            )
        found = {name: each.item() if isinstance(each, np.generic) else each for name, each in extents.items()}
        for each in self.declared:
            if isinstance(each, ScalarParameter) and each.least is not None and each.name in found:
                found[each.name] = integer(self.name, each.name, found[each.name], each.least)
        return found | self._named()

    def _named(self) -> dict[str, int]:
        """Return the integers that its source names."""
        text = self.at_commit(DTYPE, "sm_90").whole() if self.read else ""
        return {name: earlier_forms.constant(name, text) for name in self.read}

    def bound(self, dtype: DTypeLike, /, **extents: Any) -> list[ArrayArgument | ScalarArgument]:
        """Return a launch's arguments in the entry point's order. Raises as `checked`, and where a length is none."""
        extents = self.checked(extents)
        found: list[ArrayArgument | ScalarArgument] = []
        ordinal = 0
        for each in self.declared:
            one = each.of(dtype, extents) if isinstance(each, ArrayParameter) else each.of({**extents, "dtype": dtype})
            if isinstance(one, ArrayArgument) and one.direction != "out":
                one, ordinal = replace(one, ordinal=ordinal), ordinal + 1
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
        threads = geometry.three(block, extents)
        tiles = threads if tile is None else geometry.lengths(tile, extents)
        sides = [
            Side(text, expressions.value(text, extents), each) for text, each in zip(self.over, tiles, strict=False)
        ]
        known = dict(zip(_OF_GRID, (self.name, sides, multiprocessors), strict=True))
        grid = geometry.three(self.grid or [side.tiles for side in sides], {**extents, **known})
        if not all(1 <= blocks <= most for blocks, most in zip(grid, MAX_GRID, strict=True)):
            raise ArgumentError(f"{self.name}: a grid of {grid} blocks; from 1 to {MAX_GRID} are allowed")
        return Geometry(grid, threads, geometry.length(of_itemsize(self.dynamic_shared, itemsize), extents))

    def useful_bytes(self, dtype: DTypeLike, /, **extents: Any) -> int:
        """Return the bytes that must be moved: every array once, in-and-outs twice, unless it says otherwise."""
        if self._useful is not None:
            return geometry.length(self._useful, {**self.checked(extents), _ITEMSIZE: dtype_of(dtype).itemsize})
        arrays = [each for each in self.bound(dtype, **extents) if isinstance(each, ArrayArgument)]
        return sum(each.nbytes * (2 if each.direction == "in and out" else 1) for each in arrays)

    def flops(self, **extents: Any) -> int:
        """Return the floating-point operations that must be done; 0 where nothing says how many."""
        return geometry.length(self._flops, self.checked(extents))

    def expected(
        self, arrays: Mapping[str, Array], extents: Mapping[str, Any], *, is_near: bool = False
    ) -> list[Array]:
        """Return what the reference, a function, says of each output, in their order.

        Where an output need only be near, it is given floats as float64, and what it returns is meant so. Raises
        ArgumentError if it fails, or returns another number of arrays, or one of another shape.
        """
        if is_near:
            arrays = {name: each.astype(np.float64) if _is_float(each.dtype) else each for name, each in arrays.items()}
        try:
            assert callable(self.reference), "there is a reference, and it is no kernel"
            found = expressions.called(self.reference, {**self.checked(extents), **arrays})
        except (ArgumentError, MemoryError):
            raise
        except Exception as error:  # whatever a user's function raises
            raise ArgumentError(f"{self.name}: its reference raises {type(error).__name__}: {error}") from error
        several = [np.asarray(each) for each in (found if isinstance(found, tuple) else [found])]
        if len(several) != len(self._outputs):
            names = ", ".join(self._outputs)
            raise ArgumentError(f"{self.name}: its reference returns {len(several)} arrays; the outputs are {names}")
        for name, one in zip(self._outputs, several, strict=True):
            if one.shape != arrays[name].shape:
                said = f"the shape {one.shape}, which has {arrays[name].shape}"
                raise ArgumentError(f"{self.name}: its reference gives {name} {said}")
        return several


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"
