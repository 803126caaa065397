"""The forms of a kernel: a declaration may list other names, arguments and geometries for earlier commits."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from kernelwatch.errors import ERRORS, ArgumentError, CompileError, UnknownDtypeError, UnknownKernelError
from kernelwatch.kernel.arguments import ParameterLayout, to_dtype
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.kernel.parameters import ArrayParameter, Parameter
from kernelwatch.toolchain import build, cache
from ptxcount.source import constants
from ptxcount.util.grammar import count_noun

if TYPE_CHECKING:
    from kernelwatch.kernel.kernel import Kernel

#: Architecture for which forms are compiled. Only the text, the entry point and its parameters matter, so any will do.
_ARCH = "sm_90"


def read_constant(name: str, text: str) -> int:
    """Return the integer that a source defines by `#define`, `constexpr` or `const`.

    Raises UnknownKernelError unless the source gives the name exactly one value that can be computed.
    """
    source = constants.remove_comments(text)
    values = {"".join(groups) for groups in re.findall(constants.CONSTANTS.format(name), source)}
    if len(values) != 1:
        count = count_noun(len(values), "value")
        problem = f"read= needs one value of {name}; #define, constexpr and const give it {count}"
        raise UnknownKernelError(f"{problem}; correct the name, or define it once")
    value = constants.evaluate_constant(name, source, is_strict=True)
    if value is None:
        advice = "use integers and constants that are defined once"
        raise UnknownKernelError(f"read= cannot compute {name} = {values.pop()}; {advice}")
    return value


def select_form(kernel: Kernel) -> Kernel:
    """Return the newest form that fits the source of the measured commit.

    If none fits, return the newest that does not compile, whose error is then reported, or else the newest. The result
    is cached until the sources or the compiler change.
    """
    return _select_form(kernel, cache.make_key(*map(_full_text, (kernel, *kernel.earlier)), *build.compiler_identity()))


@lru_cache(maxsize=1024)
def _select_form(kernel: Kernel, _cache_key: str) -> Kernel:
    not_compiling = None
    for form in (kernel, *kernel.earlier):
        try:
            if fits_commit(form):
                return form
        except (UnknownKernelError, UnknownDtypeError, ArgumentError):
            continue
        except CompileError:
            not_compiling = not_compiling or form
    return not_compiling or kernel


def fits_commit(kernel: Kernel) -> bool:
    """Return whether the commit's source, parameters and constants fit the declaration.

    Raises UnknownKernelError if the source has no such entry point or integer of `read`. Raises ArgumentError if a
    variable of `constants` is missing, CompileError if the source does not compile.
    """
    dtype = next(iter(kernel.dtypes), DTYPE)
    text = kernel.load_source(dtype, _ARCH).full_text()
    if kernel.where not in text:
        return False
    for name in kernel.read:
        read_constant(name, text)
    module = kernel.compile_module(dtype, arch=_ARCH)
    variables = [(module.find_variable(name), value) for name, value in kernel.constants.items()]
    layout = module.parameter_layout()
    return (
        len(layout) == len(kernel.declared)
        and all(map(_has_same_size, layout, kernel.declared))
        and all(callable(value) or value.nbytes == variable.size for variable, value in variables)
    )


def _full_text(kernel: Kernel) -> str:
    try:
        return kernel.load_source(next(iter(kernel.dtypes), DTYPE), _ARCH).full_text()
    except ERRORS:  # the commit does not have this source, or it fails
        return ""


def _has_same_size(layout: ParameterLayout, parameter: Parameter) -> bool:
    if isinstance(parameter, ArrayParameter):
        return layout.size == 8  # an address
    return parameter.dtype is None or to_dtype(parameter.dtype).itemsize == layout.size
