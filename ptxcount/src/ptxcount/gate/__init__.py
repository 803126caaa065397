"""The subcommands: they count the launches of ``ptxcount.toml``, and compare them with limits and pinned counts."""
