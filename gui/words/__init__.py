"""What panels say and count, worked out without Qt."""
