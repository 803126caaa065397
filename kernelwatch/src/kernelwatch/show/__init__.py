"""Reports: the review of two commits, the regressions of a history, a search, and the website."""
