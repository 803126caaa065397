"""The review of two measured commits, for `kernelwatch compare BASE HEAD`; see docs/review.md."""
