"""PTX instructions: a table of simple ones, and a module for each family of others."""
