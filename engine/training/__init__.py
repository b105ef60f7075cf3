"""Training small models: deterministic, resumable, and told while it runs."""
