"""The commit that moved a number, by `git bisect run kernelwatch judge`."""
