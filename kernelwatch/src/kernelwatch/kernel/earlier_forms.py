"""Which form of a kernel a commit has: a row may say what its kernel was called, took and was launched with before."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kernelwatch.errors import ArgumentError, CompileError, KernelwatchError, UnknownDtypeError, UnknownKernelError
from kernelwatch.kernel import expressions
from kernelwatch.kernel.arguments import Taken, dtype_of
from kernelwatch.kernel.launch import DTYPE
from kernelwatch.kernel.parameters import ArrayParameter, Parameter
from kernelwatch.toolchain import build, cache

if TYPE_CHECKING:
    from kernelwatch.kernel.kernel import Kernel

#: Any architecture does: the text, the entry point and what it takes are looked at.
_ARCH = "sm_90"

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

#: How a source names an integer: until the line ends, or the declaration or its next name.
_NAMED = rf"(?:#[ \t]*define[ \t]+{{0}}[ \t]+([^\n]+)|\bconst(?:expr)?\b[^;()]*?\b{{0}}{expressions.INITIAL})"


def constant(name: str, text: str) -> int:
    """Return the integer that a source names by `#define`, `constexpr` or `const`.

    Raises UnknownKernelError if it names none, or several.
    """
    found = {"".join(groups) for groups in re.findall(_NAMED.format(name), _COMMENT.sub("", text))}
    if len(found) != 1:
        raise UnknownKernelError(f"{name} is named {len(found)} times by #define, constexpr or const; once is needed")
    said = expressions.from_cpp(found.pop())
    try:
        return int(expressions.value(said, {each: constant(each, text) for each in expressions.names(said)}))
    except ArgumentError as error:
        raise UnknownKernelError(f"{name}: {error}") from None


def form(kernel: Kernel) -> Kernel:
    """Return the first form, newest first, that fits the source of the commit that is measured.

    Where none does, the first that does not compile, so that the compiler is heard; or else the newest. Looked for once
    while the sources and the compiler stay as they are.
    """
    return _form(kernel, cache.key(*map(_source, (kernel, *kernel.earlier)), *build.compiler()))


@lru_cache(maxsize=1024)
def _form(kernel: Kernel, _: str) -> Kernel:
    broken = None
    for one in (kernel, *kernel.earlier):
        try:
            if fits(one):
                return one
        except (UnknownKernelError, UnknownDtypeError, ArgumentError):
            continue
        except CompileError:
            broken = broken or one
    return broken or kernel


def fits(kernel: Kernel) -> bool:
    """Return whether the commit has a kernel such as a row says. Raises as `Kernel.taken`, and `constant`."""
    dtype = next(iter(kernel.dtypes), DTYPE)
    text = kernel.at_commit(dtype, _ARCH).whole()
    if kernel.where not in text or not all(constant(name, text) for name in kernel.read):
        return False
    module = kernel.module(dtype, arch=_ARCH)
    variables = [(module.variable(name), value) for name, value in kernel.constants.items()]
    taken = module.parameters()
    return (
        len(taken) == len(kernel.declared)
        and all(map(_takes, taken, kernel.declared))
        and all(callable(value) or np.asarray(value).nbytes == one.size for one, value in variables)
    )


def _source(kernel: Kernel) -> str:
    """Return all that is compiled; empty where the commit has none."""
    try:
        found = kernel.at_commit(next(iter(kernel.dtypes), DTYPE), _ARCH)
    except KernelwatchError:
        return ""
    return found.whole()


def _takes(taken: Taken, one: Parameter) -> bool:
    if isinstance(one, ArrayParameter):
        return taken[0] == 8
    return one.dtype is None or dtype_of(one.dtype).itemsize == taken[0]
