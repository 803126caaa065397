"""The speed of this project's own commands, watched by asv: `asv run --config speed/asv.conf.json`."""
