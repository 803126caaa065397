"""Memory transactions of CUDA kernels, counted without a GPU.

A kernel's PTX is executed for its whole grid, vectorised over threads with NumPy. Each access is checked. Requests,
sectors and wavefronts have the definitions of Nsight Compute. The main function is `count`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .util import errors
from .util.errors import *  # noqa: F403 - the names in its __all__

if TYPE_CHECKING:
    from .counting.counters import Access, Amounts, LaunchCounters
    from .engine.kernel_counts import count
    from .isa.hopper.tensor_maps import Im2colMap, TensorMap
    from .isa.textures import Surface, Texture
    from .report.listing import format_counters
    from .util.findings import Finding

__all__ = [
    "Access", "Amounts", "Finding", "Im2colMap", "LaunchCounters", "Surface", "TensorMap", "Texture", "count",
    "format_counters",
]  # fmt: skip
__all__ += errors.__all__

#: Modules of the names that are imported on first use, because they import NumPy.
_MODULES = {
    **dict.fromkeys(("Access", "Amounts", "LaunchCounters"), "counting.counters"),
    "Finding": "util.findings",
    "count": "engine.kernel_counts",
    **dict.fromkeys(("Im2colMap", "TensorMap"), "isa.hopper.tensor_maps"),
    "format_counters": "report.listing",
    **dict.fromkeys(("Surface", "Texture"), "isa.textures"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
