"""The command `ptxcount`, also as `python -m ptxcount`."""

import os
import sys

from .cli.ending import interruptible_import
from .cli.options import is_gate_command


def main() -> int:
    """Run the command and return its exit code. Ctrl-C also works during the imports, which take half a second."""
    # OpenBLAS would start a thread per CPU, which takes a third of NumPy's import time. Counting needs none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with interruptible_import("ptxcount"):
        if is_gate_command(sys.argv[1:]):
            from .gate.command import main as command  # noqa: PLC0415 -- without NumPy
        else:
            from .command_line import main as command  # noqa: PLC0415 -- with all of NumPy
    return command()


if __name__ == "__main__":
    sys.exit(main())
