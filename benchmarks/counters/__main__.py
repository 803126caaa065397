"""Count the memory transactions of a kernel of the catalog, or of anyone's.

python -m benchmarks.counters transpose_read_coalesced rows=65 columns=33 --dtype float32
python -m benchmarks.counters --source scale.cu --entry scale --grid 4 --block 256 y=float32[1024] float32:2
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.counters import foreign, listing
from benchmarks.instruments import counted
from benchmarks.instruments.ptx.counters import LaunchCounters
from benchmarks.instruments.ptx.errors import LaunchError, PtxError
from benchmarks.instruments.ptx.execute import STEP_LIMIT, run
from gpu_kernels import catalog, flags
from gpu_kernels.errors import GpuKernelsError

#: The element type of a kernel of the catalog, unless said.
DTYPE = "float32"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.counters", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="KERNEL NAME=VALUE ... | ARG ...",
        help="a kernel of the catalog and its arguments; with --source the arguments in the kernel's order: an array "
        "as name=float32[1024,1024], holding 0, 1, 2, ..., or name=float32[1024]=zeros, a scalar as int32:7",
    )
    parser.add_argument("--dtype", help=f"the element type of a kernel of the catalog ({DTYPE})")
    parser.add_argument("--flags", help=f"flags of nvcc (catalog: {flags.DEFAULT!r} and others)")
    parser.add_argument("--source", type=Path, metavar="FILE.cu", help="count a kernel of this file")
    parser.add_argument("--entry", metavar="NAME", help="the kernel's name in the file")
    parser.add_argument("--grid", type=foreign.dimensions, metavar="X,Y,Z", help="blocks of the grid")
    parser.add_argument("--block", type=foreign.dimensions, metavar="X,Y,Z", help="threads of a block")
    parser.add_argument("--dynamic-shared", type=int, metavar="BYTES", help="dynamic shared memory (0)")
    parser.add_argument("--arch", help=f"the architecture to compile a file for ({counted.ARCH})")
    parser.add_argument("--step-limit", type=int, help=f"instructions before a kernel is stopped ({STEP_LIMIT})")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    return parser


def _refuse(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raise LaunchError if an option was given that means nothing here: nothing is ignored in silence."""
    given = [f"--{name}" for name in names if getattr(options, name.replace("-", "_")) is not None]
    if given:
        raise LaunchError(f"{', '.join(given)}: {why}")


def _catalog(options: argparse.Namespace) -> tuple[str, LaunchCounters, listing.Lines]:
    if not options.words:
        raise LaunchError(f"a kernel is wanted: {', '.join(catalog.KERNELS)}; or --source")
    _refuse(options, ("entry", "grid", "block", "dynamic-shared", "arch", "step-limit"), "goes with --source only")
    name, *words = options.words
    arguments: dict[str, int] = {}
    for word in words:
        key, _, value = word.partition("=")
        if not value.lstrip("-").isdecimal():
            raise LaunchError(f"argument {word!r}: NAME=INTEGER is wanted")
        if key in arguments:
            raise LaunchError(f"argument {word!r}: {key} is given twice")
        arguments[key] = int(value)
    flag_set = flags.DEFAULT if options.flags is None else options.flags
    dtype = options.dtype or DTYPE
    result = counted.count(name, dtype, flag_set, **arguments)
    problem = result.problem()
    if problem is not None:
        raise LaunchError(f"{name}: {problem}; no counters of a wrong kernel")
    geometry = result.geometry
    title = f"{' '.join(options.words)}, {dtype}, {flag_set}, grid {geometry.grid}, block {geometry.block}"
    lines = catalog.get(name).source_text().splitlines()
    return title, result.counters, lambda _: lines


def _foreign(options: argparse.Namespace) -> tuple[str, LaunchCounters, listing.Lines]:
    missing = [f"--{name}" for name in ("entry", "grid", "block") if getattr(options, name) is None]
    if missing:
        raise LaunchError(f"--source goes with {', '.join(missing)}")
    _refuse(options, ("dtype",), "is for kernels of the catalog; an array of one's own has its dtype in its ARG")
    arguments = foreign.arguments(options.words)
    compiled = foreign.compile_source(options.source, options.entry, options.flags or "", options.arch or counted.ARCH)
    counters = run(
        compiled.ptx,
        compiled.entry,
        options.grid,
        options.block,
        arguments,
        dynamic_shared=options.dynamic_shared or 0,
        step_limit=options.step_limit or STEP_LIMIT,
    )
    title = f"{options.entry} of {options.source}, grid {options.grid}, block {options.block}"
    return title, counters, listing.read_lines


def _joined(words: Sequence[str]) -> list[str]:
    """``--flags -O3`` as one word: argparse would take the flags of nvcc for options of its own."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--flags":
            joined[-1] = f"--flags={word}"
        else:
            joined.append(word)
    return joined


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 1 with the reason on standard error."""
    options = _parser().parse_intermixed_args(_joined(sys.argv[1:] if words is None else words))
    try:
        title, counters, lines_of = _catalog(options) if options.source is None else _foreign(options)
    except (PtxError, GpuKernelsError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    except MemoryError as error:
        sys.stderr.write(f"MemoryError: the arrays do not fit in this machine's memory: {error}; use smaller ones\n")
        return 1
    if options.json:
        sys.stdout.write(json.dumps(counters.totals(), indent=2) + "\n")
    else:
        sys.stdout.write("\n\n".join([title, listing.table(counters), listing.listing(counters, lines_of)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
