"""What people read: the summary of a run, and the table in the README."""
