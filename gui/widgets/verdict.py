"""Whether something holds, as a shape, a colour and a word: never by colour alone."""

from typing import Literal

from gui.theme import Theme

Verdict = Literal["holds", "fails", "waiting", "idle"]

GLYPHS: dict[Verdict, str] = {"holds": "✓", "fails": "✗", "waiting": "…", "idle": "–"}


def verdict_of(holds: bool) -> Verdict:  # noqa: FBT001 - the one thing it turns into a word
    """The verdict on a question that has been answered."""
    return "holds" if holds else "fails"


def verdict_colour(theme: Theme, verdict: Verdict) -> str:
    """The colour that goes with the glyph."""
    return {"holds": theme.good, "fails": theme.bad}.get(verdict, theme.text_dim)
