"""One model on one text: whatever was asked before, the answer is true of the text shown."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.conditions import Conditions
from engine.errors import CancelledError, ContextFullError, EngineError
from engine.loading import Loaded
from engine.model import Transformer
from engine.reading import Look, ModelInfo, Reading
from engine.readouts import ROLES
from engine.sampling import Sampling, softmax
from engine.scope import Scope
from engine.tokenizers import Characters

LIMIT = 12
WARM = Sampling(temperature=1.5, seed=4)
NO_MASK = Conditions(mask="none")


class Letters:
    """A token for each of the letters a to k; spelling a text is unambiguous both ways."""

    vocab_size = 11

    def encode(self, text: str) -> list[int]:
        """One id per letter."""
        return [ord(letter) - ord("a") for letter in text]

    def decode(self, token_ids: Iterable[int]) -> str:
        """The letters."""
        return "".join(chr(ord("a") + token_id) for token_id in token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        """The letter."""
        return self.decode([token_id]).encode()

    def spell(self, token_ids: Iterable[int]) -> tuple[bytes, ...]:
        """The same for each."""
        return tuple(map(self.token_bytes, token_ids))

    def save(self, folder: Path) -> None:
        """Nothing is worth saving."""


def info_of(config: Any) -> ModelInfo:
    """Facts that do not matter here."""
    return ModelInfo(name="tiny", path="", config=config, n_parameters=1, load_seconds=0.0)


@pytest.fixture(scope="module")
def loaded(tiny: Callable[..., Any]) -> Loaded:
    """A small random model with a context of LIMIT letters."""
    model = tiny("rotary", max_seq_len=LIMIT).model
    return Loaded(model, Letters(), info_of(model.config))


@pytest.fixture
def scope(loaded: Loaded) -> Scope:
    """A scope on an empty text."""
    return Scope(loaded)


def fresh(loaded: Loaded, reading: Reading, look: Look) -> Reading:
    """What a new scope shows of the same text under the same conditions."""
    other = Scope(loaded, use_prefix=reading.document.n_prefix > 0)
    other.set_conditions(reading.conditions)
    other.set_sampling(reading.sampling)
    other.look(look)
    other.edit(reading.document.text)
    return other.go_to(reading.cursor)


def assert_same(one: Reading, two: Reading) -> None:
    """Everything that panels draw, but for how it came about."""
    assert one.document.token_ids == two.document.token_ids
    assert (one.cursor, one.n_fallen, one.position) == (two.cursor, two.n_fallen, two.position)
    assert one.conditions == two.conditions
    assert one.session.token_ids.tolist() == two.session.token_ids.tolist()
    np.testing.assert_allclose(one.session.loss, two.session.loss, atol=1e-4)
    np.testing.assert_allclose(one.focus.weights, two.focus.weights, atol=1e-5)
    np.testing.assert_array_equal(one.focus.visible, two.focus.visible)
    assert (one.focus.layer, one.focus.head) == (two.focus.layer, two.focus.head)
    for role in ROLES:
        np.testing.assert_allclose(one.roles.scores[role], two.roles.scores[role], atol=1e-4)
    assert np.abs(one.thumbnails.peaks.astype(int) - two.thumbnails.peaks).max(initial=0) <= 1
    assert (one.stages is None) == (two.stages is None)
    if one.stages is not None and two.stages is not None:
        np.testing.assert_allclose(one.stages.logits, two.stages.logits, atol=1e-4)
        np.testing.assert_allclose(one.stages.plain_probs, two.stages.plain_probs, atol=1e-4)
    assert one.checks.all_finite
    assert one.checks.row_sum_error < one.checks.TOLERANCE
    assert one.checks.masked_weight == 0


def steps(scope: Scope, count: int) -> list[Reading]:
    """So many steps."""
    return [scope.step() for _ in range(count)]


# Text


def test_an_empty_text_has_an_answer_too(scope: Scope) -> None:
    """Nothing to predict, nothing to check, no heads to name."""
    reading = scope.edit("")
    assert (reading.n_tokens, reading.cursor, reading.position) == (0, 0, -1)
    assert reading.stages is None
    assert reading.focus.weights.shape == (0, 0)
    assert reading.thumbnails.peaks.size == 0
    assert scope.check_cache() is None


def test_a_text_can_be_emptied_and_written_anew(scope: Scope, loaded: Loaded) -> None:
    """Back to nothing and on from there."""
    scope.edit("abc")
    assert scope.edit("").n_tokens == 0
    reading = scope.edit("abc")
    assert_same(reading, fresh(loaded, reading, Look()))


def test_a_keystroke_at_the_end_computes_its_own_row_only(scope: Scope) -> None:
    """The rest is taken from the cache, and the reading says which rows are new."""
    scope.edit("abcd")
    reading = scope.edit("abcde")
    assert (reading.reason, reading.computed) == ("grown", (4, 5))
    assert (reading.stats[-1].n_kept, reading.stats[-1].n_computed) == (4, 1)


def test_an_edit_in_the_middle_computes_from_the_first_changed_token_on(scope: Scope) -> None:
    """And no earlier."""
    scope.edit("abcdef")
    reading = scope.edit("abXdef".replace("X", "k"))
    assert (reading.reason, reading.computed) == ("edited", (2, 6))


def test_the_same_text_again_computes_nothing(scope: Scope) -> None:
    """No pass is recorded."""
    before = scope.edit("abc")
    after = scope.edit("abc")
    assert len(after.stats) == len(before.stats)
    assert (after.reason, after.computed) == ("looked", (0, 0))


# Stepping


def test_a_step_appends_what_its_own_distribution_drew(scope: Scope) -> None:
    """Greedy, so that the token is known from the logits that were on screen."""
    scope.set_sampling(Sampling(temperature=0))
    before = scope.edit("abc")
    assert before.stages is not None
    expected = int(before.stages.logits.argmax())
    reading = scope.step()
    assert reading.document.token_ids == (0, 1, 2, expected)
    assert reading.document.text == "abc" + "abcdefghijk"[expected]
    assert (reading.document.n_prompt, reading.cursor) == (3, 4)


def test_an_empty_text_cannot_be_gone_on_from(scope: Scope) -> None:
    """In one sentence; nothing changes."""
    scope.edit("")
    with pytest.raises(EngineError, match=r"^There is no text to go on from; type something"):
        scope.step()
    assert scope.look(Look()).n_tokens == 0


def test_the_same_seed_gives_the_same_text_also_after_stepping_back(
    scope: Scope, loaded: Loaded
) -> None:
    """In a new scope, after stepping back, and after another seed in between."""
    scope.set_sampling(WARM)
    scope.edit("ab")
    text = steps(scope, 8)[-1].document.text
    assert scope.go_to(2).document.text == text
    assert steps(scope, 8)[-1].document.text == text

    scope.set_sampling(Sampling(temperature=1.5, seed=5))
    scope.go_to(2)
    other = steps(scope, 8)[-1].document.text
    assert other != text
    scope.set_sampling(WARM)
    scope.go_to(2)
    assert steps(scope, 8)[-1].document.text == text

    again = Scope(loaded)
    again.set_sampling(WARM)
    again.edit("ab")
    assert steps(again, 8)[-1].document.text == text


def test_back_shows_one_token_less_and_forgets_nothing(scope: Scope) -> None:
    """Stepping forward again computes nothing."""
    scope.edit("ab")
    last = steps(scope, 3)[-1]
    assert [scope.back().cursor for _ in range(6)] == [4, 3, 2, 1, 1, 1]
    reading = steps(scope, 4)[-1]
    assert reading.document.token_ids == last.document.token_ids
    assert len(reading.stats) == len(last.stats)
    assert reading.reason == "looked"


def test_an_earlier_moment_is_as_it_was_then(scope: Scope, loaded: Loaded) -> None:
    """Every panel's data, not only the text."""
    scope.set_sampling(WARM)
    scope.edit("abcd")
    then = scope.step()
    steps(scope, 4)
    now = scope.go_to(5)
    assert now.n_tokens == then.n_tokens == 5
    assert not now.at_end
    np.testing.assert_allclose(now.focus.weights, then.focus.weights, atol=1e-6)
    assert_same(now, fresh(loaded, now, Look()))


