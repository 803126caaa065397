"""The kernels of the installed commit: the one place that knows what older packages offered.

The package's number `CONTRACT` is the version of its interface. Packages up to 917313d have none. Up to 2, a package
builds its kernels itself. The kernels of those up to ac1c6ac have arguments that `Kernel` no longer takes, and those up
to 2a19b6a8^ are made by functions that kernelwatch no longer has. None of them is measured; their stored numbers stay.
"""

from __future__ import annotations

import importlib
import re
from collections import ChainMap
from collections.abc import Mapping

from kernelwatch import Kernel

#: Names that older packages import from kernelwatch.
_REMOVED = re.compile("cannot import name '(Row|Operation)'")


def kernels() -> Mapping[str, Kernel]:
    """Return the installed commit's kernels by name; empty for a package without kernelwatch kernels."""
    try:
        package = importlib.import_module("gpu_kernels")
    except TypeError:  # `Kernel` takes other arguments
        return {}
    except ImportError as error:
        if not _REMOVED.search(error.msg):
            raise
        return {}
    if getattr(package, "CONTRACT", 1) < 3:
        return {}
    return ChainMap(getattr(package, "MIXED", {}), package.KERNELS)
