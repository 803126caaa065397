"""asv benchmarks of the speed of this project's own commands: `asv run --config speed/asv.conf.json`."""
