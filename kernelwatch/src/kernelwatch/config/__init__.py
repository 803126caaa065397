"""The project: its folder, its settings, and the folders of caches."""
