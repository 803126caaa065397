"""Run what changed: numbers of earlier commits are taken where everything that they depend on is the same.

The run writes what is stored into a file (`kernelwatch.asv.reuse`). Before a commit's first configuration,
`setup_cache` makes a plan of it: which configurations have a stored number, and which of these are measured all the
same. If one of those differs, nothing is reused. The plan lies in the folder of asv's cache. There the run finds it,
and starts no process for what the plan answers.
"""
