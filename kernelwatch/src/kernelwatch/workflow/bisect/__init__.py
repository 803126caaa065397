"""The search for the commit that changed a number, with `git bisect run kernelwatch judge`."""
