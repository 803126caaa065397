"""The results page's tables and picture, made from `results/`: `make readme`."""
