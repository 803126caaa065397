"""What renders the evidence in `docs/`, and is measured again from time to time."""
