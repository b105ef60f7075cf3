"""What can be asked about a moment on screen, worked out from what its passes recorded."""
