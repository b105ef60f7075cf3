"""Names that others gave: plain text wherever they stand."""

import pytest

from gui.words.names import on_button, plain


def test_what_could_turn_a_name_round_is_marked() -> None:
    """Else the numbers behind a name would be read from right to left."""
    assert plain("a\u202eb\nc") == "a\ufffdb\ufffdc"
    assert plain("a <b>\u05d0</b>") == "a <b>\u05d0</b>"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("shakespeare", "shakespeare"),
        ("salt & pepper", "salt && pepper"),
        (
            "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf-of-somebody",
            "Meta-Llama-3.1-8B….gguf-of-somebody",
        ),
    ],
)
def test_a_name_on_a_button_is_short_and_none_of_its_letters_is_a_key(
    name: str, shown: str
) -> None:
    assert on_button(name) == shown
