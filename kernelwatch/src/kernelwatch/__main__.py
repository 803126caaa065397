"""The command, as `python -m kernelwatch` runs it."""

import sys

from kernelwatch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
