"""What a kernel's machine code is made from: a source of the commit that is measured, an entry point, options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernelwatch.errors import UnknownDtypeError
from kernelwatch.kernel import dtypes, expressions, sources
from kernelwatch.kernel.arguments import Array, Taken, dtype_of
from kernelwatch.kernel.launch import FLAGS, words
from kernelwatch.kernel.sources import Made, Module, Source
from kernelwatch.toolchain import build
from kernelwatch.toolchain.build import Cubin


class Code:
    """The part of a `Kernel` that is compiled. Parameters as there."""

    name: str
    file: str
    entry: str
    dtypes: tuple[str, ...]
    constants: dict[str, Any]
    _text: Made
    _ptx: Made
    _options: tuple[str, ...]
    _include: tuple[str, ...]
    _prelude: str

    @property
    def source(self) -> Path:
        """Its file, or one called like it."""
        return Path(self.file or f"{self.name}.cu")

    @property
    def origin(self) -> Path:
        """The file, or the file of the module, that its source comes from: in the package, or in the repository."""
        if self.file:
            return Path(self.file)
        made = self._text or self._ptx
        module = made.partition(":")[0] if isinstance(made, str) else made.__module__
        return Path(*module.split(".")).with_suffix(".py")

    def element(self, dtype: DTypeLike) -> str:
        """Return the name of the swept dtype. Raises UnknownDtypeError if there is none such, or it is not for that."""
        name = dtype_of(dtype).name
        if self.dtypes and name not in self.dtypes:
            raise UnknownDtypeError(f"{self.name} has no {name}; it has {', '.join(self.dtypes)}")
        return name

    def options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return the kernel's own options of nvcc. Raises as `element`, and where the dtype has no C++ type."""
        self.element(dtype)
        return tuple(dtypes.options(self._options, dtype))

    def at_commit(self, dtype: DTypeLike, arch: str) -> Source:
        """Return its source at the commit that is measured. Raises UnknownKernelError where that has none."""
        if self.file:
            found = sources.of_file(self.file, self._include)
        else:
            text = sources.made(self._text or self._ptx, {"dtype": dtype_of(dtype).name, "arch": arch})
            folders = tuple(sources.checkout() / each for each in self._include)
            found = Source(text, folders, is_ptx=not self._text)
        if found.is_ptx:
            return found
        return sources.with_options(replace(found, prelude=dtypes.filled(self._prelude, dtype)), self._options)[0]

    def module(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str, lines: bool = False) -> Module:
        """Compile it to PTX, and find its entry point. Errors as `sources.module`."""
        options = (*words(flags), *self.options(dtype), *(["-lineinfo"] if lines else []))
        known = self.at_commit(dtype, arch)
        return sources.module(known, dtypes.filled(self.entry, dtype), tuple(build.without_ptxas(options)), arch)

    def ptx(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> str:
        """Return its PTX with source lines. Errors as `module`."""
        return self.module(dtype, flags, arch=arch, lines=True).ptx

    def cubin(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> Cubin:
        """Compile it to machine code: of a swept dtype, with nvcc's flags as typed, for an `arch` such as "sm_90".

        Raises
        ------
        UnknownDtypeError, UnknownFlagsError, UnknownKernelError
            It does not have the dtype, the flags are no words, or its source has no such entry point.
        NvccNotFoundError, CompileError
            As `build.ptx`.
        """
        module = self.module(dtype, flags, arch=arch)
        return build.cubin(module.ptx, module.entry, words(flags), arch=arch, name=self.origin.name)

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
        values = self.values_of_variables(extents)
        module = self.module(dtype, flags, arch=arch)
        return {module.variable(name).name: value.tobytes() for name, value in values.items()}
