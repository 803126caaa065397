"""A gate: launches written down once, counted again at each change, held by limits and by pinned counts."""
