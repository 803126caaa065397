"""What each source line of the kernels costs, in `lines.jsonl` beside a machine's results.

A run that counts adds the kernels of the checkout that are not there yet; publishing only reads them. The command adds
them without a run: `kernelwatch lines FOLDER`.
"""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelwatch import suite
from kernelwatch.counting import transactions
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import fingerprint
from kernelwatch.kernel import Launch
from kernelwatch.kernel.kernel import Kernel
from kernelwatch.kernel.sources import Source
from kernelwatch.store import jsonl, reading
from kernelwatch.store.models import Lines
from ptxcount import listing

FILE = "lines.jsonl"

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
    return kernel.at_commit(dtype, transactions.ARCH)


def read(results: Path) -> dict[str, str]:
    """Return the lines that any machine stored, by `key`: today's counter's, or else those that came last.

    Of two that one counter told of one key, the first counts: a later one that says otherwise is not to be believed.
    """
    found: dict[tuple[str, str], str] = {}
    for path in sorted(results.glob(f"*/{FILE}")):
        for _, line in reading.lines(path, Lines):
            found.setdefault((line.counter, line.key), line.text)
    today = fingerprint.counter()
    by_age = sorted(found.items(), key=lambda each: each[0][0] == today)  # today's last; else in their order
    return {key: text for (_, key), text in by_age}


def missing(*folders: Path, classes: Container[str] | None = None) -> Iterator[dict[str, Any]]:
    """Count, and yield as a machine's file keeps them, the kernels of `launches` that its folders lack.

    A kernel that cannot be counted, or whose output is wrong, is left out: the run has said so.
    """
    counter = fingerprint.counter()
    known = {(line.key, line.counter) for folder in folders for _, line in reading.lines(folder / FILE, Lines)}
    for launch in launches(classes):
        with suppress(*ERRORS, MemoryError):
            if (key(launch), counter) not in known and (text := _counted(launch)):
                yield {"key": key(launch), "counter": counter, "launch": str(launch), "text": text}


def _counted(launch: Launch) -> str:
    """The source with what each line costs; empty where the kernel's output is wrong."""
    result = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
    found = source(suite.kernel(launch.kernel), launch.dtype).lines_of()
    lines = listing.listing(result.counters, found).splitlines()[1:] or [NONE]  # the first names the file
    return "" if result.problem() else "\n".join(lines).expandtabs(4)


def main(words: Sequence[str] | None = None) -> None:
    """Add what a machine's folder lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a machine's, such as results/no-gpu-x86_64")
    folder = parser.parse_args(words).folder
    if found := list(missing(folder)):
        jsonl.append(folder / FILE, *found)
    print(f"{folder / FILE}: {len(found)} kernels added")
