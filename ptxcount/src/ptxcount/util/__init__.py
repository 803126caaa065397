"""Errors, findings, and helpers that know nothing of PTX: files written atomically, git, memory of the host."""
