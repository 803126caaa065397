"""The commit that moved a number, by git bisect: `kernelwatch bisect METRIC GOOD BAD`."""
