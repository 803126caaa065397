"""The commands: one module each, and how they end after an error."""
