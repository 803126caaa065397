"""What workflows ask of GitHub."""
