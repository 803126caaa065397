"""Count the memory transactions of a CUDA kernel, without a GPU.

ptxcount scale.cu --entry scale --grid 4 --block 256 y=float32[1024] float32:2

Without a grid, ptxcount lists the kernels, each with a suggested command.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from .cli.argument_words import make_arguments, make_variables, name_arguments
from .cli.ending import run_command, scratch_folder
from .cli.options import GATE_COMMANDS, attach_flags, escape_unprintable, is_gate_command, join_flags, parse_dimensions
from .counting.counters import LaunchCounters
from .engine.kernel_counts import compile_entry, count_compiled
from .engine.launch_context import STEP_LIMIT
from .report import costs, listing
from .report.suggested_launches import format_overview
from .source.cpp_types import check_arguments, find_declared
from .source.cuda_compiler import ARCH, Compilation
from .source.kernel_sources import find_chip, is_ptx
from .source.names import cpp_name
from .source.ptxas import list_machine_accesses
from .util import atomic_write
from .util.architectures import MEASURED
from .util.errors import LaunchError, PtxError
from .util.findings import RACES, UNWRITTEN
from .util.grammar import choose_form

#: Options that `count_compiled` gets unchanged.
_COUNT_OPTIONS = ("dynamic_shared", "step_limit", "time_limit", "races", "unwritten", "cluster")
#: Forms of arguments, as in the README.
_ARGUMENT_TABLE = """\
arguments of the kernel:
  x=float32[64,64]                     an array of 0, 1, 2, ...
  x=float32[64]=zeros, =ones           an array of zeros, or of ones
  x=float32[64]=random(seed,low,high)  numbers from low up to, but not including, high
  x=float32[64]=random(seed)           floats in [0, 1); integers below the length of x; bools
  x=int32[64]=permutation(seed)        each of 0, 1, 2, ... once
  x=@file.npy                          an array from a file
  int32:7                              a scalar
  s={"x": "float32:1"}, bytes:00ff     a struct, by its members or its bytes
  t=texture(linear):float32[64,64]     a texture
Integers that a dtype cannot hold wrap around. A name before = labels an argument in the report. It may not be the name
of another parameter.
"""


class OutputError(LaunchError):
    """``--json`` or ``--html`` without a launch, or an ``--html`` that is a folder, or in a missing one."""


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # argparse would exit with 2, the code of an `OutputError`
        raise LaunchError(message)


def _make_parser() -> argparse.ArgumentParser:
    parser = _ArgumentParser(
        "ptxcount",
        usage="%(prog)s FILE [--entry NAME] [--grid X,Y,Z --block X,Y,Z ARG ...] [options]\n"
        "       %(prog)s init | pin | check | compare  (each has its own --help)",
        description=__doc__,
        epilog=f"{_ARGUMENT_TABLE}\nExit codes: 0 counted, also with findings; 1 the kernel faults or cannot be run; "
        "2 --json or --html without a launch, or --html does not name a file in an existing folder.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="CUDA C++, PTX, or a cubin with -lineinfo")
    text = "the kernel's arguments, in order, written as in the table below"
    parser.add_argument("words", nargs="*", metavar="ARG", help=text)
    text = "the kernel's name, such as scale or blur<float>, if the file has several"
    parser.add_argument("--entry", metavar="NAME", help=text)
    parser.add_argument("--grid", type=parse_dimensions, metavar="X,Y,Z", help="blocks of the grid")
    parser.add_argument("--block", type=parse_dimensions, metavar="X,Y,Z", help="threads of a block")
    text = "cluster size in blocks (default: as in the source)"
    parser.add_argument("--cluster", type=parse_dimensions, metavar="X,Y,Z", help=text)
    text = "include folder for nvcc"
    parser.add_argument("-I", action="append", default=[], dest="include", metavar="FOLDER", help=text)
    parser.add_argument("--flags", metavar="FLAGS", help="options for nvcc, as --flags='-O3 -std=c++20'")
    parser.add_argument("--arch", help=f"architecture to compile for, such as sm_100 (default: {ARCH})")
    text = "dynamic shared memory (default: 0)"
    parser.add_argument("--dynamic-shared", type=int, default=0, metavar="BYTES", help=text)
    text = f"maximum PTX instructions of each group of blocks that ptxcount runs together (default: {STEP_LIMIT})"
    parser.add_argument("--step-limit", type=int, default=STEP_LIMIT, metavar="N", help=text)
    text = "wall-clock limit. Without it, a kernel stops after 20 s of CPU time without progress"
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help=text)
    text = "report: list races and stale reads after the counts; strict: also list stores that do not change the "
    text += "value, and volatile accesses of one warp; error: end the kernel; off: no check (default: %(default)s)"
    parser.add_argument("--races", choices=RACES, default=RACES[0], help=text)
    text = "reads of shared or tensor memory that was never written. report: list them after the counts; error: end "
    text += "the kernel; off: no check (default: %(default)s)"
    parser.add_argument("--unwritten", choices=UNWRITTEN, default=UNWRITTEN[0], help=text)
    text = "value of a __constant__ or __device__ variable: NAME=dtype[shape]=FILL"
    parser.add_argument("--variable", action="append", default=[], metavar="ARG", help=text)
    text = "file or folder whose source lines are also printed. Without it: files of the compilation; for PTX, those "
    text += "of the current folder"
    parser.add_argument("--source", action="append", default=[], type=Path, metavar="PATH", help=text)
    parser.add_argument("--json", action="store_true", help="print totals and source lines as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the listing as an HTML page")
    parser.add_argument("--version", action="version", version=f"ptxcount {version('ptxcount')}")
    return parser


def _make_report(words: Sequence[str]) -> str:
    """Return the text to print: the listing or JSON of a launch; without ``--grid``, the file's kernels."""
    options = _make_parser().parse_intermixed_args(attach_flags(words))
    _check_options(options)
    if options.grid is None:
        flags = join_flags(options.include, options.flags)
        return format_overview(options.file, flags, options.arch or ARCH, options.entry)
    return _render(options, *_count(options))