def test_go_to_stays_within_the_text(scope: Scope) -> None:
    """Too far back is the first token, too far on the last."""
    scope.edit("abc")
    assert scope.go_to(-5).cursor == 1
    assert scope.go_to(99).cursor == 3


def test_a_branch_keeps_what_is_before_and_drops_what_was_after(scope: Scope) -> None:
    """The chosen token follows; only its own row is computed."""
    scope.set_sampling(WARM)
    scope.edit("ab")
    before = steps(scope, 5)[-1].document.token_ids
    other = (before[4] + 1) % 11
    reading = scope.choose(4, other)
    assert reading.document.token_ids == (*before[:4], other)
    assert reading.computed == (4, 5)
    assert reading.document.origins == (WARM, WARM, None)
    assert reading.at_end


def test_a_branch_inside_the_prompt_shortens_the_prompt(scope: Scope) -> None:
    """The chosen token is generated text."""
    scope.edit("abcdef")
    reading = scope.choose(2, 7)
    assert reading.document.text == "abh"
    assert reading.document.n_prompt == 2


def test_a_text_can_begin_with_a_chosen_token(scope: Scope) -> None:
    """Even where nothing stood."""
    reading = scope.choose(0, 3)
    assert reading.document.text == "d"
    assert reading.document.n_prompt == 0


