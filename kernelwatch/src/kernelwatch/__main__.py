"""The command, as `python -m kernelwatch` runs it."""

import sys

from kernelwatch.command_line import main

if __name__ == "__main__":
    sys.exit(main())
