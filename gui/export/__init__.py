"""What leaves the program: pictures and numbers, and what must be known to repeat them."""
