"""Fingerprints of measurements: all that a number depends on, as a short text. Equal fingerprints, equal measurements.

Whatever is not known to be without effect is part of it. A fingerprint that changes without need costs a measurement;
one that does not change where it should would show an old number for a new one.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import ROOT
from benchmarks.instruments.job import Job

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

#: What counts, what it is fed with, and what checks the output.
_COUNTER = (
    *(ROOT / "ptxcount" / "src" / "ptxcount").rglob("*.py"),
    *(ROOT / "benchmarks" / "instruments" / f"{name}.py" for name in ("inputs", "transactions", "verification")),
)

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def of(*parts: object) -> str:
    """Return the fingerprint of facts: numbers, texts, bytes, and lists and dicts of these."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:DIGITS]


def code(paths: Iterable[Path]) -> str:
    """Return the fingerprint of source files. Comments, docstrings and layout of Python do not count."""
    return of(
        {path.name: _tree(path.read_text("utf-8")) if path.suffix == ".py" else path.read_bytes() for path in paths}
    )


def _tree(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return ast.dump(tree)


@cache
def function(one: Callable[..., Any]) -> str:
    """Return the fingerprint of a function's own source; of the whole module's where that is not to be had."""
    try:
        return of(_tree(textwrap.dedent(inspect.getsource(one))))
    except (OSError, SyntaxError, TypeError):
        return code([Path(str(sys.modules[one.__module__].__file__))])


@cache
def counter() -> str:
    """Return the fingerprint of everything that counts."""
    return code(sorted(_COUNTER))


def instrument() -> str:
    """Return the fingerprint of what measures in this process: the repository's modules and kernels, and packages."""
    loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    own = {Path(file) for file in loaded if file and Path(file).is_relative_to(ROOT / "benchmarks")}
    own |= {ROOT / "runner" / "measuring.py", *(ROOT / "benchmarks" / "instruments").glob("*.cu")}
    return of(code(sorted(own)), [_version(name) for name in ("pycuda", "cuda-bindings")])


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


def ptx(text: str, entry: str) -> str:
    """Return the fingerprint of one kernel's PTX: without other kernels, and without source lines and comments."""
    head, *entries = text.split("\n.visible .entry ")
    kernel = next(each for each in entries if each.startswith(f"{entry}("))
    code_alone = kernel.split("\n\t.section", 1)[0]
    lines = (line.strip() for line in f"{head}\n{code_alone}".splitlines())
    return of([line for line in lines if line and not line.startswith((".loc", ".file", "//"))])
