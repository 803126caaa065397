"""What is kept of a run: read, written, checked, and never lost."""
