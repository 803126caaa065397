"""The commands, one module each, and their end after an error."""
