"""Instructions: a table of simple ones, and a module per family of others."""
