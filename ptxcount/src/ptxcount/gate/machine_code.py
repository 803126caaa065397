"""Local memory that ptxas adds to a kernel: the stack frame with arrays, and spilled registers."""

from __future__ import annotations

from typing import Any

from ..source import ptxas
from ..source.kernel_sources import find_chip

#: Space and kind of these numbers in the lock file -> the resource.
_RESOURCE_NAMES = {
    ("stack", "frame"): "stack_frame",
    ("spill", "store"): "spill_stores",
    ("spill", "load"): "spill_loads",
}


def list_machine_accesses(ptx: str, entry: str, flags: str, arch: str | None) -> list[dict[str, Any]]:
    """List the bytes per thread as accesses of `listing.list_lines`; empty without a ptxas for this PTX."""
    resources = ptxas.assemble(ptx, flags, find_chip(ptx, arch)).get(entry)
    if resources is None:
        return []
    return [
        {"space": space, "kind": kind, "width": 0, "ptx_line": 0, "bytes": getattr(resources, name)}
        for (space, kind), name in _RESOURCE_NAMES.items()
    ]
