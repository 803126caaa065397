"""What surrounds a run of asv: its environments, the machine's name, and the facts of the run."""
