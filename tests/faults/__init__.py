"""Killed, torn and concurrent runs; the first line of each module names the fault."""
