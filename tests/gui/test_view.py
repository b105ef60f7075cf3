"""From state to what is shown: clamped, derived, and the same for the same state. No widgets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.conditions import Conditions
from engine.document import Document
from engine.reading import Look, Reading
from engine.readouts import ROLE_THRESHOLD, ROLES, HeadRoles, Role
from gui.state import Display, Selection, State
from gui.theme import DARK, LIGHT
from gui.view import View, replaced_sentence, resolve, row_sentence
from tests.gui.tiny_scope import tiny_scope, view_of


def reading_of(text: str = "abcab cab", **more: Any) -> Reading:
    """A small model's reading of a text."""
    return tiny_scope(**more).edit(text)


def with_roles(reading: Reading, **scores: Any) -> Reading:
    """The reading with given scores [L, H]; roles not named score 0."""
    shape = reading.roles.scores["entropy"].shape
    given: dict[Role, Any] = {
        role: np.asarray(scores.get(role.replace(" ", "_"), np.zeros(shape)), np.float32)
        for role in ROLES
    }
    return replace(reading, roles=HeadRoles(given))


def test_before_a_model_is_there_a_view_is_empty_and_says_why() -> None:
    """No tokens, no numbers, the notice as status."""
    view = resolve(State(notice="Opening shakespeare …"))
    assert (view.n_tokens, view.query, view.key, view.focus) == (0, None, None, None)
    assert (view.tokens, view.labels, view.captions, view.order) == ((), (), {}, None)
    assert view.status == "Opening shakespeare …"
    assert view.row_sentence == "There is no text yet."


def test_an_empty_text_is_shown_as_one() -> None:
    """With whatever selection is left from before."""
    view = view_of(reading_of(""), selection=Selection(1, 2, query=7, key=3))
    assert (view.n_tokens, view.query, view.key, view.role) == (0, None, None, None)
    assert view.row.shape == (0,)
    assert view.captions == {}
    assert view.status == "tiny: 2 layers × 4 heads · 0.0 M weights · 0 of at most 32 tokens"


def document_of(text: str, stand_in: bytes = b"?") -> Document:
    """A text of which the vocabulary knows nothing but a and b."""
    tokens = tuple(each.encode() if each in "ab" else stand_in for each in text)
    return Document(text, tuple(range(len(tokens))), tokens, len(tokens))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (document_of("abab"), ""),
        (document_of("aéa"), "⚠ This model's vocabulary lacks é; it reads ? for it."),
        (
            document_of("é\u200b é", b"\n"),
            "⚠ This model's vocabulary lacks é ‹ZWSP› ␣; it reads ⏎ for each of them.",
        ),
        (
            document_of("cdefghijklmnopq", b"a"),
            (
                "⚠ This model's vocabulary lacks c d e f g h i j k l m n and 3 more; it reads a "
                "for each of them."
            ),
        ),
    ],
)
def test_characters_that_the_model_cannot_read_are_named(document: Document, sentence: str) -> None:
    """As visible ones, each once, not more than a line of them."""
    assert replaced_sentence(document) == sentence
    reading = replace(reading_of("a" * len(document)), document=document)
    assert view_of(reading).replaced == sentence


def test_the_row_is_the_selected_querys_in_the_drawn_head() -> None:
    """Weights and what the mask lets it see."""
    reading = reading_of()
    view = view_of(reading, selection=Selection(query=4, key=2))
    np.testing.assert_array_equal(view.row, reading.focus.weights[4])
    assert view.row_visible.tolist() == [True] * 5 + [False] * 4
    assert (view.query, view.key) == (4, 2)


def test_without_a_selection_the_query_is_the_last_token() -> None:
    """It follows the text."""
    assert view_of(reading_of("abc")).query == 2
    assert view_of(reading_of("abcde")).query == 4


@pytest.mark.parametrize(("given", "shown"), [(99, 2), (-3, 0), (1, 1)])
def test_a_stale_position_is_moved_into_the_text(given: int, shown: int) -> None:
    """Query and key alike."""
    view = view_of(reading_of("abc"), selection=Selection(query=given, key=given))
    assert (view.query, view.key) == (shown, shown)


def test_the_head_is_the_one_that_the_engine_drew() -> None:
    """While a newly selected one is still awaited."""
    scope = tiny_scope()
    scope.look(Look(1, 3))
    view = view_of(scope.edit("abc"), selection=Selection(layer=0, head=1))
    assert (view.layer, view.head) == (1, 3)


def test_the_cell_under_the_mouse_is_lit_instead_of_the_selected_one() -> None:
    """As long as it lies in the text."""
    reading = reading_of("abc")
    selected = Selection(query=1, key=0)
    assert view_of(reading, selection=selected).lit == (1, 0)
    assert view_of(reading, selection=selected, pointed=(2, 1)).lit == (2, 1)
    assert view_of(reading, selection=selected, pointed=(0, 0)).lit == (0, 0)
    assert view_of(reading, selection=selected, pointed=(3, 1)).lit == (1, 0)


def test_labels_are_visible_text_for_the_tokens_that_are_shown() -> None:
    """Spaces and newlines as marks, markup as itself; only up to the cursor."""
    scope = tiny_scope()
    scope.edit("a b\n<i>")
    view = view_of(scope.go_to(5))
    assert view.tokens == (b"a", b" ", b"b", b"\n", b"<")
    assert view.labels == ("a", "␣", "b", "⏎", "<")


def test_tokens_that_have_fallen_out_are_not_among_the_shown() -> None:
    """And the status counts them."""
    view = view_of(reading_of("abcdefghij", max_seq_len=8))
    assert b"".join(view.tokens) == b"cdefghij"
    assert "8 of at most 8 tokens · the first 2 tokens have fallen out" in view.status
    view = view_of(reading_of("abcdefghi", max_seq_len=8))
    assert "the first token has fallen out" in view.status


