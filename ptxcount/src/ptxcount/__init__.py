"""Memory transactions of CUDA kernels, counted exactly, without a GPU.

A kernel's PTX is executed for its whole grid, vectorised over threads with NumPy. Each access is checked. The requests,
sectors and wavefronts are counted that Nsight Compute would read on the chip. `count` is the function to call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from .errors import *  # noqa: F403 - what it lists

if TYPE_CHECKING:
    from .counters import Access, Amounts, LaunchCounters
    from .findings import Finding
    from .hopper.tensors import TensorMap
    from .launch import count
    from .textures import Surface, Texture

__all__ = ["Access", "Amounts", "Finding", "LaunchCounters", "Surface", "TensorMap", "Texture", "count"]
__all__ += errors.__all__

#: What is imported, with all of NumPy, when it is asked for -> its module.
_MODULES = {
    **dict.fromkeys(("Access", "Amounts", "LaunchCounters"), "counters"),
    "Finding": "findings",
    "count": "launch",
    "TensorMap": "hopper.tensors",
    **dict.fromkeys(("Surface", "Texture"), "textures"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
