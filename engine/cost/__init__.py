"""What context costs: by formula, and measured on this machine."""
