"""The review: what changed between two measured commits, `python -m kernelwatch.review BASE HEAD`: docs/review.md."""
