"""Count the memory transactions of a kernel of the suite, without a GPU.

kernelwatch count transpose rows=65 columns=33 float32 -Xptxas -O3

For a kernel of your own, use the command `ptxcount`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kernelwatch.counting import source_lines, transactions
from kernelwatch.errors import ERRORS
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from ptxcount.report import listing


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Return 0, or 1 with the reason on standard error."""
    given = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"The kernels are {', '.join(registry.current().kernels())}.",
    )
    parser.add_argument("launch", nargs="*", metavar="KERNEL NAME=NUMBER ... DTYPE FLAGS", help="a launch")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    # argparse would take nvcc's flags for options of its own.
    options = [word for word in given if word in ("-h", "--help", "--json")]
    as_json: bool = parser.parse_args(options).json
    try:
        launch = Launch.parse(" ".join(word for word in given if word not in options))
        result = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
    except ERRORS as error:
        return _refused(f"{type(error).__name__}: {error}")
    except MemoryError as error:
        return _refused(f"MemoryError: the arrays do not fit in this machine's memory: {error}; use smaller ones")
    if result.problem is not None:
        return _refused(f"{launch.kernel}: {result.problem}; a wrong kernel is not counted")
    if as_json:
        print(listing.format_json(result.counters))
        return 0
    title = f"{launch}, grid {result.geometry.grid}, block {result.geometry.block}"
    lines_of = source_lines.source(registry.kernel(launch.kernel), launch.dtype).lines_of()
    print(title, listing.format_table(result.counters), listing.format_listing(result.counters, lines_of), sep="\n\n")
    return 0


def _refused(why: str) -> int:
    print(why, file=sys.stderr)
    return 1
