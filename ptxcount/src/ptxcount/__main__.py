"""``python -m ptxcount``: the command line."""

import sys

from .command_line import main

sys.exit(main())
