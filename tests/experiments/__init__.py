"""Tests of the comparisons with other tools."""
