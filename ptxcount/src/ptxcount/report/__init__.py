"""The listing of a launch: costs, access patterns, and pictures of one request; and suggested launches."""
