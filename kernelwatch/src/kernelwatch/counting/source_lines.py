"""Costs of the kernels' source lines, stored with a machine's results.

A run that counts the checkout's commit adds the costs of missing kernels; the website only reads them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwatch.errors import ERRORS
from kernelwatch.instrument import fingerprint
from kernelwatch.kernel import Launch
from kernelwatch.kernel.arguments import ScalarArgument
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.store import reading, record
from kernelwatch.store.models import CostsLine
from kernelwatch.suite import registry
from kernelwatch.suite.metrics import ARCH

if TYPE_CHECKING:
    from ptxcount.counting.counters import LaunchCounters
    from ptxcount.report.picture import Grid

#: Patterns of a listing: a source line, and a cost of an access. The mark is ">>" for wasteful accesses.
LINE = re.compile(r"(?P<mark>>>|  ) *(?P<number>\d+) {0,2}(?P<text>.*)")
COST = re.compile(r"(?P<mark>>>|  ) +\^ (?P<text>.*)")

#: Text that replaces the lines of a kernel without accesses.
NO_ACCESSES = "no source line accesses memory"


def select_launches(classes: Container[str] | None = None) -> list[Launch]:
    """Return a launch of each counted kernel, in the suite's order: the summary point of the kernel's last sweep.

    If `classes` is given, leave out kernels whose last sweep belongs to another benchmark class.
    """
    by_kernel = {}
    for sweep in registry.current_suite().counted:
        for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
            by_kernel[kernel] = sweep.name, sweep.launch({**sweep.summary_point(), "kernel": kernel})
    in_order = (by_kernel[name] for name in registry.current_suite().kernels() if name in by_kernel)
    return [launch for name, launch in in_order if classes is None or name in classes]


def launch_key(launch: Launch) -> str:
    """Return the hash of a launch's source, options, geometry and values, and of what its arrays contain.

    Launches with the same hash have the same costs of source lines, if one version of the counter and one release of
    nvcc counted both. Options with {T} or {bits} are not hashed.
    """
    kernel = registry.find_kernel(launch.kernel)
    shape = kernel.compute_geometry(launch.dtype, **launch.arguments)
    text, values = kernel.load_source(launch.dtype, ARCH).full_text(), list(_iter_values(kernel, launch))
    return fingerprint.hash_facts(text, str(launch), shape.grid, shape.block, *([values] if values else []))


def _iter_values(kernel: Kernel, launch: Launch) -> Iterator[list[str]]:
    """Yield the fixed options, then name and value of each scalar, array and variable.

    Values that the launch's text determines are left out.
    """
    if kernel.fixed_options:
        yield ["options", *kernel.fixed_options]
    for argument in kernel.bind_arguments(launch.dtype, **launch.arguments):
        if isinstance(argument, ScalarArgument):
            if launch.arguments.get(argument.name) != argument.value:
                yield [argument.name, repr(argument.value)]
        elif callable(argument.values):
            yield [argument.name, str(fingerprint.list_function_facts(argument.values))]
        elif argument.has_own_content:
            yield [argument.name, str(argument.values), str(argument.limit), str(argument.seed)]
        elif argument.seed:
            yield [argument.name, str(argument.seed)]
    for name, value in kernel.variable_values(launch.arguments).items():
        yield [name, str(value.dtype), value.tobytes().hex()]


def read_lines(results: Path) -> dict[str, CostsLine]:
    """Return `launch_key` -> stored costs of the source lines, from the records of all machines.

    A record of the current version of the counter is preferred, then a record with accesses. Of one version's records,
    the first is used. If it lacks accesses, the first with the same text and with accesses replaces it.
    """
    by_key: dict[tuple[str, str], CostsLine] = {}
    for folder in reading.list_paths(results):
        for line in _iter_stored(folder):
            first = by_key.setdefault((line.counter, line.key), line)
            if line.text == first.text and line.accesses and not first.accesses:
                by_key[line.counter, line.key] = line
    # Sort preferred records last, because the last record of a key is used.
    version = fingerprint.format_counter_version()
    lines = sorted(by_key.values(), key=lambda line: (line.counter == version, bool(line.accesses)))
    return {line.key: line for line in lines}


def _iter_stored(folder: Path) -> Iterator[CostsLine]:
    for path in record.list_record_paths(folder, record.LINES_FILE):
        yield from (line for _, line in reading.iter_lines(path, CostsLine))


def iter_missing(folder: Path, classes: Container[str] | None = None) -> Iterator[dict[str, Any]]:
    """Count the launches of `select_launches` without a record in a machine's folder; yield their records.

    Records of other versions of the counter do not count, nor old ones without accesses. Kernels that cannot be counted
    or have a wrong output are left out; the run has reported them.
    """
    stored = {(line.key, line.counter) for line in _iter_stored(folder) if line.accesses or line.text == NO_ACCESSES}
    version = fingerprint.format_counter_version()
    for launch in select_launches(classes):
        with suppress(*ERRORS, MemoryError):
            key = launch_key(launch)
            if (key, version) not in stored:
                costs = _annotate_source(launch)
                if costs:
                    yield {"key": key, "counter": version, "launch": str(launch), **costs}


def _annotate_source(launch: Launch) -> dict[str, Any]:
    """Return the source with each line's cost as "text", and the launch's "accesses"; empty if the output is wrong."""
    from kernelwatch.counting import launch_counts  # noqa: PLC0415 -- imports everything that executes PTX
    from ptxcount.report import listing  # noqa: PLC0415

    result = launch_counts.count_launch(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
    if result.problem:
        return {}
    read_source = registry.find_kernel(launch.kernel).load_source(launch.dtype, ARCH).make_line_reader()
    lines = listing.format_listing(result.counters, read_source).splitlines()[1:]  # the first line names the file
    lines = lines or [NO_ACCESSES]
    return {"text": "\n".join(lines).expandtabs(4), "accesses": list(_iter_accesses(result.counters))}


def _iter_accesses(counters: LaunchCounters) -> Iterator[dict[str, Any]]:
    """Yield the cost of each memory access that has a source line, as fields of `AccessCost`, by file and line."""
    from ptxcount.report.picture import draw_access  # noqa: PLC0415 -- imports everything that executes PTX

    places = {(file, line): accesses for (file, line), accesses in counters.by_line().items() if file and line}
    files = sorted({file for file, _ in places})
    for (file, line), accesses in sorted(places.items()):
        for access in accesses:
            unit = "wavefronts" if access.space == "shared" else "sectors"
            pattern = draw_access(access)
            grids = {"now": _row_bits(pattern.now), "best": _row_bits(pattern.best)} if pattern else {}
            yield {"file": files.index(file), "line": line, "unit": unit, "amount": getattr(access, unit), **grids}


def _row_bits(rows: Grid) -> list[int]:
    """Return each row of booleans as an integer whose bit i is column i: (True, False, True) -> 5."""
    return [sum(1 << int(column) for column in row.nonzero()[0]) for row in rows]
