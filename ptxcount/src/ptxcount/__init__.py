"""Memory transactions of CUDA kernels, counted exactly, without a GPU.

A kernel's PTX is executed for its whole grid, vectorised over threads with NumPy. Each access is checked. The requests,
sectors and wavefronts are counted that Nsight Compute would read on the chip. `count` is the function to call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .counters import Access, Amounts, LaunchCounters
    from .errors import (
        CompileError,
        DivergentBarrierError,
        GlobalRaceError,
        KernelFaultError,
        LaunchError,
        MisalignedError,
        NoProgressError,
        NvccNotFoundError,
        OutOfBoundsError,
        PtxError,
        PtxSyntaxError,
        ReadOnlyError,
        SharedRaceError,
        Source,
        StepLimitExceededError,
        TimeLimitExceededError,
        TrapError,
        UninitializedReadError,
        UnsetVariableError,
        UnsupportedInstructionError,
    )
    from .findings import Finding
    from .hopper.tensors import TensorMap
    from .launch import count
    from .textures import Surface, Texture

__all__ = [
    "Access",
    "Amounts",
    "CompileError",
    "DivergentBarrierError",
    "Finding",
    "GlobalRaceError",
    "KernelFaultError",
    "LaunchCounters",
    "LaunchError",
    "MisalignedError",
    "NoProgressError",
    "NvccNotFoundError",
    "OutOfBoundsError",
    "PtxError",
    "PtxSyntaxError",
    "ReadOnlyError",
    "SharedRaceError",
    "Source",
    "StepLimitExceededError",
    "Surface",
    "TensorMap",
    "Texture",
    "TimeLimitExceededError",
    "TrapError",
    "UninitializedReadError",
    "UnsetVariableError",
    "UnsupportedInstructionError",
    "count",
]

#: What is imported, with all of NumPy, when it is asked for -> its module.
_MODULES = {
    **dict.fromkeys(("Access", "Amounts", "LaunchCounters"), "counters"),
    "Finding": "findings",
    "count": "launch",
    "TensorMap": "hopper.tensors",
    **dict.fromkeys(("Surface", "Texture"), "textures"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
