"""The kernels of the installed commit: the one place that knows what older packages offered.

The package's number `CONTRACT` is the version of its interface. Packages up to 917313d have none, which counts as 1: a
kernel then has one input, whose bits are moved, and its geometry does not depend on the element type. Up to 2, a
package builds its kernels itself and has errors of its own. From 3 on, its kernels are kernelwatch's.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import gpu_kernels
from kernelwatch import Kernel, errors
from kernelwatch.kernel import Operation, Row
from kernelwatch.kernel.geometry import MULTIPROCESSORS, Geometry
from kernelwatch.kernel.launch import DTYPE, FLAGS
from kernelwatch.kernel.sources import Module, Source

CONTRACT: int = getattr(gpu_kernels, "CONTRACT", 1)


def kernels() -> Mapping[str, Kernel]:
    """Return the installed commit's kernels by name."""
    return {**gpu_kernels.KERNELS, **getattr(gpu_kernels, "MIXED", {})} if CONTRACT >= 3 else _older()


@cache
def _older() -> dict[str, Row]:
    """Return the kernels of a package that builds them itself; those of one operation share it."""
    known = {id(old.operation): _operation(old.operation) for old in gpu_kernels.KERNELS.values()}
    return {name: _Older(old, known[id(old.operation)]) for name, old in gpu_kernels.KERNELS.items()}


def _operation(old: Any) -> Operation:
    """Return a package's operation, with as much as it says."""
    return Operation(**{each.name: getattr(old, each.name) for each in fields(Operation) if hasattr(old, each.name)})


@contextmanager
def _translated() -> Iterator[None]:
    """Raise kernelwatch's errors for those of the package, which have the same names."""
    try:
        yield
    except Exception as error:
        if type(error).__module__ != "gpu_kernels.errors":
            raise
        raise getattr(errors, type(error).__name__, errors.KernelwatchError)(str(error)) from None


class _Older(Row):
    """A kernel of a package that builds it itself."""

    def __init__(self, old: Any, operation: Operation) -> None:
        super().__init__(old.name, Path(old.source), operation, old.block, ())
        self.old = old

    def useful_bytes(self, dtype: Any, /, **extents: Any) -> int:
        with _translated():
            return int(self.old.useful_bytes(dtype, **extents))

    def element(self, dtype: Any) -> str:
        dtypes = importlib.import_module("gpu_kernels.dtypes")
        with _translated():
            return str((dtypes.get(dtype) if CONTRACT < 2 else self.old.operation.element(dtype)).name)

    def geometry(self, dtype: Any = DTYPE, multiprocessors: int = MULTIPROCESSORS, /, **extents: Any) -> Geometry:
        with _translated():
            given = () if CONTRACT < 2 else (dtype, multiprocessors)
            found = self.old.geometry(*given, **extents)
        return Geometry(found.grid, found.block, getattr(found, "dynamic_shared", 0))

    def at_commit(self, dtype: Any, arch: str) -> Source:
        return Source(self.old.source_text())

    def module(self, dtype: Any, flags: str = FLAGS, *, arch: str, lines: bool = False) -> Module:
        return Module(str(self._built("ptx", dtype, flags, arch)), self.entry)

    def cubin(self, dtype: Any, flags: str = FLAGS, *, arch: str) -> Any:
        return self._built("cubin", dtype, flags, arch)

    def _built(self, what: str, dtype: Any, flags: str, arch: str) -> Any:
        build = importlib.import_module("gpu_kernels.build")
        with _translated():
            return getattr(build, what)(self.old, dtype, flags, arch=arch)
