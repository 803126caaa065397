"""The search for the commit that moved a number: `python -m kernelwatch.review.bisect METRIC GOOD BAD`, docs/find-the-commit.md.

It halves by itself instead of driving `git bisect`. What is left to git's command is to choose the next commit, which
takes ten lines. `git bisect` would need a working tree or a clone, would visit commits that cannot have moved a number,
and its state would have to be read back from its refs. Here git is only asked, so no checkout changes.
"""
