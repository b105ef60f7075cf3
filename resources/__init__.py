"""What ships beside the code: models, corpus, lesson, presets. No heavy imports here."""
