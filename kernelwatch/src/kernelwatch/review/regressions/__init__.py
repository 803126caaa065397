"""The regressions of main that nobody has mended or acknowledged, the commits that brought them, and one issue."""
