"""What people read: the summary of a run, the review of two commits, and the table in the README."""
