"""Models on disk: one module per kind of file."""
