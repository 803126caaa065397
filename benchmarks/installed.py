"""The kernels of the installed commit: the one place that knows what older packages offered.

The package's number `CONTRACT` is the version of its interface. Packages up to 917313d have none. Up to 2, a package
builds its kernels itself; those up to ac1c6ac make rows that `Kernel` no longer takes. Neither is measured any more,
and what was stored of them stays.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from kernelwatch import Kernel


def kernels() -> Mapping[str, Kernel]:
    """Return the installed commit's kernels by name; none of a package that has none of kernelwatch's."""
    try:
        package = importlib.import_module("gpu_kernels")
    except TypeError:  # its rows are made otherwise
        return {}
    known = {**package.KERNELS, **getattr(package, "MIXED", {})}
    return known if getattr(package, "CONTRACT", 1) >= 3 else {}
