"""What a project's pyproject.toml says in `[tool.kernelwatch]`; see docs/settings.md."""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

from kernelwatch.config.project_root import ROOT


@cache
def _project() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 -- not before 3.11
    else:
        import tomli as tomllib  # noqa: PLC0415
    path = ROOT / "pyproject.toml"
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    own: dict[str, Any] = found.get("tool", {}).get("kernelwatch", {})
    return own


def suite() -> str:
    """Return where the project's suite is: a module and a name in it.

    If the project does not say, benchmarks.kernels where there is such a file, as `kernelwatch init` writes it, else
    benchmarks.suite.
    """
    module = "kernels" if (ROOT / "benchmarks" / "kernels.py").is_file() else "suite"
    return str(_project().get("suite", f"benchmarks.{module}:SUITE"))


def suite_folder() -> str:
    """Return the folder of the suite, which asv takes for the benchmarks'."""
    return suite().partition(":")[0].partition(".")[0]


def trade() -> str:
    """Return what may become worse in a TRADE that passes, one of `kernelwatch.review.conclusion.TRADES`."""
    return str(_project().get("trade", "numbers"))


def limits() -> dict[str, float]:
    """Return how far evidence may rise without times: ratios of head to base, by the names that the review prints.

    Raises
    ------
    ValueError
        One is no finite number of at least 1.
    """
    found: dict[str, Any] = _project().get("limits", {})
    for name, ratio in found.items():
        if type(ratio) not in (int, float) or not 1 <= ratio < math.inf:
            raise ValueError(
                f"the limit of {name} in pyproject.toml is {ratio!r}; allowed is a finite ratio of head to base "
                "from 1 on, such as 1.25"
            )
    return found


def package() -> str:
    """Return the name of the package that asv installs at each commit, the code that is measured; empty if not said."""
    return str(_project().get("package", ""))


def code() -> tuple[str, ...]:
    """Return the project's folders whose code a number may depend on."""
    libraries = ("ptxcount/src", "kernelwatch/src")
    return tuple(each for each in (suite_folder(), package(), *libraries) if each and (ROOT / each).is_dir())
