"""The review: what changed between two measured commits, `python -m report.compare BASE HEAD`; see docs/review.md."""
