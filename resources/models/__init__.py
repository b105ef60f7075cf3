"""The bundled models, and what makes the small ones of the experiments."""
