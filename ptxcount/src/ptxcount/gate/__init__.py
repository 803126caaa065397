"""``ptxcount check``: counts the launches of ``ptxcount.toml``, and compares them with limits and pinned counts."""
