"""Count the memory transactions of a kernel of the suite, without a GPU.

kernelwatch count transpose rows=65 columns=33 float32 -Xptxas -O3

For a kernel of your own, use the command `ptxcount`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kernelwatch import suite
from kernelwatch.command import without_traceback
from kernelwatch.counting import source_lines, transactions
from kernelwatch.errors import ERRORS
from kernelwatch.kernel import Launch
from ptxcount import listing


def _launch(words: Sequence[str]) -> tuple[Launch, bool]:
    """Return the launch that a command line names, and whether JSON is wanted. Raises as `Launch.parse`."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"The kernels are {', '.join(suite.current().kernels())}.",
    )
    parser.add_argument("launch", nargs="*", metavar="KERNEL NAME=NUMBER ... DTYPE FLAGS", help="a launch")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    # argparse would take nvcc's flags for options of its own.
    options = [word for word in words if word in ("-h", "--help", "--json")]
    as_json: bool = parser.parse_args(options).json
    return Launch.parse(" ".join(word for word in words if word not in options)), as_json


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Return 0, or 1 with the reason on standard error, or 2 after an unexpected error."""
    try:
        launch, as_json = _launch(sys.argv[1:] if words is None else words)
        result = transactions.count(launch.kernel, launch.dtype, launch.flags, **launch.arguments)
        problem = result.problem()
    except ERRORS as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    except MemoryError as error:
        sys.stderr.write(f"MemoryError: the arrays do not fit in this machine's memory: {error}; use smaller ones\n")
        return 1
    if problem is not None:
        sys.stderr.write(f"{launch.kernel}: {problem}; a wrong kernel is not counted\n")
        return 1
    if as_json:
        sys.stdout.write(listing.as_json(result.counters) + "\n")
        return 0
    title = f"{launch}, grid {result.geometry.grid}, block {result.geometry.block}"
    lines_of = source_lines.source(suite.kernel(launch.kernel), launch.dtype).lines_of()
    shown = [title, listing.table(result.counters), listing.listing(result.counters, lines_of)]
    sys.stdout.write("\n\n".join(shown) + "\n")
    return 0
