"""Dumb parts: they know numpy, Qt and the theme, and nothing of the engine or the state."""
