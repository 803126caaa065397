"""Benchmarks of the kernels of the installed commit. The benchmarks themselves always come from the checkout."""

from __future__ import annotations

from pathlib import Path

#: The project's folder.
ROOT = Path(__file__).parent.parent
