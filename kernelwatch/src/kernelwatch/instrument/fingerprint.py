"""Fingerprints of measurements: all that a number depends on, as a short text. Equal fingerprints, equal measurements.

A fingerprint holds the machine code, the launch, the reference, the conditions on a GPU, and the instrument's version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from kernelwatch import suite
from kernelwatch.instrument import reached
from kernelwatch.instrument.job import Job
from ptxcount.parser import essence

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


def of(*parts: object) -> str:
    """Return the fingerprint of facts: numbers, texts, bytes, and lists and dicts of these."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:DIGITS]


@cache
def function(one: Callable[..., Any]) -> str:
    """Return the fingerprint of a function's module, and of all that this imports of its package and the suite's.

    Where the source does not say what that is, all of the installed package counts.
    """
    found, package = reached.files(one), suite.folder()
    if found is None:
        found = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    return of({module: path.read_bytes() for module, path in found.items()})


def conditions(gpu: Mapping[str, object]) -> str:
    """Return the fingerprint of the instrument and a GPU; empty if nothing says which GPU it is."""
    return of(VERSION, {name: gpu.get(name) for name in _OF_GPU}) if gpu.get("uuid") else ""


def job(one: Job, *more: object) -> str:
    """Return the fingerprint of a job's samples, and of more facts that they depend on."""
    facts = {name: value for name, value in msgspec.structs.asdict(one).items() if name not in _TEXTS}
    return of(facts, *more)


@cache
def ptx(text: str, entry: str) -> str:
    """Return the fingerprint of one kernel's PTX: without other kernels, and without source lines and comments."""
    return of(essence(text, entry))