def test_sampling_changed_at_an_earlier_moment_draws_anew_from_there(scope: Scope) -> None:
    """Prompt tokens and chosen tokens stay; a token that was drawn otherwise is drawn again."""
    scope.set_sampling(WARM)
    scope.edit("abc")
    scope.step()
    chosen = scope.choose(4, 9)
    steps(scope, 3)
    scope.go_to(1)
    scope.set_sampling(Sampling(temperature=0))
    assert [reading.document.text[:3] for reading in steps(scope, 2)] == ["abc", "abc"]
    reading = scope.step()
    assert reading.document.origins == (Sampling(temperature=0),)
    assert len(reading.document) == 4

    # And where the next token was chosen, it is followed.
    scope.choose(3, chosen.document.token_ids[3])
    scope.choose(4, 9)
    scope.go_to(4)
    assert scope.step().document.text[4] == "j"


def test_stages_follow_the_sampling_at_once(scope: Scope) -> None:
    """Without a pass."""
    first = scope.edit("abc")
    reading = scope.set_sampling(Sampling(temperature=0.5, top_k=3))
    assert reading.stages is not None
    assert len(reading.stats) == len(first.stats)
    assert int(reading.stages.in_top_k.sum()) == 3
    np.testing.assert_allclose(
        reading.stages.scaled_probs, softmax(reading.stages.logits / 0.5), atol=1e-12
    )


# The context limit


def test_a_full_context_is_a_clear_state_and_one_sentence(scope: Scope) -> None:
    """Nothing is lost by asking for more."""
    scope.edit("a" * (LIMIT - 1))
    full = scope.step()
    assert full.full
    with pytest.raises(ContextFullError) as caught:
        scope.step()
    assert str(caught.value) == (
        f"The context is full: this model sees at most {LIMIT} tokens. Shorten the text to go on."
    )
    assert scope.look(Look()).document is full.document
    with pytest.raises(ContextFullError):
        scope.choose(LIMIT, 3)
    assert scope.choose(LIMIT - 1, 3).document.token_ids[-1] == 3


def test_tokens_beyond_the_limit_have_fallen_out(scope: Scope, loaded: Loaded) -> None:
    """The model reads the last ones; the first have no position."""
    text = "abcdefghijkabcde"
    reading = scope.edit(text)
    assert (reading.n_fallen, reading.n_tokens, len(reading.document)) == (4, LIMIT, 16)
    only_seen = Scope(loaded).edit(text[4:])
    np.testing.assert_allclose(reading.focus.weights, only_seen.focus.weights, atol=1e-6)
    np.testing.assert_allclose(reading.session.loss, only_seen.session.loss, atol=1e-6)
    with pytest.raises(ContextFullError):
        scope.step()


def test_going_back_stops_where_the_model_sees_one_token(scope: Scope) -> None:
    """What has fallen out cannot be stepped into."""
    scope.edit("abcdefghijkabcde")
    reading = scope.go_to(1)
    assert (reading.cursor, reading.n_tokens) == (5, 1)
    assert scope.step().cursor == 6


def test_a_branch_brings_fallen_tokens_back(scope: Scope, loaded: Loaded) -> None:
    """A shorter text fits again."""
    scope.edit("abcdefghijkabcde")
    reading = scope.choose(9, 10)
    assert (reading.document.text, reading.n_fallen) == ("abcdefghik", 0)
    assert_same(reading, fresh(loaded, reading, Look()))


