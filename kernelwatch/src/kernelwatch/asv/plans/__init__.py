"""Run what changed: numbers of earlier commits are taken where everything that they depend on is the same."""
