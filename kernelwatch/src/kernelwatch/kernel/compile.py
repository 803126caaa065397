"""The code of a kernel: its source at the measured commit, its entry point, nvcc's options, and its compilation."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import DTypeLike

from kernelwatch.errors import UnknownArgumentError, UnknownDtypeError
from kernelwatch.kernel import compile_source, dtypes, expressions, sources
from kernelwatch.kernel.arguments import Array, ParameterLayout, to_dtype, to_numbers
from kernelwatch.kernel.launch import FLAGS, split_flags
from kernelwatch.kernel.ptx_module import PtxModule
from kernelwatch.kernel.sources import KernelSource, TextSource
from kernelwatch.toolchain import build
from kernelwatch.toolchain.build import Cubin
from ptxcount.util.grammar import count_noun


class KernelCode:
    """The part of a `Kernel` that is compiled; `Kernel` documents the parameters."""

    name: str
    file: str
    entry: str
    dtypes: tuple[str, ...]
    constants: dict[str, Any]
    _text: TextSource
    _ptx: TextSource
    _options: tuple[str, ...]
    _include: tuple[str, ...]
    _prelude: str

    @property
    def source(self) -> Path:
        """The kernel's file as declared; without one, the kernel's name with the suffix `.cu`."""
        return Path(self.file or f"{self.name}.cu")

    @property
    def origin(self) -> Path:
        """The file that defines the source: `file`, or the module of a text or function, such as imaging/kernels.py.

        A package counts as a module: imaging.py. For a text in the declaration itself, it is `source`.
        """
        text_source = self._text or self._ptx
        if self.file or (isinstance(text_source, str) and not sources.is_object_reference(text_source)):
            return self.source
        module = text_source.partition(":")[0] if isinstance(text_source, str) else text_source.__module__
        return Path(*module.split(".")).with_suffix(".py")

    @property
    def fixed_options(self) -> list[str]:
        """The options of nvcc that are the same for all dtypes: those without {T} and {bits}."""
        return [option for option in self._options if "{T}" not in option and "{bits}" not in option]

    @property
    def is_generated(self) -> bool:
        """True if the kernel is declared with `ptx`, which a package usually generates."""
        return bool(self._ptx)

    def check_dtype(self, dtype: DTypeLike) -> str:
        """Return the name of a swept dtype. Raises UnknownDtypeError if it does not exist or is not in `dtypes`."""
        name = to_dtype(dtype).name
        if self.dtypes and name not in self.dtypes:
            raise UnknownDtypeError(f"{self.name} does not support {name}, only {', '.join(self.dtypes)}")
        return name

    def nvcc_options(self, dtype: DTypeLike) -> tuple[str, ...]:
        """Return the kernel's options of nvcc, with C++ types filled in.

        Raises UnknownDtypeError if the dtype is unsupported or has no C++ type.
        """
        self.check_dtype(dtype)
        return tuple(dtypes.fill_options(self._options, dtype))

    def load_source(self, dtype: DTypeLike, arch: str) -> KernelSource:
        """Return the kernel's source at the measured commit, for a swept dtype and an architecture.

        Raises UnknownKernelError if the commit has no such source, UnknownDtypeError if the dtype does not exist or has
        no C++ type. `sources.make_text` lists the other exceptions.
        """
        if self.file:
            source = sources.load_file(self.file, self._include)
        else:
            text = sources.make_text(self._text or self._ptx, {"dtype": to_dtype(dtype).name, "arch": arch})
            folders = tuple(sources.checkout_folder() / folder for folder in self._include)
            source = KernelSource(text, folders, is_ptx=not self._text, name=str(self.source))
        if source.is_ptx:
            return source
        return sources.apply_include_options(
            replace(source, prelude=dtypes.fill_types(self._prelude, dtype)), self._options
        )[0]

    def compile_module(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str, lines: bool = False) -> PtxModule:
        """Compile the kernel to PTX, with source lines if `lines`, and find its entry point.

        A source that is PTX is not compiled. Raises the errors of `compile_cubin`.
        """
        options = (*split_flags(flags), *self.nvcc_options(dtype), *([build.LINE_OPTION] if lines else []))
        source, entry = self.load_source(dtype, arch), dtypes.fill_types(self.entry, dtype)
        return compile_source.compile_module(source, entry, tuple(build.drop_ptxas_options(options)), arch)

    def compile_ptx(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> str:
        """Compile the kernel to PTX with source lines."""
        return self.compile_module(dtype, flags, arch=arch, lines=True).ptx

    def compile_cubin(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> Cubin:
        """Compile the kernel to machine code for a swept dtype, nvcc's flags, and an `arch` such as "sm_90".

        Raises
        ------
        UnknownDtypeError, UnknownFlagsError, UnknownKernelError
            The kernel does not support the dtype, the flags cannot be split, or the source has no such entry point.
        NvccNotFoundError, CompileError
            nvcc is missing or failed, or the package's function that returns the source failed.
        """
        module = self.compile_module(dtype, flags, arch=arch)
        options = (*split_flags(flags), *build.keep_ptxas_options(self.nvcc_options(dtype)))
        target = module.target_arch(arch)
        return build.assemble_cubin(module.ptx, module.entry, options, arch=target, name=self.origin.name)

    def parameter_layout(self, dtype: DTypeLike, flags: str = FLAGS, *, arch: str) -> list[ParameterLayout]:
        """Compile the kernel; return the layout of its entry point's parameters."""
        return self.compile_module(dtype, flags, arch=arch).parameter_layout()

    def check_extents(self, extents: Mapping[str, Any]) -> dict[str, Any]:
        """Return a launch's extents and the integers in `read`; `Kernel` overrides this method."""
        raise NotImplementedError

    def variable_values(self, extents: Mapping[str, Any]) -> dict[str, Array]:
        """Return the values of `constants` for a launch: name of a variable in the source -> value.

        Raises ArgumentError if a function fails or returns no numbers.
        """
        checked = self.check_extents(extents) if self.constants else {}
        values = dict(self.constants)
        for name, value in values.items():
            if callable(value):
                values[name] = to_numbers(self.name, name, expressions.evaluate_function(value, checked))
        return values

    def bind_variables(self, module: PtxModule, extents: Mapping[str, Any]) -> dict[str, Array]:
        """Return the values of `constants` for a launch: name of a variable in the PTX, maybe mangled -> value.

        Raises UnknownArgumentError if not exactly one variable has the name, or its size is not that of the value.
        """
        values = {}
        for name, value in self.variable_values(extents).items():
            variable = module.find_variable(name)
            if value.nbytes != variable.size:
                raise UnknownArgumentError(
                    f"{self.name}: variable {name} has {count_noun(variable.size or 0, 'byte')}; "
                    f"constants= gives {value.nbytes}; give an array of that size"
                )
            values[variable.name] = value
        return values

    def variable_bytes(self, dtype: DTypeLike, flags: str = FLAGS, /, *, arch: str, **extents: Any) -> dict[str, bytes]:
        """Compile the kernel; return the names and values of `bind_variables`, the values as bytes."""
        if not self.constants:  # as in most kernels: nothing needs to be compiled
            return {}
        values = self.bind_variables(self.compile_module(dtype, flags, arch=arch), extents)
        return {name: value.tobytes() for name, value in values.items()}
