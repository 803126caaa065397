"""Fingerprints of measurements: all that a number depends on, as a short text. Equal fingerprints, equal measurements.

Whatever is not known to be without effect is part of it. A fingerprint that changes without need costs a measurement;
one that does not change where it should would show an old number for a new one.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from kernelwatch import settings, suite
from kernelwatch.instrument import reached
from kernelwatch.instrument.job import Job
from kernelwatch.project import ROOT
from ptxcount.parser import essence

#: Hexadecimal digits: of a million fingerprints, two are equal by accident with a chance of 3e-8.
DIGITS = 16

#: Fields of a job that no sample depends on: texts for messages, and who asks.
_TEXTS = ("name", "commit", "reference")

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

#: The code that measures, of this library and of ptxcount, wherever they are installed; and in this library what counts
#: of it: files of Python, and of CUDA.
_LIBRARY = Path(__file__).parents[1]
_PTXCOUNT = Path(str(getattr(find_spec("ptxcount"), "origin", ""))).parent
_ROOMS = ("toolchain", "kernel", "instrument", "counting", "benchmarks")
_FILES = ("suite.py", "sweep.py", "settings.py", "errors.py", "runner/counts.py", "runner/times.py")


def of(*parts: object) -> str:
    """Return the fingerprint of facts: numbers, texts, bytes, and lists and dicts of these."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:DIGITS]


def code(paths: Iterable[Path], root: Path) -> str:
    """Return the fingerprint of source files, each by its path below a folder."""
    return of({path.relative_to(root).as_posix(): path.read_bytes() for path in paths})


@cache
def function(one: Callable[..., Any]) -> str:
    """Return the fingerprint of a function's module, and of all that this imports of its package and the suite's.

    Where the source does not say what that is, all of the installed package counts.
    """
    found, package = reached.files(one), suite.folder()
    if found is None:
        return code(package.rglob("*.py"), package)
    return of({module: path.read_bytes() for module, path in found.items()})


@cache
def counter() -> str:
    """Return the fingerprint of everything that a counted number passes through, from inputs to what asv stores."""
    counting = (path for path in _PTXCOUNT.rglob("*.py") if path.parent.name != "gate")
    return of(*_measuring(".py"), code(counting, _PTXCOUNT))


def _measuring(*kinds: str) -> list[str]:
    """The fingerprints of the library's rooms that measure, and of the suite."""
    own = {path for room in _ROOMS for path in (_LIBRARY / room).rglob("*") if path.suffix in kinds}
    handed_over = ROOT / settings.suite_folder()
    return [
        code(own | {_LIBRARY / name for name in _FILES}, _LIBRARY),
        code((path for path in handed_over.rglob("*") if path.suffix in kinds), handed_over),
    ]


def instrument() -> str:
    """Return the fingerprint of what a time passes through, from inputs to what asv stores, and of two packages."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    loaded = {Path(file) for file in files if file and Path(file).is_relative_to(_PTXCOUNT)}
    versions = [_version(name) for name in ("pycuda", "cuda-bindings")]
    return of(*_measuring(".py", ".cu"), code(loaded, _PTXCOUNT), versions)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def conditions(gpu: Mapping[str, object]) -> str:
    """Return the fingerprint of this process's instrument and a GPU; empty if nothing says which GPU it is."""
    return of(instrument(), {name: gpu.get(name) for name in _OF_GPU}) if gpu.get("uuid") else ""


def job(one: Job, *more: object) -> str:
    """Return the fingerprint of a job's samples, and of more facts that they depend on."""
    facts = {name: value for name, value in msgspec.structs.asdict(one).items() if name not in _TEXTS}
    return of(facts, *more)


@cache
def ptx(text: str, entry: str) -> str:
    """Return the fingerprint of one kernel's PTX: without other kernels, and without source lines and comments."""
    return of(essence(text, entry))
