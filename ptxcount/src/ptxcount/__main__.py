"""The command `ptxcount`, also as `python -m ptxcount`."""

import sys

from .cli.ending import interrupted


def main() -> int:
    """Run the command; its imports take half a second, in which it may be interrupted, too."""
    try:
        from .command_line import main as command  # noqa: PLC0415 -- with all of NumPy
    except KeyboardInterrupt:
        return interrupted("ptxcount")
    return command()


if __name__ == "__main__":
    sys.exit(main())
