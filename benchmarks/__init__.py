"""The suite: it times and counts the kernels of the installed commit. It always comes from the checkout."""

from __future__ import annotations

from pathlib import Path

#: The project's folder.
ROOT = Path(__file__).parent.parent
