"""The instrument: how the kernels of whatever commit is installed are timed and read; always the newest one."""
