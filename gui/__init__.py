"""The desktop window: it shows what the engine computed and asks for more."""
