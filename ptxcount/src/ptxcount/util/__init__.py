"""Errors, findings, and helpers that do not depend on PTX: atomic writes, git, host memory, limits of GPUs."""