# Conditions and cache


def test_other_conditions_read_the_same_text_from_the_start(scope: Scope, loaded: Loaded) -> None:
    """Without the mask every query sees every key, and nothing can be kept."""
    scope.edit("abcdef")
    reading = scope.set_conditions(NO_MASK)
    assert (reading.reason, reading.computed) == ("mask off", (0, 6))
    assert reading.focus.visible.all()
    assert reading.focus.weights[0, 5] > 0
    assert_same(reading, fresh(loaded, reading, Look()))
    reading = scope.edit("abcdefg")
    assert (reading.stats[-1].n_kept, reading.stats[-1].n_computed) == (0, 7)


def test_without_the_mask_an_earlier_moment_is_computed_as_it_was(
    scope: Scope, loaded: Loaded
) -> None:
    """Its rows then saw fewer keys; what comes later leaves no trace in them."""
    scope.edit("abcdef")
    scope.go_to(3)
    reading = scope.set_conditions(NO_MASK)
    assert (reading.cursor, reading.n_tokens) == (3, 3)
    assert reading.computed == (0, 3)
    alone = Scope(loaded)
    alone.set_conditions(NO_MASK)
    np.testing.assert_allclose(
        reading.focus.weights, alone.edit("abc").focus.weights, rtol=0, atol=1e-6
    )
    back = scope.set_conditions(Conditions())
    assert_same(back, fresh(loaded, back, Look()))


def test_without_the_cache_every_pass_computes_all_rows(scope: Scope) -> None:
    """And gives the same numbers."""
    scope.set_sampling(Sampling(temperature=0))
    scope.edit("abcd")
    kept = scope.step()
    scope.go_to(4)
    scope.choose(4, kept.document.token_ids[4])
    reading = scope.set_cache(use=False)
    assert (reading.reason, reading.computed, reading.cache_bytes) == ("cache off", (0, 5), 0)
    np.testing.assert_allclose(reading.focus.weights, kept.focus.weights, atol=1e-5)
    reading = scope.step()
    assert (reading.stats[-1].n_computed, reading.stats[-1].cached) == (6, False)
    on = scope.set_cache(use=True)
    assert on.cache_bytes == 2 * 2 * 2 * 4 * 6 * 4  # 2 · L · G · D · tokens · bytes


def test_the_cache_check_compares_with_a_full_pass(scope: Scope) -> None:
    """Nothing differs by more than rounding."""
    scope.edit("abc")
    steps(scope, 4)
    check = scope.check_cache()
    assert check is not None
    assert check.n_tokens == 7
    assert max(check.logits, check.weights) < check.TOLERANCE


# Looking


def test_a_look_moves_head_and_position_without_a_pass(scope: Scope) -> None:
    """The candidates are those after the position that is looked at."""
    first = scope.edit("abcdef")
    reading = scope.look(Look(1, 3, 2))
    assert (reading.focus.layer, reading.focus.head, reading.position) == (1, 3, 2)
    assert len(reading.stats) == len(first.stats)
    then = scope.go_to(3)
    scope.look(Look(1, 3, None))
    assert then.stages is not None
    assert reading.stages is not None
    np.testing.assert_allclose(reading.stages.logits, then.stages.logits, atol=1e-5)


@pytest.mark.parametrize(
    ("look", "expected"),
    [(Look(99, 99, 99), (1, 3, 2)), (Look(-1, -1, -1), (0, 0, 0)), (Look(), (0, 0, 2))],
)
def test_a_look_stays_within_the_model_and_the_text(
    scope: Scope, look: Look, expected: tuple[int, int, int]
) -> None:
    """Selections may be left from a larger model or a longer text."""
    scope.edit("abc")
    reading = scope.look(look)
    assert (reading.focus.layer, reading.focus.head, reading.position) == expected
    assert scope.edit("").position == -1


# Giving up