def _check_options(options: argparse.Namespace) -> None:
    file = options.file
    if file is None or not (file.suffix or file.exists()):
        problem = "FILE is missing" if file is None else f"{file} does not exist"
        raise LaunchError(f"{problem}; give a file, or a subcommand: {', '.join(GATE_COMMANDS)}")
    if is_ptx(file) and (options.flags or options.arch or options.include):
        raise LaunchError(f"{file} is PTX or a cubin; remove --flags, --arch and -I, which are for CUDA C++")
    missing = [f"--{name}" for name in ("grid", "block") if getattr(options, name) is None]
    outputs = [f"--{name}" for name in ("json", "html") if getattr(options, name)]
    if missing and outputs:
        raise OutputError(f"{outputs[0]} needs a launch; give {' and '.join(missing)}")
    if missing and (len(missing) == 1 or options.words):
        advice = "to list the kernels, omit --grid, --block and the kernel's arguments"
        raise LaunchError(f"{' and '.join(missing)} {choose_form(len(missing), 'is', 'are')} missing; {advice}")
    if options.html and (options.html.is_dir() or not options.html.parent.is_dir()):
        problem = "is a folder" if options.html.is_dir() else "is in a folder that does not exist"
        raise OutputError(f"--html {options.html} {problem}; give a file in an existing folder")
    for path in options.source:
        if not path.exists():
            raise LaunchError(f"--source {path} does not exist; give a file or a folder")


def _count(options: argparse.Namespace) -> tuple[Compilation, str, LaunchCounters]:
    file = options.file
    flags, arch = join_flags(options.include, options.flags), options.arch or ARCH
    compilation, entry = compile_entry(file, options.entry, flags, arch)
    if options.words and not is_ptx(file) and not find_declared(entry, compilation.files):
        warning = f"argument names are unchecked: found no plain declaration of {cpp_name(entry)}; check their order"
        sys.stderr.write(f"warning: {warning}\n")
    arguments = make_arguments(options.words)
    check_arguments(arguments, options.words, entry, compilation.files)
    counters = count_compiled(
        compilation.ptx,
        entry,
        options.grid,
        options.block,
        arguments,
        flags=flags,
        arch=options.arch,
        variables=make_variables(options.variable),
        names=name_arguments(options.words),
        **{name: getattr(options, name) for name in _COUNT_OPTIONS},
    )
    if any(access.space == "local" for access in counters.accesses):
        rows = list_machine_accesses(compilation.ptx, entry, flags, options.arch)
        counters = replace(counters, stack_frame=rows[0]["bytes"] if rows else None)
    return compilation, entry, counters


def _render(options: argparse.Namespace, compilation: Compilation, entry: str, counters: LaunchCounters) -> str:
    """Return the listing or, with ``--json``, the JSON; with ``--html``, also write the page."""
    file = options.file
    # PTX can name any file as its source, so only files of the current folder are shown.
    sources = [Path()] if is_ptx(file) else compilation.files
    find_lines = listing.read_source_lines([*sources, *options.source])
    title = f"{options.entry or cpp_name(entry)} of {file}, grid {options.grid}, block {options.block}"
    if (arch := find_chip(compilation.ptx, options.arch)).replace("compute", "sm").rstrip("af") != MEASURED:
        title += f"\nCounts for {arch} follow the rules of {MEASURED}, the only ones compared with a GPU's counters."
    cost_text = costs.format_costs(counters, options.words, find_lines)
    text = listing.format_report(counters, find_lines, title, cost_text)
    if options.html:
        atomic_write.write(options.html, listing.format_page(escape_unprintable(text)))
    return listing.format_json(counters, find_lines) if options.json else text


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line; return its exit code.

    A gate command returns the gate's code. Counting returns 0, 1 if it fails, 2 for an `OutputError`, or a code of
    `run_command`.
    """
    command_words = sys.argv[1:] if words is None else words
    if is_gate_command(command_words):
        from .gate.command import main as run_gate  # noqa: PLC0415 - counting does without

        return run_gate(command_words)
    return run_command("ptxcount", lambda: _run_count(command_words), 1)


def _run_count(words: Sequence[str]) -> int:
    try:
        with scratch_folder("ptxcount-"):
            text, encoding = escape_unprintable(_make_report(words)), sys.stdout.encoding or "utf-8"
            # A source may have characters that the terminal lacks.
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    except BrokenPipeError:  # an OSError without a message: `run_command` returns its exit code
        raise
    except (PtxError, OSError) as error:
        sys.stderr.write(escape_unprintable(f"{type(error).__name__}: {error}\n"))
        return 2 if isinstance(error, OutputError) else 1
    except MemoryError as error:
        sys.stderr.write(f"MemoryError: the arrays do not fit in this machine's memory: {error}; use smaller ones\n")
        return 1
    return 0
