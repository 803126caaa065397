"""Settings of a project: `[tool.kernelwatch]` in its pyproject.toml; see docs/settings.md."""

from __future__ import annotations

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
    """The table, with the defaults; without a `suite` it depends on the files of the project."""

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
        import tomllib  # noqa: PLC0415 -- not before 3.11
    else:
        import tomli as tomllib  # noqa: PLC0415
    path = ROOT / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise KernelwatchError(f"{path}: not TOML: {error}") from None
    try:
        own_settings = msgspec.convert(document, _Document).tool.kernelwatch
    except msgspec.ValidationError as error:
        problem, _, place = str(error).rpartition(" - at `$.")
        value: Any = functools.reduce(operator.getitem, place.rstrip("`").split("."), document)
        raise KernelwatchError(f"{path}: {place.rstrip('`')} is {value!r}; {problem}") from None
    refuse_unknown_names(document.get("tool", {}).get("kernelwatch", {}), own_settings.__struct_fields__)
    return own_settings


def refuse_unknown_names(names: Iterable[str], allowed: Collection[str], subtable: str = "") -> None:
    """Raise KernelwatchError for a name in `[tool.kernelwatch]`, or a table in it, that is not allowed."""
    for name in names:
        if name not in allowed:
            similar = difflib.get_close_matches(name, allowed, 1)
            hint = f"did you mean {similar[0]!r}? " if similar else ""
            place = f"{ROOT / 'pyproject.toml'}: [tool.kernelwatch{subtable}]"
            raise KernelwatchError(f"{place} has {name!r}; {hint}allowed are {', '.join(allowed)}")


def suite_name() -> str:
    """Return the place of the project's suite: a module and a name in it.

    The default is benchmarks.kernels if there is such a file, as `kernelwatch init` writes it, else benchmarks.suite.
    """
    module = "kernels" if (ROOT / "benchmarks" / "kernels.py").is_file() else "suite"
    return _load_settings().suite or f"benchmarks.{module}:SUITE"


def names_suite() -> bool:
    """Return whether the project names a suite, or has the file of `kernelwatch init`."""
    return bool(_load_settings().suite) or suite_name().startswith("benchmarks.kernels:")


def suite_folder() -> str:
    """Return the folder of the suite: the first part of its module's name."""
    return suite_name().partition(":")[0].partition(".")[0]


def trade_policy() -> str:
    """Return the kinds of numbers that may become worse in a TRADE, one of `kernelwatch.review.conclusion.TRADES`."""
    return _load_settings().trade


def evidence_limits() -> dict[str, float]:
    """Return the limits on evidence without times: ratios of head to base, by the names that the review prints.

    Raises
    ------
    ValueError
        A limit is no finite number of at least 1.
    """
    limits = _load_settings().limits
    for name, ratio in limits.items():
        if type(ratio) not in (int, float) or not 1 <= ratio < math.inf:
            raise ValueError(
                f"the limit of {name} in pyproject.toml is {ratio!r}; allowed is a finite ratio of head to base "
                "from 1 on, such as 1.25"
            )
    return limits


def package_name() -> str:
    """Return the name of the package that asv installs at each commit, the measured code; empty if it is not set."""
    return _load_settings().package


def code_folders() -> tuple[str, ...]:
    """Return the project's folders whose code a number may depend on."""
    libraries = ("ptxcount/src", "kernelwatch/src")
    return tuple(
        folder for folder in (suite_folder(), package_name(), *libraries) if folder and (ROOT / folder).is_dir()
    )
