"""What renders the evidence in `docs/evidence/`, and is measured again from time to time."""
