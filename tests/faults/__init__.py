"""Faults: what is killed, torn or run twice, and what must be whole afterwards: each module's first line says it."""
