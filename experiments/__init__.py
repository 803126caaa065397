"""Experiments that produce the evidence in `docs/evidence/`. They are repeated from time to time."""
