"""State of the executed blocks: registers, memory, and the checks for races."""
