"""Tests that need a device."""
