"""Slowdowns too gradual for the review of two neighbouring commits."""
