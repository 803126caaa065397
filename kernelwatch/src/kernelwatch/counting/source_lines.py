"""What each source line of the kernels costs, beside a machine's results.

A run that counts the checkout's commit adds the kernels that are not there yet; publishing only reads them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelwatch import suite
from kernelwatch.counting import metrics, transactions
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import fingerprint
from kernelwatch.kernel import Launch
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.sources import Source
from kernelwatch.store import reading, record
from kernelwatch.store.models import Lines
from ptxcount import listing

#: What stands for the lines of a kernel that has none.
NONE = "no source line accesses memory"


def launches(classes: Container[str] | None = None) -> list[Launch]:
    """Return each kernel's counted launch that tells most, in the suite's order; if so asked, of some classes alone."""
    found = {}
    for sweep in suite.current().counted:
        for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
            found[kernel] = sweep.name, sweep.launch({**sweep.chosen(), "kernel": kernel})
    every = (found[name] for name in suite.current().kernels() if name in found)
    return [launch for name, launch in every if classes is None or name in classes]


def key(launch: Launch) -> str:
    """Return what the lines of a launch depend on, but for the counter: the kernel's source and its geometry."""
    kernel = suite.kernel(launch.kernel)
    shape = kernel.geometry(launch.dtype, **launch.arguments)
    return fingerprint.of(source(kernel, launch.dtype).whole(), str(launch), shape.grid, shape.block)


def source(kernel: Kernel, dtype: str) -> Source:
    """Return what a kernel's machine code comes from, as it is now."""
    return kernel.at_commit(dtype, metrics.ARCH)


def read(results: Path) -> dict[str, str]:
    """Return the lines that any machine stored, by `key`: today's counter's, or else those that came last.

    Of two that one counter told of one key, the first counts: a later one that says otherwise is not to be believed.
    """
    found: dict[tuple[str, str], str] = {}
    for line in (line for path in reading.listed(results, "*") for line in _stored(path)):
        found.setdefault((line.counter, line.key), line.text)
    by_age = sorted(
        found.items(), key=lambda each: each[0][0] == fingerprint.VERSION
    )  # today's last; else in their order
    return {key: text for (_, key), text in by_age}


def _stored(folder: Path) -> Iterator[Lines]:
    """Yield what a machine's folder has."""
    for path in record.paths(folder, record.LINES_FILE):
        yield from (line for _, line in reading.lines(path, Lines))


def missing(folder: Path, classes: Container[str] | None = None) -> Iterator[dict[str, Any]]:
    """Count, and yield as they are recorded, the kernels of `launches` that a machine's folder lacks.

    A kernel that cannot be counted, or whose output is wrong, is left out: the run has said so.
    """
    known = {(line.key, line.counter) for line in _stored(folder)}
    for launch in launches(classes):
        with suppress(*ERRORS, MemoryError):
            if (key(launch), fingerprint.VERSION) not in known and (text := _counted(launch)):
                yield {"key": key(launch), "counter": fingerprint.VERSION, "launch": str(launch), "text": text}


def _counted(launch: Launch) -> str:
    """The source with what each line costs; empty where the kernel's output is wrong."""
    result = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
    found = source(suite.kernel(launch.kernel), launch.dtype).lines_of()
    lines = listing.listing(result.counters, found).splitlines()[1:] or [NONE]  # the first names the file
    return "" if result.problem() else "\n".join(lines).expandtabs(4)
