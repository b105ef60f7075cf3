"""Names that others gave: of files, folders and models. No Qt."""

_LONGEST = 36  # characters of a name on a button


def plain(text: str) -> str:
    """A name from a disk on one line, without what could turn it round or hide a part of it."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def on_button(name: str) -> str:
    """A name as it stands on a button: no letter is a key, and a long one loses its middle."""
    name = plain(name)
    if len(name) > _LONGEST:
        half = (_LONGEST - 1) // 2
        name = f"{name[:half]}…{name[-half:]}"
    return name.replace("&", "&&")
