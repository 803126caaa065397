"""Reports: the summary of a run, the review of two commits, and the site."""
