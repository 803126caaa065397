"""The commands, one module each, and the handling of unexpected errors."""
