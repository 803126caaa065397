"""The commit that moved a number, by git bisect: `python -m kernelwatch.review.bisect METRIC GOOD BAD`."""
