"""The four kernels, a module a tool, written as the tool has them."""
