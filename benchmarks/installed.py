"""The kernels of the installed commit: the one place that knows what older packages offered.

The package's number `CONTRACT` is the version of its interface. Packages up to 917313d have none, which counts as 1: a
kernel then has one input, whose bits are moved, and its geometry does not depend on the element type. Up to 2, a
package builds its kernels itself and has errors of its own. From 3 on, its kernels are kernelwatch's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gpu_kernels
from kernelwatch import errors
from kernelwatch.kernel import Kernel
from kernelwatch.kernel.geometry import MULTIPROCESSORS, Geometry
from kernelwatch.kernel.launch import FLAGS
from kernelwatch.kernel.parameters import Taken

CONTRACT: int = getattr(gpu_kernels, "CONTRACT", 1)


def kernels() -> Mapping[str, Kernel]:
    """Return the installed commit's kernels by name."""
    return {**gpu_kernels.KERNELS, **getattr(gpu_kernels, "MIXED", {})} if CONTRACT >= 3 else _older()


@cache
def _older() -> dict[str, Kernel]:
    return {
        name: _Older(name, Path(old.source), old.operation, old.block, (), old=old)
        for name, old in gpu_kernels.KERNELS.items()
    }


@contextmanager
def _translated() -> Iterator[None]:
    """Raise kernelwatch's errors for those of the package, which have the same names."""
    try:
        yield
    except Exception as error:
        if type(error).__module__ != "gpu_kernels.errors":
            raise
        raise getattr(errors, type(error).__name__, errors.KernelwatchError)(str(error)) from None


def _asked(name: str) -> Any:
    """Return a method that asks the package's own kernel."""

    def method(self: _Older, *given: Any, **named: Any) -> Any:
        with _translated():
            return getattr(self.old, name)(*given, **named)

    return method


@dataclass(frozen=True)
class _Older(Kernel):
    """A kernel of a package that builds it itself."""

    old: Any = None

    source_text, check, arrays = map(_asked, ("source_text", "check", "arrays"))
    useful_bytes, flops, reference = map(_asked, ("useful_bytes", "flops", "reference"))

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.old.parameters)

    @property
    def is_exact(self) -> bool:
        return CONTRACT >= 2 and super().is_exact

    @property
    def says(self) -> Callable[..., Any]:
        found: Callable[..., Any] = self.old.reference if CONTRACT < 2 else self.old.operation.reference
        return found

    def ulp(self, dtype: str) -> float | None:
        return None if CONTRACT < 2 else super().ulp(dtype)

    def options(self, dtype: Any) -> tuple[str, ...]:
        with _translated():
            return (self.element(dtype),) if CONTRACT < 2 else tuple(self.old.options(dtype))

    def element(self, dtype: Any) -> str:
        dtypes = importlib.import_module("gpu_kernels.dtypes")
        with _translated():
            return str((dtypes.get(dtype) if CONTRACT < 2 else self.old.operation.element(dtype)).name)

    def geometry(self, dtype: Any = None, multiprocessors: int = MULTIPROCESSORS, /, **arguments: float) -> Geometry:
        with _translated():
            given = () if CONTRACT < 2 else (dtype, multiprocessors)
            found = self.old.geometry(*given, **arguments)
        return Geometry(found.grid, found.block, getattr(found, "dynamic_shared", 0))

    def taken(self, *_: object, **__: object) -> list[Taken]:
        inputs = 1 if CONTRACT < 2 else self.old.operation.inputs
        return [(8, 8, None)] * (1 + inputs + len(self.parameters))

    def cubin(self, dtype: Any, flags: str = FLAGS, *, arch: str) -> Any:
        return self._built("cubin", dtype, flags, arch)

    def ptx(self, dtype: Any, flags: str = FLAGS, *, arch: str) -> str:
        return str(self._built("ptx", dtype, flags, arch))

    def _built(self, what: str, dtype: Any, flags: str, arch: str) -> Any:
        build = importlib.import_module("gpu_kernels.build")
        with _translated():
            return getattr(build, what)(self.old, dtype, flags, arch=arch)
