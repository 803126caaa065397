"""Tests of the published site."""
