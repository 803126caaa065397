"""Results from elsewhere: checked, and taken into `results/`, `kernelwatch accept`; see docs/runners.md.

What a runner sends back was written by code that this repository has not reviewed yet, or on a machine where such code
has run. It is data: only files with expected names are opened, nothing in them is executed, and nothing is taken
unless all of it is as it should be.
"""
