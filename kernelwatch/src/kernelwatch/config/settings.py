"""Settings of a project: `[tool.kernelwatch]` in its pyproject.toml; see docs/settings.md."""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import KernelwatchError


@cache
def _load_settings() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 -- not before 3.11
    else:
        import tomli as tomllib  # noqa: PLC0415
    path = ROOT / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise KernelwatchError(f"{path}: not TOML: {error}") from None
    own_settings: dict[str, Any] = document.get("tool", {}).get("kernelwatch", {})
    return own_settings


def suite_name() -> str:
    """Return the place of the project's suite: a module and a name in it.

    The default is benchmarks.kernels if there is such a file, as `kernelwatch init` writes it, else benchmarks.suite.
    """
    module = "kernels" if (ROOT / "benchmarks" / "kernels.py").is_file() else "suite"
    return str(_load_settings().get("suite", f"benchmarks.{module}:SUITE"))


def names_suite() -> bool:
    """Return whether the project names a suite, or has the file of `kernelwatch init`."""
    return "suite" in _load_settings() or suite_name().startswith("benchmarks.kernels:")


def suite_folder() -> str:
    """Return the folder of the suite: the first part of its module's name."""
    return suite_name().partition(":")[0].partition(".")[0]


def trade_policy() -> str:
    """Return the kinds of numbers that may become worse in a TRADE, one of `kernelwatch.review.conclusion.TRADES`."""
    return str(_load_settings().get("trade", "numbers"))


def evidence_limits() -> dict[str, float]:
    """Return the limits on evidence without times: ratios of head to base, by the names that the review prints.

    Raises
    ------
    ValueError
        A limit is no finite number of at least 1.
    """
    limits: dict[str, Any] = _load_settings().get("limits", {})
    for name, ratio in limits.items():
        if type(ratio) not in (int, float) or not 1 <= ratio < math.inf:
            raise ValueError(
                f"the limit of {name} in pyproject.toml is {ratio!r}; allowed is a finite ratio of head to base "
                "from 1 on, such as 1.25"
            )
    return limits


def package_name() -> str:
    """Return the name of the package that asv installs at each commit, the measured code; empty if it is not set."""
    return str(_load_settings().get("package", ""))


def code_folders() -> tuple[str, ...]:
    """Return the project's folders whose code a number may depend on."""
    libraries = ("ptxcount/src", "kernelwatch/src")
    return tuple(
        folder for folder in (suite_folder(), package_name(), *libraries) if folder and (ROOT / folder).is_dir()
    )
