"""Fingerprints of measurements: all that a number depends on, as a short text. Equal fingerprints, equal measurements.

A fingerprint holds the machine code, the launch, the reference, the conditions on a GPU, and the instrument's version.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec

from kernelwatch.config import settings
from kernelwatch.instrument.protocol import Job
from kernelwatch.suite import registry
from ptxcount.ptx.parser import essence

#: The instrument's version. Raise it with each change of kernelwatch or ptxcount after which a number may be another:
#: of how kernels are compiled, executed, counted, timed or verified. Then no number of before is taken over.
VERSION = "1"

#: Hexadecimal digits: of a million fingerprints, two are equal by accident with a chance of 3e-8.
DIGITS = 16

#: Fields of a job that no sample depends on: texts for messages, and who asks.
_TEXTS = ("name", "package_digest", "reference")

#: Facts of a GPU, of `machine.volatile`, that its times depend on and that are the same at any moment of a run.
_OF_GPU = (
    "uuid",
    "driver",
    "cuda",
    "max_sm_clock_mhz",
    "max_memory_clock_mhz",
    "memory_bus_bits",
    "power_limit_mw",
    "ecc",
    "application_sm_clock_mhz",
    "application_memory_clock_mhz",
)


#: The fetch granularity of the L2 cache of all times of before it was recorded: H100s and H200s have it by default.
L2_FETCH_BYTES = 64


def of(*parts: object) -> str:
    """Return the fingerprint of facts: numbers, texts, bytes, and lists and dicts of these."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:DIGITS]


@cache
def function(one: Callable[..., Any]) -> str:
    """Return the fingerprint of a function's module, and of all that this imports of its package and the suite's.

    Where the source does not say what that is, all of the installed package counts.
    """
    found, package = sources(one), registry.folder()
    if found is None:
        found = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    return of({module: path.read_bytes() for module, path in found.items()})


def sources(one: object) -> dict[str, Path] | None:
    """Return the files that a function's result can depend on, by their modules without the package's name.

    None if the source does not say: of what is no function of a module, and of a function that has variables of another
    one.
    """
    name = one.__globals__.get("__name__", "") if isinstance(one, FunctionType) and not one.__closure__ else ""
    if _file(name) is None:
        return None
    packages = {name.partition(".")[0], settings.package()}
    found: dict[str, Path] = {}
    todo = [name]
    while todo:
        name = todo.pop()
        path = _file(name)
        if path is not None and name not in found:
            found[name] = path
            todo += (each for each in _imported(name, path) if each.partition(".")[0] in packages)
    return {name.partition(".")[2]: path for name, path in found.items()}


@cache
def _file(name: str) -> Path | None:
    """Return a module's file, without importing it; None if there is no module, or no file of Python."""
    try:
        spec = importlib.util.find_spec(name) if name else None
    except (ImportError, ValueError):  # what would hold it is no package; __main__ has no spec
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


@cache
def _imported(name: str, path: Path) -> tuple[str, ...]:
    """Return the modules that one names in its imports, wherever they stand, and what may be modules of these."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found += (base, *(f"{base}.{alias.name}" for alias in node.names))
    return tuple(found)


def conditions(gpu: Mapping[str, object]) -> str:
    """Return the fingerprint of the instrument and a GPU; empty if nothing says which GPU it is."""
    fetch = gpu.get("l2_fetch_bytes", L2_FETCH_BYTES)
    facts = {name: gpu.get(name) for name in _OF_GPU}
    facts |= {"l2_fetch_bytes": fetch} if fetch != L2_FETCH_BYTES else {}
    return of(VERSION, facts) if gpu.get("uuid") else ""


def job(one: Job, *more: object) -> str:
    """Return the fingerprint of a job's samples, and of more facts that they depend on."""
    every = msgspec.structs.asdict(one).items()
    facts = {name: value for name, value in every if name not in _TEXTS and value is not msgspec.UNSET}
    return of(facts, *more)


@cache
def ptx(text: str, entry: str) -> str:
    """Return the fingerprint of one kernel's PTX: without other kernels, and without source lines and comments."""
    return of(essence(text, entry))
