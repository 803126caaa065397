"""The kernels of the installed commit. Only this module knows the interfaces of older packages.

`CONTRACT` of a package is the version of its interface. Older packages are not measured. Their stored numbers stay:

- up to 917313d: the package has no `CONTRACT`
- up to version 2: the package builds its kernels itself
- up to ac1c6ac: its kernels have arguments that `Kernel` no longer takes
- up to 2a19b6a8^: it calls functions that kernelwatch no longer has
"""

import importlib
import re
from collections.abc import Mapping

from kernelwatch import Kernel

#: The error for names that older packages import from kernelwatch.
_REMOVED = re.compile("cannot import name '(Row|Operation)'")


def kernels() -> Mapping[str, Kernel]:
    """Return the installed commit's kernels by name; empty for a package without kernelwatch kernels."""
    try:
        package = importlib.import_module("gpu_kernels")
    except TypeError:  # `Kernel` no longer takes these arguments
        return {}
    except ImportError as error:
        if not _REMOVED.search(error.msg):
            raise
        return {}
    if getattr(package, "CONTRACT", 1) < 3:
        return {}
    return {**package.KERNELS, **getattr(package, "MIXED", {})}
