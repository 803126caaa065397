"""The four kernels, in one module per tool."""
