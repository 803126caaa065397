"""Settings of a project: `[tool.kernelwatch]` in its pyproject.toml; see docs/settings.md.

Functions that read it raise KernelwatchError if it is not valid.
"""

import difflib
import functools
import math
import operator
import sys
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from kernelwatch.config.project_root import ROOT
from kernelwatch.errors import KernelwatchError


class Settings(msgspec.Struct):
    """The table with its defaults. The default of `suite` depends on the project's files."""

    package: str = ""
    suite: str = ""
    trade: str = "numbers"
    limits: dict[str, Any] = {}


class _Tool(msgspec.Struct):
    kernelwatch: Settings = msgspec.field(default_factory=Settings)


class _Document(msgspec.Struct):
    tool: _Tool = msgspec.field(default_factory=_Tool)


@functools.cache
def _load_settings() -> Settings:
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 -- new in Python 3.11
    else:
        import tomli as tomllib  # noqa: PLC0415
    path = ROOT / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise KernelwatchError(f"{path}: is not TOML: {error}") from None
    try:
        own_settings = msgspec.convert(document, _Document).tool.kernelwatch
    except msgspec.ValidationError as error:
        problem, _, place = str(error).replace("`object`", "`table`").rpartition(" - at `$.")
        value: Any = functools.reduce(operator.getitem, place.rstrip("`").split("."), document)
        raise KernelwatchError(f"{path}: {place.rstrip('`')} is {value!r}; {problem}") from None
    refuse_unknown_names(document.get("tool", {}).get("kernelwatch", {}), own_settings.__struct_fields__)
    return own_settings


def refuse_unknown_names(names: Iterable[str], allowed: Collection[str], subtable: str = "") -> None:
    """Raise KernelwatchError if a name in `[tool.kernelwatch]`, or in its table `subtable`, is not allowed."""
    for name in names:
        if name not in allowed:
            similar = difflib.get_close_matches(name, allowed, 1)
            hint = f"did you mean {similar[0]!r}? " if similar else ""
            place = f"{ROOT / 'pyproject.toml'}: [tool.kernelwatch{subtable}]"
            raise KernelwatchError(f"{place} has {name!r}; {hint}allowed are {', '.join(allowed)}")


def suite_name() -> str:
    """Return the location of the project's suite, "module:name".

    The default is in benchmarks.kernels if this file exists (`kernelwatch init` writes it), else in benchmarks.suite.
    """
    module = "kernels" if (ROOT / "benchmarks" / "kernels.py").is_file() else "suite"
    return _load_settings().suite or f"benchmarks.{module}:SUITE"


def has_suite() -> bool:
    """Return whether the settings name a suite, or the file of `kernelwatch init` exists."""
    return bool(_load_settings().suite) or suite_name().startswith("benchmarks.kernels:")


def suite_folder() -> str:
    """Return the top-level package of the suite."""
    return suite_name().partition(":")[0].partition(".")[0]


def trade_policy() -> str:
    """Return the policy for a TRADE; the caller checks that it is one of `review.conclusion.TRADE_POLICIES`."""
    return _load_settings().trade


def evidence_limits() -> dict[str, float]:
    """Return metric, as the review names it -> maximum ratio of head to base; see `compare_commits`.

    Raises ValueError if a limit is not a finite number of at least 1.
    """
    limits = _load_settings().limits
    for name, ratio in limits.items():
        if type(ratio) not in (int, float) or not 1 <= ratio < math.inf:
            raise ValueError(
                f"the limit of {name} in pyproject.toml is {ratio!r}; allowed is a finite ratio of head to base, "
                "at least 1, such as 1.25"
            )
    return limits


def package_name() -> str:
    """Return the name of the measured package, which each commit provides; empty if no package is set."""
    return _load_settings().package


def code_folders() -> tuple[str, ...]:
    """Return the project's folders, relative to its root, whose code may affect numbers."""
    libraries = ("ptxcount/src", "kernelwatch/src")
    return tuple(
        folder for folder in (suite_folder(), package_name(), *libraries) if folder and (ROOT / folder).is_dir()
    )
