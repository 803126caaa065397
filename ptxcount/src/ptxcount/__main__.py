"""The command `ptxcount`, also as `python -m ptxcount`."""

import sys

from .cli.ending import interruptible_import


def main() -> int:
    """Run the command; its imports take half a second, in which it may be interrupted, too."""
    with interruptible_import("ptxcount"):
        from .command_line import main as command  # noqa: PLC0415 -- with all of NumPy
    return command()


if __name__ == "__main__":
    sys.exit(main())
