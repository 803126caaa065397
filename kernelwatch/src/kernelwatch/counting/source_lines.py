"""What each source line of the kernels costs, beside a machine's results.

A run that counts the checkout's commit adds the kernels that are not there yet; publishing only reads them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelwatch.counting import transactions
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import fingerprint
from kernelwatch.kernel import Launch
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.sources import Source
from kernelwatch.store import reading, record
from kernelwatch.store.models import CostsLine
from kernelwatch.suite import metrics, registry
from ptxcount.counting.counters import LaunchCounters
from ptxcount.report import listing
from ptxcount.report.picture import Grid, picture

#: A listing's line of source by its mark, number and text; and by mark and words what an access of it costs.
LINE, COST = re.compile(r"(>>|  ) *(\d+) {0,2}(.*)"), re.compile(r"(>>|  ) +\^ (.*)")

#: What stands for the lines of a kernel that has none.
NONE = "no source line accesses memory"


def launches(classes: Container[str] | None = None) -> list[Launch]:
    """Return each kernel's counted launch that tells most, in the suite's order; if so asked, of some classes alone."""
    found = {}
    for sweep in registry.current().counted:
        for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
            found[kernel] = sweep.name, sweep.launch({**sweep.chosen(), "kernel": kernel})
    every = (found[name] for name in registry.current().kernels() if name in found)
    return [launch for name, launch in every if classes is None or name in classes]


def key(launch: Launch) -> str:
    """Return what the lines of a launch depend on, but for the counter: the kernel's source and its geometry."""
    kernel = registry.kernel(launch.kernel)
    shape = kernel.geometry(launch.dtype, **launch.arguments)
    return fingerprint.of(source(kernel, launch.dtype).whole(), str(launch), shape.grid, shape.block)


def source(kernel: Kernel, dtype: str) -> Source:
    """Return what a kernel's machine code comes from, as it is now."""
    return kernel.at_commit(dtype, metrics.ARCH)


def read(results: Path) -> dict[str, CostsLine]:
    """Return the lines that any machine stored, by `key`: today's counter's, or else those that came last.

    Of two that one counter told of one key, the first counts, or the first with accesses if they say the same: a later
    one that says otherwise is not to be believed.
    """
    found: dict[tuple[str, str], CostsLine] = {}
    for line in (line for path in reading.list_paths(results, "*") for line in _stored(path)):
        first = found.setdefault((line.counter, line.key), line)
        if line.text == first.text and line.accesses and not first.accesses:
            found[line.counter, line.key] = line
    # Today's last; else those with accesses, in their order.
    by_age = sorted(found.values(), key=lambda line: (line.counter == fingerprint.VERSION, bool(line.accesses)))
    return {line.key: line for line in by_age}


def _stored(folder: Path) -> Iterator[CostsLine]:
    """Yield what a machine's folder has."""
    for path in record.list_record_paths(folder, record.LINES_FILE):
        yield from (line for _, line in reading.iter_lines(path, CostsLine))


def missing(folder: Path, classes: Container[str] | None = None) -> Iterator[dict[str, Any]]:
    """Count, and yield as they are recorded, the kernels of `launches` that a machine's folder lacks.

    A kernel that cannot be counted, or whose output is wrong, is left out: the run has said so.
    """
    known = {(line.key, line.counter) for line in _stored(folder) if line.accesses or line.text == NONE}
    for launch in launches(classes):
        with suppress(*ERRORS, MemoryError):
            if (key(launch), fingerprint.VERSION) not in known and (told := _counted(launch)):
                yield {"key": key(launch), "counter": fingerprint.VERSION, "launch": str(launch), **told}


def _counted(launch: Launch) -> dict[str, Any]:
    """The source with what each line costs; empty where the kernel's output is wrong."""
    result = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
    if result.problem:
        return {}
    found = source(registry.kernel(launch.kernel), launch.dtype).lines_of()
    lines = listing.listing(result.counters, found).splitlines()[1:] or [NONE]  # the first names the file
    return {"text": "\n".join(lines).expandtabs(4), "accesses": list(_accesses(result.counters))}


def _accesses(counters: LaunchCounters) -> Iterator[dict[str, Any]]:
    """What each access of a source line costs, in the order of files and lines."""
    places = {(file, line): each for (file, line), each in counters.by_line().items() if file and line}
    files = sorted({file for file, _ in places})
    for (file, line), each in sorted(places.items()):
        for access in each:
            unit = "wavefronts" if access.space == "shared" else "sectors"
            made = picture(access)
            drawn = {"now": _bits(made.now), "best": _bits(made.best)} if made else {}
            yield {"file": files.index(file), "line": line, "unit": unit, "amount": getattr(access, unit), **drawn}


def _bits(rows: Grid) -> list[int]:
    return [sum(1 << int(column) for column in row.nonzero()[0]) for row in rows]
