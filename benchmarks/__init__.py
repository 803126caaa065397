"""Benchmarks of the kernels of the installed commit. The benchmarks themselves always come from the checkout."""

from pathlib import Path

#: The project's folder.
ROOT = Path(__file__).parent.parent
