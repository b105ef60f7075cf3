"""Write docs/keys.md from the table of commands: `python -m docs.make_keys`."""  # noqa: INP001

from itertools import groupby
from pathlib import Path

from gui.commands import COMMANDS, Command

KEYS_PAGE = Path(__file__).with_name("keys.md")

_HEAD = """\
# Commands and keys

Every command of the program, by menu. F1 shows the same list in the window. This page is made
from `gui/commands.py` by `python -m docs.make_keys`; do not edit it by hand.
"""
_TABLE = "\n## {menu}\n\n| Command | Keys | What it does |\n|---|---|---|\n"


def _row(command: Command) -> str:
    keys = " or ".join(f"`{keys}`" for keys in command.shortcuts)
    return f"| {command.title} | {keys} | {command.help} |\n"


def keys_page() -> str:
    """The whole page, as Markdown."""
    parts = [_HEAD]
    for menu, commands in groupby(COMMANDS, key=lambda command: command.menu):
        parts += [_TABLE.format(menu=menu), *map(_row, commands)]
    return "".join(parts)


if __name__ == "__main__":
    KEYS_PAGE.write_text(keys_page(), encoding="utf-8")
