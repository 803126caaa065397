"""The listing of a launch: costs, patterns of access, and pictures of one request."""
