"""`python -m engine.training`."""

import sys

from engine.training.command import main

if __name__ == "__main__":
    sys.exit(main())