def give_up_after(calls: int) -> Callable[[], bool]:
    """Says so from the n-th time on that it is asked."""
    answers = iter([False] * calls)
    return lambda: next(answers, True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda scope, void: scope.edit("abkkk", void),
        lambda scope, void: scope.step(void),
        lambda scope, void: scope.choose(2, 5, void),
    ],
    ids=["edit", "step", "choose"],
)
@pytest.mark.parametrize("off", [False, True], ids=["causal", "mask off"])
def test_a_pass_that_was_given_up_changes_nothing(
    scope: Scope,
    loaded: Loaded,
    ask: Callable[..., Reading],
    off: bool,  # noqa: FBT001
) -> None:
    """The next answer is about the text before it."""
    scope.set_conditions(NO_MASK if off else Conditions())
    scope.edit("abcdef")
    with pytest.raises(CancelledError):
        ask(scope, give_up_after(1))
    reading = scope.look(Look(1, 1))
    assert reading.document.text == "abcdef"
    assert_same(reading, fresh(loaded, reading, Look(1, 1)))


def test_conditions_whose_pass_was_given_up_are_in_force_all_the_same(
    scope: Scope, loaded: Loaded
) -> None:
    """Whoever superseded them has asked for others, or for the text under these."""
    scope.edit("abcdef")
    with pytest.raises(CancelledError):
        scope.set_conditions(NO_MASK, give_up_after(1))
    reading = scope.look(Look())
    assert reading.conditions == NO_MASK
    assert_same(reading, fresh(loaded, reading, Look()))


