"""Tests; those marked `gpu` need a device."""
