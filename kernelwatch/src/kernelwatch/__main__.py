"""The entry point of `python -m kernelwatch`."""

import sys

from kernelwatch.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
