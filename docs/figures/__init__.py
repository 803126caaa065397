"""The README's and the results page's tables and picture, made from `results/`: `make readme`."""