def test_a_long_text_is_shown_piece_by_piece_while_it_is_read(
    scope: Scope, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each moment is what a scope would show that goes back to it when all has been read."""
    monkeypatch.setattr("engine.scope._PIECE", 4)  # rows, of a model that says it has one weight
    monkeypatch.setattr("engine.scope._LEAST_ROWS", 1)
    told: list[Reading] = []
    scope.edit("ab")
    last = scope.edit("abcdefghijk", meanwhile=told.append)
    assert [(each.cursor, each.n_tokens) for each in told] == [(5, 5), (8, 8)]
    assert [each.computed for each in [*told, last]] == [(2, 5), (2, 8), (2, 11)]
    assert {each.document for each in [*told, last]} == {last.document}
    assert last.at_end
    for each in [*told, last]:
        assert_same(each, fresh(loaded, each, Look()))


def test_pieces_beyond_the_moment_that_is_shown_are_not_told_of(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other conditions keep showing an earlier moment; the text is read to its end all the same."""
    monkeypatch.setattr("engine.scope._PIECE", 2)
    monkeypatch.setattr("engine.scope._LEAST_ROWS", 1)
    told: list[Reading] = []
    scope.edit("abcdefgh")
    scope.go_to(5)
    window = Conditions(mask="window", window=2)
    reading = scope.set_conditions(window, meanwhile=told.append)
    assert [each.n_tokens for each in told] == [2, 4]
    assert (reading.cursor, scope.go_to(8).n_tokens) == (5, 8)


def test_a_text_that_was_given_up_between_two_pieces_is_not_the_text(
    scope: Scope, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.scope._PIECE", 2)
    monkeypatch.setattr("engine.scope._LEAST_ROWS", 1)
    scope.edit("abc")
    told: list[Reading] = []
    with pytest.raises(CancelledError):
        scope.edit("kjihgf", lambda: bool(told), told.append)
    reading = scope.look(Look())
    assert reading.document.text == "abc"
    assert_same(reading, fresh(loaded, reading, Look()))


def test_what_is_prepared_holds_for_the_next_text_and_leaves_the_rest_as_it_is(
    scope: Scope, loaded: Loaded
) -> None:
    scope.set_cache(use=False)
    scope.look(Look(1, 1))
    scope.prepare(Conditions(), Sampling(seed=4))
    reading = scope.edit("abcdef")
    assert (reading.use_cache, reading.sampling) == (False, Sampling(seed=4))
    assert (reading.focus.layer, reading.focus.head) == (1, 1)
    window = Conditions(mask="window", window=2)
    scope.prepare(window, Sampling(), Look(0, 2, 3), use_cache=True)
    reading = scope.edit("abcdefg")
    assert (reading.use_cache, reading.conditions, reading.position) == (True, window, 3)
    assert_same(reading, fresh(loaded, reading, Look(0, 2, 3)))


def test_a_reading_can_be_aimed_at_another_head_without_reading_on(
    scope: Scope, loaded: Loaded
) -> None:
    """Also a moment of a text that is still being read; the next ones look there as well."""
    told: list[Reading] = []
    last = scope.edit("abcdef", meanwhile=lambda part: told.append(scope.aim(part, Look(1, 2))))
    told.append(scope.aim(last, Look(1, 2)))
    told.append(scope.edit("abcdefg"))
    for each in told:
        assert_same(each, fresh(loaded, each, Look(1, 2)))


# Bytes


def test_bytes_that_make_no_character_can_be_gone_on_from(tiny: Callable[..., Any]) -> None:
    """A character model that draws single bytes shows them as U+FFFD, on spans that fit."""
    tokenizer = Characters("ab")
    model = tiny("none", vocab_size=tokenizer.vocab_size).model
    scope = Scope(Loaded(model, tokenizer, info_of(model.config)))
    scope.edit("ab")
    byte = len("ab")  # ids of single bytes come after the characters
    for position, value in enumerate((0xFF, 0xE2, 0x82), start=2):
        reading = scope.choose(position, byte + value)
    assert reading.document.text == "ab\ufffd\ufffd"
    assert reading.document.spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [3, 4]]
    assert reading.document.tokens[2:] == (b"\xff", b"\xe2", b"\x82")


@pytest.mark.parametrize("text", ["\ud800", "\0", "👩\u200d👩\u200d👧", "שלום", " ", "\n\n", "<b>"])
def test_every_text_is_taken_as_it_is(tiny: Callable[..., Any], text: str) -> None:
    """Nothing is normalised, dropped or refused."""
    tokenizer = Characters("ab")
    model = tiny("none", vocab_size=tokenizer.vocab_size).model
    reading = Scope(Loaded(model, tokenizer, info_of(model.config))).edit(text)
    assert reading.document.text == text
    assert b"".join(reading.document.tokens) == text.encode("utf-8", "surrogatepass")
    assert reading.n_tokens == len(text.encode("utf-8", "surrogatepass"))


# Any history

Texts = st.text("abcdefghijk", max_size=LIMIT + 4)
Looks = st.builds(Look, st.integers(0, 2), st.integers(0, 4), st.none() | st.integers(0, LIMIT))


@st.composite
def _conditions(draw: Callable[..., Any]) -> Conditions:
    return Conditions(
        mask=draw(st.sampled_from(["causal", "causal", "window", "none"])),
        window=draw(st.integers(1, 6)),
        sinks=draw(st.integers(0, 2)),
    )


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each product with the output matrix had; it is the largest matrix."""
    found: list[int] = []
    logits = Transformer.logits

    def counted(model: Transformer, hidden: torch.Tensor) -> torch.Tensor:
        found.append(len(hidden))
        return logits(model, hidden)

    monkeypatch.setattr(Transformer, "logits", counted)
    return found


def test_a_step_multiplies_by_the_output_matrix_once(loaded: Loaded, rows: list[int]) -> None:
    """The draw and the loss take the logits that were shown."""
    scope = Scope(loaded)
    scope.edit("abcab")
    for _ in range(3):
        rows.clear()
        reading = scope.step()
        assert rows == [1]
    fresh_scope = Scope(loaded)
    again = fresh_scope.edit(reading.document.text)
    np.testing.assert_allclose(reading.session.loss[1:], again.session.loss[1:], atol=1e-5)
    assert reading.session.rank.tolist() == again.session.rank.tolist()


def test_a_scope_beside_another_shows_the_same_position_without_that_product(
    loaded: Loaded, rows: list[int]
) -> None:
    scope = Scope(loaded)
    scope.edit("abcab")
    other = scope.beside()
    shown = scope.look(Look(0, 0, 2))
    rows.clear()
    again = other.look(Look(0, 1, 2))
    assert not rows
    assert again.stages is not None
    assert shown.stages is not None
    np.testing.assert_array_equal(again.stages.logits, shown.stages.logits)
    other.edit("abkab")
    changed = other.look(Look(0, 1, 2))
    assert changed.stages is not None
    assert np.abs(changed.stages.logits - shown.stages.logits).max() > 1e-3


class AnyHistory(RuleBasedStateMachine):
    """Whatever a window can ask, in any order, some of it given up."""

    loaded: Loaded

    @initialize(text=Texts)
    def start(self, text: str) -> None:
        """A scope on some text."""
        self.scope, self.looking = Scope(self.loaded), Look()
        self.reading = self.scope.edit(text)

    def ask(self, work: Callable[..., Reading], *, gives_up: bool = False) -> None:
        """Take the answer, or see that a refusal or a cancelled pass changed nothing."""
        before = self.reading
        try:
            self.reading = work(give_up_after(1) if gives_up else lambda: False)
        except ContextFullError:
            assert before.cursor - before.n_fallen == LIMIT
        except CancelledError:
            assert gives_up
            self.reading = self.scope.look(self.looking)
            assert self.reading.document is before.document
            assert self.reading.cursor == before.cursor
        except EngineError:
            assert not before.n_tokens

    @rule(text=Texts, gives_up=st.booleans())
    def edit(self, text: str, gives_up: bool) -> None:  # noqa: FBT001
        """Another prompt."""
        self.ask(lambda void: self.scope.edit(text, void), gives_up=gives_up)

    @rule(letters=st.text("abc", min_size=1, max_size=3))
    def type_on(self, letters: str) -> None:
        """Keystrokes at the end."""
        self.ask(lambda void: self.scope.edit(self.reading.document.text + letters, void))

    @rule(count=st.integers(1, 4), gives_up=st.booleans())
    def step(self, count: int, gives_up: bool) -> None:  # noqa: FBT001
        """Some tokens further."""
        for _ in range(count):
            self.ask(self.scope.step, gives_up=gives_up)

    @rule(cursor=st.integers(0, LIMIT + 4))
    def go_to(self, cursor: int) -> None:
        """Any moment."""
        self.ask(lambda _void: self.scope.go_to(cursor))

    @rule()
    def back(self) -> None:
        """One less."""
        self.ask(lambda _void: self.scope.back())

    @rule(token_id=st.integers(0, 10), back=st.integers(0, 3), gives_up=st.booleans())
    def choose(self, token_id: int, back: int, gives_up: bool) -> None:  # noqa: FBT001
        """Branch near the cursor."""
        cursor = max(0, self.reading.cursor - back)
        if cursor == self.reading.cursor:
            self.ask(lambda void: self.scope.choose(cursor, token_id, void), gives_up=gives_up)
        else:
            self.reading = self.scope.choose(cursor, token_id)

    @rule(conditions=_conditions(), gives_up=st.booleans())
    def change_conditions(self, conditions: Conditions, gives_up: bool) -> None:  # noqa: FBT001
        """Another mask."""
        self.ask(lambda void: self.scope.set_conditions(conditions, void), gives_up=gives_up)

    @rule(use=st.booleans())
    def switch_cache(self, use: bool) -> None:  # noqa: FBT001
        """On or off."""
        self.ask(lambda void: self.scope.set_cache(use=use, cancelled=void))

    @rule(temperature=st.sampled_from([0, 0.0001, 1, 3]), seed=st.integers(0, 2))
    def change_sampling(self, temperature: float, seed: int) -> None:
        """Draw in another way."""
        sampling = Sampling(temperature=temperature, seed=seed)
        self.ask(lambda _void: self.scope.set_sampling(sampling))

    @rule(look=Looks)
    def look(self, look: Look) -> None:
        """Another head or position."""
        self.looking = look
        self.ask(lambda _void: self.scope.look(look))

    @rule()
    def check(self) -> None:
        """The comparison with the full pass holds, and leaves no trace."""
        check = self.scope.check_cache()
        assert (check is None) == (not self.reading.n_tokens)
        assert check is None or max(check.logits, check.weights) < check.TOLERANCE

    @invariant()
    def shows_what_a_fresh_scope_would(self) -> None:
        """After every operation."""
        if not hasattr(self, "reading"):
            return
        assert_same(self.reading, fresh(self.loaded, self.reading, self.looking))
        assert self.reading.n_fallen == max(0, len(self.reading.document) - LIMIT)
        for before, after in pairwise(self.reading.document.spans.tolist()):
            assert before[1] == after[0]


def test_any_history_shows_what_a_fresh_scope_would(loaded: Loaded) -> None:
    """Edits, steps, branches, masks, cache and looks, some given up half-way."""
    machine: Any = type("Machine", (AnyHistory,), {"loaded": loaded})
    machine.TestCase.settings = settings(
        max_examples=25, stateful_step_count=15, deadline=None, derandomize=True
    )
    machine.TestCase("runTest").runTest()
