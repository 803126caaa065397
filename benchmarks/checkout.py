"""The `gpu_kernels` of today's checkout, beside the one that is installed.

asv installs each commit's package in turn and runs these benchmarks on it. What is measured comes from the installed
package: source, geometry, build and reference. What to measure comes from the checkout: names, axes, titles, and the
kernels of the instrument itself. asv discovers the benchmarks at one commit and rewrites `benchmarks.json`. If the axes
came from an old commit, results of newer ones would vanish from the site.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kernelwatch.project import ROOT

#: What the checkout's package is called where another is installed.
NAME = "gpu_kernels_of_checkout"


def _load() -> ModuleType:
    """Return the checkout's package: the installed one if they are the same, else a second copy, loaded as NAME."""
    source = ROOT / "gpu_kernels" / "__init__.py"
    installed = importlib.import_module("gpu_kernels")
    if installed.__file__ is not None and Path(installed.__file__).resolve() == source.resolve():
        return installed
    spec = importlib.util.spec_from_file_location(NAME, source, submodule_search_locations=[str(source.parent)])
    assert spec is not None, "the checkout has the package"
    assert spec.loader is not None, "it is a file"
    found = sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


if TYPE_CHECKING:
    import gpu_kernels

    today = gpu_kernels
else:
    today = _load()
