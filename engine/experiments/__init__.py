"""What small models that differ in one thing make of the same text."""
