"""Models to and from files."""
