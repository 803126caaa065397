"""The instrument: how the kernels of whatever commit is installed are timed, counted and read; always the newest."""

from __future__ import annotations

from pathlib import Path

#: The project's folder.
ROOT = Path(__file__).parent.parent
