"""The suite for kernelwatch; pyproject.toml names it."""

from benchmarks import installed, time_copy, time_kernel, time_transpose, track_compiled, track_counted
from kernelwatch.benchmarks import suite_of

SUITE = suite_of(installed.kernels, time_copy, time_transpose, time_kernel, track_counted, track_compiled)
