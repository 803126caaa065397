"""Count the memory transactions of a kernel of the suite, without a GPU.

For other kernels, use the command `ptxcount`.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence

from kernelwatch.cli.failures import FAILED_CODE
from kernelwatch.counting import launch_counts
from kernelwatch.errors import ERRORS, CompilerWarning
from kernelwatch.kernel import Launch
from kernelwatch.kernel.launch import DTYPE, FLAGS, split_flags
from kernelwatch.suite import registry
from kernelwatch.suite.metrics import ARCH
from kernelwatch.toolchain import build, releases
from ptxcount.report import listing
from ptxcount.report.totals_table import format_table

#: PTX of a minimal kernel. nvcc assembles it only to reject wrong flags of ptxas, because counting does not use ptxas.
_PROBE = ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry probe() { ret; }\n"

#: Help of the positional arguments.
_LAUNCH_HELP = f"a kernel and its arguments; dtype and nvcc's flags may be left out (default: {DTYPE} {FLAGS})"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command. Return 0, or 2 with the reason on standard error."""
    arguments = sys.argv[1:] if words is None else words
    suite = registry.current_suite()
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Example: kernelwatch count {suite.example}\n\nThe kernels are {', '.join(suite.kernels())}.",
    )
    parser.add_argument("launch", nargs="*", metavar="KERNEL NAME=NUMBER ... DTYPE FLAGS", help=_LAUNCH_HELP)
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    # argparse would parse nvcc's flags as its own options.
    options = [word for word in arguments if word in ("-h", "--help", "--json")]
    as_json: bool = parser.parse_args(options).json
    try:
        launch = Launch.parse(" ".join(word for word in arguments if word not in options))
        kernel = registry.find_kernel(launch.kernel)
        releases.use_requested_release()
    except ERRORS as error:
        return _report_error(error)

    try:
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("default", CompilerWarning)
            try:
                launch_counts.check_dtype_is_used(kernel, launch)
                build.assemble_cubin(_PROBE, "probe", split_flags(launch.flags), arch=ARCH)
                result = launch_counts.count_launch(kernel, launch.dtype, launch.flags, **launch.arguments)
            finally:  # also if counting fails
                for warning in raised:
                    _report_error(warning.message)
    except ERRORS as error:
        return _report_error(error)
    except MemoryError as error:
        return _report_error(f"the arrays do not fit in this machine's memory: {error}; use smaller ones")
    if result.problem is not None:
        return _report_error(f"{launch.kernel}: {result.problem}; wrong kernels are not counted")
    if as_json:
        print(listing.format_json(result.counters))
        return 0
    title = f"{launch}, grid {result.geometry.grid}, block {result.geometry.block}"
    text = listing.format_listing(result.counters, kernel.load_source(launch.dtype, ARCH).make_line_reader())
    print(title, format_table(result.counters), text, sep="\n\n")
    return 0


def _report_error(reason: object) -> int:
    print(f"kernelwatch count: {reason}", file=sys.stderr)
    return FAILED_CODE
