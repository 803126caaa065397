"""Tests of `.github/`."""
