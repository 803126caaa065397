"""The command `ptxcount`, also as `python -m ptxcount`."""

import os
import sys

from .cli.ending import interruptible_import
from .cli.options import is_gate_command


def main() -> int:
    """Run the command; its imports take half a second, in which it may be interrupted, too."""
    # OpenBLAS would start a thread for each processor, in a third of NumPy's import; counting needs none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with interruptible_import("ptxcount"):
        if is_gate_command(sys.argv[1:]):
            from .gate.command import main as command  # noqa: PLC0415 -- without NumPy
        else:
            from .command_line import main as command  # noqa: PLC0415 -- with all of NumPy
    return command()


if __name__ == "__main__":
    sys.exit(main())
