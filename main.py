"""Start Attention Scope; see `python main.py --help`."""

import sys

from gui import quick_start
from gui.command_line import parse


def main() -> int:
    """Run the program; returns its exit status."""
    options = parse(sys.argv[1:])
    quick_start.begin()
    try:
        from gui.app import run  # noqa: PLC0415 - --help should not wait for Qt
    except ImportError as error:
        if "PySide6" not in str(error) and ".so" not in str(error):
            raise
        sys.stderr.write(
            f"Qt cannot start ({error}). On Debian and Ubuntu install what it needs with: "
            "apt install libegl1 libgl1 libglib2.0-0 libxkbcommon0 libfontconfig1 libdbus-1-3 "
            "libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0\n"
        )
        return 1
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
