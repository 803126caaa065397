"""A kernel: its arguments in the entry point's order, its geometry, and its expected output."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import ArgumentError, UnknownArgumentError, UnknownDtypeError
from kernelwatch.kernel import earlier_forms, expressions, geometry
from kernelwatch.kernel.arguments import Array, ArrayArgument, ScalarArgument, check_integer, to_dtype, to_numbers
from kernelwatch.kernel.compile import KernelCode
from kernelwatch.kernel.declaration import check_settings
from kernelwatch.kernel.geometry import Geometry, LengthLike, select_by_itemsize
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.kernel.parameters import ArrayParameter, Parameter, ScalarParameter, to_parameters
from kernelwatch.kernel.references import call_reference
from kernelwatch.kernel.sources import TextSource
from ptxcount.util.architectures import MAX_GRID

#: Parameters of functions that compute a grid, in addition to extents; see `geometry.Grid`.
_GRID_NAMES = ("kernel", "sides", "multiprocessors")

#: Parameter of `useful_bytes`, in addition to extents: the bytes of an element of the swept dtype.
_ITEMSIZE = "itemsize"


class Kernel(KernelCode):
    """A kernel of a watched project.

    Parameters
    ----------
    name : str
        Name of the kernel.
    arguments : sequence
        The entry point's arguments, in its order: `inputs`, `outputs`, `in_and_out`, `scalar`; a string is a scalar.
    block : int, str, sequence, mapping or callable
        Threads per block, x first: numbers, expressions, or a function of extents. `block`, `tile` and `dynamic_shared`
        may also be mappings: bytes of an element of the swept dtype -> value.
    over : sequence of str
        The lengths that the grid covers along x, y and z. By default, each block covers one `tile`.
    tile : sequence or mapping, optional
        Elements that a block covers along each side of `over`; by default its number of threads.
    grid : sequence or callable, optional
        Blocks along x, y and z: numbers or expressions over extents, which replace `over`, or a function of extents.
        Functions that take the tiles of `over` are in `kernelwatch.kernel.geometry`.
    file : str
        The file of CUDA C++ or PTX: a path in the installed package, such as "imaging/blur.cu", or in the repository.
    text, ptx : str or callable
        CUDA C++ or PTX instead of a file: the text; a name in the package, such as "imaging.kernels:BLUR"; or a
        function, which may take `dtype` and `arch`.
    entry : str
        The entry point in C++, such as "imaging::blur<{T}, 4>"; {T} stands for the swept dtype's C++ type. By default
        the kernel's name.
    options : sequence of str
        Options of nvcc. {T} is replaced as above, with an include of its header, and {bits} by a built-in type of the
        same size. `-I` and `-include` may name folders and files of the repository.
    dtypes : sequence of dtype
        The swept dtypes that the kernel supports; all by default.
    prelude : str
        CUDA C++ before the source, for a header that does not compile by itself; {T} is replaced as above.
    include : sequence of str
        Folders of the repository, and with `file` also of the package, in which nvcc searches includes.
    dynamic_shared : int, str, mapping or callable
        Bytes of dynamic shared memory.
    constants : mapping of str to array or callable
        Name of a `__constant__` or `__device__` variable -> its value on the host.
    reference : callable or Kernel, optional
        The expected outputs. A function gets the arrays and extents that its parameters name, and returns one array, or
        a tuple in the order of the outputs. A kernel must take the same arrays in the same order.
        Without a reference, numbers are marked "not verified".
    useful_bytes : str, int or callable, optional
        The bytes that must be moved; an expression or function may use `itemsize`, the bytes of an element of the swept
        dtype. By default each array is moved once, and twice if it is read and written.
    flops : str, int or callable
        The floating-point operations that must be done.
    read : sequence of str
        Names of integers that the source defines by `#define`, `constexpr` or `const`; all lengths and functions may
        use them.
    where : str
        A text that the source must contain, to select the commits of this form.
    earlier : sequence of mapping
        Forms of the kernel at earlier commits, newest first. Each entry has the arguments of this class that differ
        from the entry before it; only `where` is never inherited. The first form that fits a commit's source is used.
        If none fits, it is the newest that does not compile, or else the newest of all.
    """

    def __init__(  # noqa: PLR0913 -- the declaration of a kernel, by keyword
        self,
        name: str,
        arguments: Sequence[Parameter | str],
        block: Any,
        *,
        over: Sequence[str] = (),
        tile: Sequence[LengthLike] | Mapping[int, Sequence[LengthLike]] | None = None,
        grid: Sequence[LengthLike] | Callable[..., Sequence[int]] | None = None,
        file: str = "",
        text: TextSource = "",
        ptx: TextSource = "",
        entry: str = "",
        options: Sequence[str] = (),
        dtypes: Sequence[DTypeLike] = (),
        include: Sequence[str] = (),
        prelude: str = "",
        dynamic_shared: LengthLike | Mapping[int, int] = 0,
        constants: Mapping[str, Any] | None = None,
        reference: Callable[..., Any] | Kernel | None = None,
        useful_bytes: LengthLike | None = None,
        flops: LengthLike = 0,
        read: Sequence[str] = (),
        where: str = "",
        earlier: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        settings = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        check_settings(name, settings)
        self.name, self.file, self.entry = name, file, entry or name
        self.dtypes = tuple(to_dtype(dtype).name for dtype in dtypes)
        self._text, self._ptx, self._prelude = text, ptx, prelude or ""
        self._options, self._include = tuple(options), tuple(include)
        self.reference = reference
        self.declared = to_parameters(arguments)
        self.over, self.read, self.where = tuple(over), tuple(read), where
        self.constants = {
            variable: value if callable(value) else to_numbers(name, variable, value)
            for variable, value in (constants or {}).items()
        }
        self.block, self.tile, self.grid = block, tile, grid
        self.dynamic_shared: Any = dynamic_shared
        self._useful_bytes, self._flops = useful_bytes, flops
        self.earlier: list[Kernel] = []
        for change in earlier:
            settings |= {"where": "", "earlier": (), **change}
            form = Kernel(**settings)
            if unknown := set(form.parameters) - set(self.parameters):
                raise ArgumentError(
                    f"{name}: earlier= has argument {', '.join(sorted(unknown))}, which launches lack; "
                    f'give it a value, as in scalar("{min(unknown)}", "float32", 1.0)'
                )
            form.launch_names = self.launch_names
            self.earlier.append(form)

    @property
    def _output_names(self) -> list[str]:
        return [
            parameter.name
            for parameter in self.declared
            if isinstance(parameter, ArrayParameter) and parameter.direction != "in"
        ]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of a launch's arguments, in the order of the parameters."""
        names = [name for parameter in self.declared for name in parameter.extent_names()]
        for setting in self._iter_settings():
            names += expressions.find_names(setting) if isinstance(setting, str) else []
            names += expressions.list_parameters(setting) if callable(setting) else []
        return tuple(name for name in dict.fromkeys(names) if name not in (*_GRID_NAMES, _ITEMSIZE, *self.read))

    @cached_property
    def launch_names(self) -> tuple[str, ...]:
        """The names of the arguments of a launch.

        An earlier form gets the arguments of the newest form, and may ignore some.
        """
        return self.parameters

    @property
    def form_at_commit(self) -> Kernel:
        """The form of the kernel that fits the measured commit; without earlier forms, the kernel itself."""
        return earlier_forms.select_form(self) if self.earlier else self

    def _iter_settings(self) -> Iterator[Any]:
        """Yield the strings, numbers and functions of all settings that may depend on extents."""
        settings = (self.over, self.block, self.tile, self.grid, self.dynamic_shared, self._useful_bytes, self._flops)
        for setting in settings:
            for value in setting.values() if isinstance(setting, Mapping) else [setting]:
                yield from value if isinstance(value, list | tuple) else [value]

    def find_fixed_block(self, dtype: DTypeLike) -> tuple[int, int] | None:
        """Return a block's threads and bytes of dynamic shared memory.

        Return None if they depend on extents, or are not declared for the dtype.
        """
        constants = self._read_constants()
        try:
            threads = geometry.to_extent("block=", self._select("block", dtype), constants)
            shared = geometry.evaluate_length("dynamic_shared=", self._select("dynamic_shared", dtype), constants)
            return math.prod(threads), shared
        except (NameError, ArgumentError, UnknownDtypeError):
            return None

    def _select(self, setting: str, dtype: DTypeLike) -> Any:
        """Return the value of a setting for a swept dtype."""
        return select_by_itemsize(self._label(setting), getattr(self, setting), to_dtype(dtype).itemsize)

    def _label(self, setting: str) -> str:
        """Return the name of a setting in messages."""
        return f"{self.name}: {setting}="

    def user_functions(self) -> list[Callable[..., Any]]:
        """Return the user's functions on which a number depends: references, values and constants."""
        values = [parameter.values for parameter in self.declared if isinstance(parameter, ArrayParameter)]
        return [value for value in (self.reference, *values, *self.constants.values()) if callable(value)]

    def check_extents(self, extents: Mapping[str, Any]) -> dict[str, Any]:
        """Return a launch's extents as Python numbers, which cannot overflow, and the integers in `read`.

        Raises UnknownArgumentError if a name is missing or unknown, UnknownKernelError if the source lacks an integer
        of `read`. Raises ArgumentError if a scalar with `least` is not an integer from `least` to MAX_INT64.
        """
        if set(extents) != set(self.launch_names):
            raise UnknownArgumentError(
                f"{self.name} takes {', '.join(self.launch_names) or 'no argument'}; "
                f"given: {', '.join(sorted(extents)) or 'nothing'}"
            )
        checked = {name: value.item() if isinstance(value, np.generic) else value for name, value in extents.items()}
        for parameter in self.declared:
            if isinstance(parameter, ScalarParameter) and parameter.least is not None and parameter.name in checked:
                checked[parameter.name] = check_integer(
                    self.name, parameter.name, checked[parameter.name], parameter.least
                )
        return checked | self._read_constants()

    def _read_constants(self) -> dict[str, int]:
        text = self.load_source(DTYPE, "sm_90").full_text() if self.read else ""
        return {name: earlier_forms.read_constant(name, text) for name in self.read}

    def bind_arguments(self, dtype: DTypeLike, /, **extents: Any) -> list[ArrayArgument | ScalarArgument]:
        """Return a launch's arguments in the entry point's order.

        Raises the exceptions of `check_extents` and `ArrayParameter.bind`.
        """
        extents = self.check_extents(extents)
        arguments: list[ArrayArgument | ScalarArgument] = []
        ordinal = 0
        for parameter in self.declared:
            if isinstance(parameter, ScalarParameter):
                arguments.append(parameter.bind({**extents, "dtype": dtype}))
                continue
            argument = parameter.bind(dtype, extents)
            if parameter.direction != "out":
                argument, ordinal = replace(argument, ordinal=ordinal), ordinal + 1
            arguments.append(argument)
        return arguments

    def compute_geometry(
        self, dtype: DTypeLike = DTYPE, multiprocessors: int = geometry.DEFAULT_MULTIPROCESSORS, /, **extents: Any
    ) -> Geometry:
        """Return the launch geometry.

        Raises ArgumentError if a setting has no valid value, UnknownDtypeError if a mapping has none for the dtype, and
        the exceptions of `check_extents`.
        """
        extents = self.check_extents(extents)
        threads = geometry.to_extent(self._label("block"), self._select("block", dtype), extents)
        tile = self._select("tile", dtype)
        tiles = threads if tile is None else geometry.evaluate_lengths(self._label("tile"), tile, extents)
        sides = geometry.make_sides(self.name, self.over, tiles, extents)
        grid_variables = dict(zip(_GRID_NAMES, (self.name, sides, multiprocessors), strict=True))
        if not self.grid:
            geometry.check_sides(self.name, sides, MAX_GRID)
        blocks = self.grid or [side.tiles for side in sides]
        grid = geometry.to_extent(self._label("grid"), blocks, {**extents, **grid_variables})
        if min(*grid, *threads) < 1 or any(map(operator.gt, grid, MAX_GRID)):
            raise ArgumentError(
                f"{self.name}: the grid is {grid} blocks of {threads} threads; each side must be at least 1, "
                f"the grid's maximum is {MAX_GRID}"
            )
        dynamic_shared = self._select("dynamic_shared", dtype)
        shared = geometry.evaluate_length(self._label("dynamic_shared"), dynamic_shared, extents)
        return Geometry(grid, threads, shared)

    def useful_bytes(self, dtype: DTypeLike, /, **extents: Any) -> int:
        """Return the bytes that a launch must move: by default each array once, and twice if it is read and written."""
        if self._useful_bytes is not None:
            variables = {**self.check_extents(extents), _ITEMSIZE: to_dtype(dtype).itemsize}
            return geometry.evaluate_length(self._label("useful_bytes"), self._useful_bytes, variables)
        arrays = [argument for argument in self.bind_arguments(dtype, **extents) if isinstance(argument, ArrayArgument)]
        return sum(array.nbytes * (2 if array.direction == "in and out" else 1) for array in arrays)

    def flops(self, **extents: Any) -> int:
        """Return the floating-point operations that must be done; 0 if they are not declared."""
        return geometry.evaluate_length(self._label("flops"), self._flops, self.check_extents(extents))

    def compute_expected(
        self, arrays: Mapping[str, Array], extents: Mapping[str, Any], *, as_float64: bool = False
    ) -> list[Array]:
        """Return the output arrays that the reference function computes, in the order of the declaration.

        `references.call_reference` explains `as_float64`, and lists the errors that are raised.
        """
        assert callable(self.reference), "the reference is a function"
        extents = self.check_extents(extents)
        return call_reference(self.name, self.reference, arrays, extents, self._output_names, as_float64=as_float64)
