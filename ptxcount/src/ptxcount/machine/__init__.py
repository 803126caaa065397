"""State of the executed blocks: registers, memory, and race checks."""
