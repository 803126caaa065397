"""Faults: what is killed, torn or run twice, and what must be whole afterwards.

Each module's first line says which faults and, behind a colon, what must hold; `conftest` makes the table of them.
"""

import os

#: Where `make faults` wants the table, which asks for all attempts; the short form of `make test` has fewer.
TABLE = os.environ.get("COALESCING_WATCH_FAULTS_TABLE")
FULL = TABLE is not None