def test_the_status_says_when_the_context_is_full() -> None:
    """Before anything has fallen out."""
    view = view_of(reading_of("abcdefgh", max_seq_len=8))
    assert "8 of at most 8 tokens · the context is full · loss" in view.status


def test_the_status_gives_the_mean_loss_of_all_predicted_tokens() -> None:
    """The first one is predicted by nobody."""
    reading = reading_of("abc")
    mean = (float(reading.session.loss[1]) + float(reading.session.loss[2])) / 2
    assert view_of(reading).status.endswith(f"loss {mean:.3f} nats per token")
    assert "loss" not in view_of(reading_of("a")).status


def test_a_notice_takes_the_place_of_the_status() -> None:
    """What goes on or went wrong is said first."""
    assert view_of(reading_of(), notice="Opening other …").status == "Opening other …"


# Roles


SCORES = [[0.1, 0.9, 0.5, 0.5], [0.3, 0.2, 0.9, 0.0]]


def sorted_by(role: Role, scores: Any, **display: Any) -> View:
    """A view sorted by one role that has these scores."""
    reading = with_roles(reading_of(), **{role.replace(" ", "_"): scores})
    return view_of(reading, display=Display(sort=role, **display))


def test_heads_keep_their_places_until_they_are_sorted() -> None:
    """None stands for the natural grid."""
    view = view_of(reading_of())
    assert view.order is None
    assert view.dimmed == frozenset()


def test_heads_are_sorted_from_the_highest_score_down() -> None:
    """Equal ones layer by layer."""
    order = sorted_by("induction", SCORES).order
    assert order == ((0, 1), (1, 2), (0, 2), (0, 3), (1, 0), (1, 1), (0, 0), (1, 3))


def test_entropy_sorts_from_the_most_focused_head_up() -> None:
    """Nats: the lowest looks at the fewest keys."""
    order = sorted_by("entropy", [[2, 1, 4, 3], [0, 5, 6, 7]]).order
    assert order == ((1, 0), (0, 1), (0, 0), (0, 3), (0, 2), (1, 1), (1, 2), (1, 3))


def test_heads_below_the_least_score_are_dimmed() -> None:
    """For entropy, heads above it."""
    assert sorted_by("induction", SCORES, least=0.5).dimmed == {(0, 0), (1, 0), (1, 1), (1, 3)}
    entropies = [[2, 1, 4, 3], [0, 5, 6, 7]]
    dimmed = sorted_by("entropy", entropies, least=4.0).dimmed
    assert dimmed == {(1, 1), (1, 2), (1, 3)}
    assert sorted_by("induction", SCORES, least=0.0).dimmed == frozenset()


def test_captions_give_the_score_by_which_heads_are_sorted() -> None:
    """Nothing where it could not be asked."""
    scores = np.array(SCORES)
    scores[0, 0] = np.nan
    view = sorted_by("same token", scores)
    assert view.captions[0, 1] == "same token 0.90"
    assert view.captions[0, 0] == ""
    assert view.order is not None
    assert len(view.captions) == len(view.order) == 8


def test_unsorted_captions_name_the_role_that_a_head_reaches() -> None:
    """The strongest one, from the threshold on; mixed heads have none."""
    reading = with_roles(
        reading_of(),
        induction=[[0.6, 0.39, np.nan, 0], [0, 0, 0, 0]],
        first_token=[[0.5, 0.3, 0.7, ROLE_THRESHOLD], [0, 0, 0, 0]],
    )
    captions = view_of(reading).captions
    assert [captions[0, head] for head in range(4)] == [
        "induction 0.60",
        "",
        "first token 0.70",
        "first token 0.40",
    ]
    assert view_of(reading).role == "induction"


def test_roles_that_no_token_can_show_are_left_out() -> None:
    """One token: nothing is before it, nothing repeats."""
    view = view_of(reading_of("a"), display=Display(sort="induction"))
    assert set(view.captions.values()) == {""}
    assert view.order is not None
    assert len(view.order) == 8


# Words and looks


def test_a_row_is_said_in_words() -> None:
    """Its three largest weights, the largest first; a weight of 0 is not a look."""
    tokens = (b"To", b" be", b"\n")
    row = np.array([0.25, 0.75, 0.0], np.float32)
    assert row_sentence(tokens, 2, row) == (
        "newline at position 2 looks most at space be at position 1 (75.0%), "
        "To at position 0 (25.0%)."
    )
    assert row_sentence(tokens, 0, np.array([1.0, 0, 0], np.float32)) == (
        "To at position 0 looks most at To at position 0 (100.0%)."
    )


def test_the_theme_is_scaled_once_and_kept() -> None:
    """Panels compare themes by identity."""
    state = State(display=Display(theme=DARK, zoom=2.0))
    view, again = resolve(state), resolve(replace(state, text="abc"))
    assert view.theme is again.theme
    assert (view.theme.name, view.theme.font_body) == ("dark", 2 * LIGHT.font_body)


def test_a_reading_shown_again_is_not_worked_out_again() -> None:
    """Tokens, labels and captions are the very same objects."""
    reading = reading_of()
    one, two = view_of(reading), view_of(reading, text="more")
    assert one.tokens is two.tokens
    assert one.labels is two.labels
    assert one.captions is two.captions


def test_without_the_mask_a_row_sees_every_key() -> None:
    """Visible follows the conditions of the reading."""
    scope = tiny_scope()
    scope.set_conditions(Conditions(mask="none"))
    view = view_of(scope.edit("abcd"), selection=Selection(query=0))
    assert view.row_visible.all()
    assert view.row[3] > 0
