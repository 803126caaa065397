"""Fingerprints of measurements: short hashes of everything on which a number depends.

A number depends on the machine code or PTX, the launch, the reference, and the library's VERSION. Times also depend on
the conditions on a GPU.
"""

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
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument.job_messages import Job
from kernelwatch.suite import registry
from ptxcount.ptx.parser import list_essential_tokens

#: Version of the measurement. Raise it with each change of kernelwatch or ptxcount that may change a number. Then
#: earlier numbers are not reused.
VERSION = "1"

#: Version of ptxcount's counting rules. Raise it with each change of ptxcount that may change a count but not a time.
_COUNTING_VERSION = 16

#: Number of hexadecimal digits. The probability that two of a million fingerprints are equal is 3e-8.
DIGITS = 16

#: Fields of a job that do not affect its samples.
_TEXT_FIELDS = ("name", "package_digest", "reference")

#: Facts of `machine.volatile_facts` that affect times and are constant during a run.
_GPU_FACTS = (
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

#: Default L2 fetch granularity of H100s and H200s in bytes, for runs that did not record it.
L2_FETCH_BYTES = 64


def hash_facts(*parts: object) -> str:
    """Return the fingerprint of facts: numbers, strings, bytes, and lists and dicts of these."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:DIGITS]


@cache
def hash_function(function: object) -> str:
    """Return the fingerprint of a function's sources, as `find_sources` finds them.

    Without these, hash all modules of the measured package. For a closure or a callable object, hash the suite's
    modules, too, because the suite may have created it.
    """
    files, package = find_sources(function), registry.find_measured_folder()
    if files is None:
        files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
        suite = ROOT / settings.suite_folder()
        files |= {f"suite/{path.relative_to(suite)}": path for path in suite.rglob("*.py") if callable(function)}
    return hash_facts({module: path.read_bytes() for module, path in files.items()})


def list_function_facts(function: Callable[..., Any]) -> list[Any]:
    """Return facts that identify a user's function: hash of its sources, name and line, and defaults of parameters.

    Name and line distinguish the functions of one module; callable objects that are not functions have neither.
    """
    code = getattr(function, "__code__", None)
    defaults = [getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__")]
    definition = [function.__qualname__, code.co_firstlineno] if code is not None else []
    return [hash_function(function), definition, repr(defaults)]


def find_sources(function: object) -> dict[str, Path] | None:
    """Return the files that can affect a function's result: name of a module without its package -> file.

    They are the function's module, and all modules that it imports, also indirectly, from its own package and from the
    measured package. If two modules get the same name, the second keeps its package. Return None for closures, and for
    objects that are not functions of a module: other files may affect them.
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        return None
    name = function.__globals__.get("__name__", "")
    if _module_file(name) is None:
        return None
    packages = {name.partition(".")[0], settings.package_name()}
    files: dict[str, Path] = {}
    pending = [name]
    while pending:
        name = pending.pop()
        path = _module_file(name)
        if path is not None and name not in files:
            files[name] = path
            pending += (module for module in list_imports(name, path) if module.partition(".")[0] in packages)
    sources: dict[str, Path] = {}
    for name, path in files.items():
        short_name = name.partition(".")[2]
        sources[name if short_name in sources else short_name] = path
    return sources


@cache
def _module_file(name: str) -> Path | None:
    """Return a module's Python file, or None. This imports the packages that contain the module."""
    try:
        spec = importlib.util.find_spec(name) if name else None
    except (ImportError, ValueError):  # the parent is not a package; __main__ has no spec
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


@cache
def list_imports(name: str, path: Path) -> tuple[str, ...]:
    """Return the modules that a module imports, also in functions, and names that may be submodules of them."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            modules += (base, *(f"{base}.{alias.name}" for alias in node.names))
    return tuple(modules)


def format_counter_version() -> str:
    """Return the version of counts; a new version makes runs count again."""
    return f"{VERSION}.{_COUNTING_VERSION}"


def hash_conditions(gpu: Mapping[str, object]) -> str:
    """Return the fingerprint of VERSION and of the facts of a GPU that affect times; empty if the GPU has no UUID."""
    fetch = gpu.get("l2_fetch_bytes", L2_FETCH_BYTES)
    facts = {name: gpu.get(name) for name in _GPU_FACTS}
    facts |= {"l2_fetch_bytes": fetch} if fetch != L2_FETCH_BYTES else {}
    return hash_facts(VERSION, facts) if gpu.get("uuid") else ""


def hash_job(job: Job, *further_facts: object) -> str:
    """Return the fingerprint of a job without its _TEXT_FIELDS, and of further facts that affect its samples."""
    fields = msgspec.structs.asdict(job).items()
    facts = {name: value for name, value in fields if name not in _TEXT_FIELDS and value is not msgspec.UNSET}
    return hash_facts(facts, *further_facts)


@cache
def hash_ptx(text: str, entry: str) -> str:
    """Return the fingerprint of one kernel's PTX, without other kernels, source lines and comments."""
    return hash_facts(list_essential_tokens(text, entry))
