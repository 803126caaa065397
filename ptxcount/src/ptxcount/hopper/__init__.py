"""What only Hopper and later chips have: bulk copies, tensor maps, barriers in memory, clusters, ``wgmma``."""
