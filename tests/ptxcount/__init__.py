"""Tests of the library `ptxcount`."""
