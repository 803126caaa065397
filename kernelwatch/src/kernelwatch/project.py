"""The project that is watched."""

from __future__ import annotations

from pathlib import Path

#: Its folder.
ROOT = Path(__file__).parents[3]

#: Its suite: a module and a name in it.
SUITE = "benchmarks.suite:SUITE"
