"""Tests of the benchmarks of this project's own speed."""
