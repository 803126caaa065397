"""The review: what changed between two measured commits, `kernelwatch compare BASE HEAD`; see docs/review.md."""
