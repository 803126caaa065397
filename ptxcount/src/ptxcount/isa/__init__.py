"""Instructions: a table of the simple ones, and a module for each family of the others."""
