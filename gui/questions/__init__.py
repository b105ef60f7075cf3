"""What is asked of the engine beside the text, while somebody looks at the answer."""
