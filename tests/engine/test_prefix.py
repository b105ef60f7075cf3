"""A model that expects a token before the text gets it, and the text is the user's all the same."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from engine.answers.comparison import Wanted
from engine.answers.second_run import SecondRun
from engine.document import Document
from engine.errors import CancelledError, ContextFullError
from engine.loading import Loaded, load
from engine.reading import Look, Reading
from engine.scope import Scope
from engine.tokenizers.padded import Padded
from tests.engine.gguf_files import LLAMA, byte_level, write_llama
from tests.engine.test_scope import LIMIT, AnyHistory, Letters, assert_same, fresh, info_of

BOS = 11  # behind the letters a to k


class LettersAfterBos(Letters):
    """As the letters, with a token more that no text spells, and that belongs before each."""

    vocab_size = 12
    prefix_ids = (BOS,)

    def token_bytes(self, token_id: int) -> bytes:
        """The letter, or a name."""
        return b"<s>" if token_id == BOS else bytes([ord("a") + token_id])

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of any tokens, with the name where it was drawn within."""
        return b"".join(map(self.token_bytes, token_ids)).decode()

    def encode(self, text: str) -> list[int]:
        """Letters, and the name as the token: it may have been drawn."""
        first, *others = map(super().encode, text.split("<s>"))
        return [*first, *(each for part in others for each in (BOS, *part))]


@pytest.fixture(scope="module")
def loaded(tiny: Callable[..., Any]) -> Loaded:
    """A small random model that knows the token, with a context of LIMIT tokens."""
    model = tiny("rotary", max_seq_len=LIMIT, vocab_size=12).model
    info = replace(info_of(model.config), prefix_ids=(BOS,))
    return Loaded(model, LettersAfterBos(), info)


@pytest.fixture
def scope(loaded: Loaded) -> Scope:
    """A scope on no text yet."""
    return Scope(loaded)


def logits_of(loaded: Loaded, token_ids: Iterable[int]) -> Any:
    """The last row, by the model alone."""
    with torch.inference_mode():
        return loaded.model(torch.tensor(list(token_ids)))[-1].numpy()


def give_up_after_one() -> Callable[[], bool]:
    """Says no once, then yes."""
    answers = iter([False])
    return lambda: next(answers, True)


def test_the_token_stands_first_and_spells_nothing(scope: Scope, loaded: Loaded) -> None:
    """It is read, has a name and a position; characters begin behind it."""
    reading = scope.edit("abc")
    document = reading.document
    assert (document.text, document.token_ids) == ("abc", (BOS, 0, 1, 2))
    assert document.tokens == (b"<s>", b"a", b"b", b"c")
    assert document.spans.tolist() == [[0, 0], [0, 1], [1, 2], [2, 3]]
    assert (document.n_prefix, document.n_prompt, reading.n_tokens) == (1, 4, 4)
    assert document.replaced == ()
    assert np.isnan(reading.session.loss).tolist() == [True, False, False, False]
    assert reading.stages is not None
    np.testing.assert_allclose(reading.stages.logits, logits_of(loaded, (BOS, 0, 1, 2)), atol=1e-4)


def test_an_empty_text_can_be_gone_on_from(scope: Scope) -> None:
    """The token alone is a text to the model, as it was in its training."""
    reading = scope.edit("")
    assert (reading.n_tokens, reading.cursor, reading.document.text) == (1, 1, "")
    reading = scope.step()
    assert reading.document.n_prompt == 1
    drawn = reading.document.token_ids[1]
    assert reading.document.text == LettersAfterBos().decode([drawn])
    assert scope.back().cursor == 1
    assert scope.back().cursor == 1


def test_keystrokes_keep_the_row_of_the_token(scope: Scope) -> None:
    """Also when the first letter is changed, or all letters are."""
    scope.edit("abc")
    assert scope.edit("abcd").computed == (4, 5)
    assert scope.edit("bcd").computed == (1, 4)
    reading = scope.edit("")
    assert (reading.n_tokens, reading.stats[-1].n_kept) == (1, 1)


def test_a_branch_keeps_the_token(scope: Scope) -> None:
    """And from before it, the chosen token is the first of all."""
    scope.edit("abc")
    assert scope.choose(2, 5).document.token_ids == (BOS, 0, 5)
    assert scope.choose(1, 3).document.text == "d"
    reading = scope.choose(0, 4)
    assert (reading.document.token_ids, reading.document.n_prefix) == ((4,), 0)


def test_a_drawn_token_of_that_name_is_text_like_any_other(scope: Scope) -> None:
    """Only the first spells nothing."""
    scope.edit("ab")
    reading = scope.choose(3, BOS)
    assert reading.document.text == "ab<s>"
    assert reading.document.spans.tolist() == [[0, 0], [0, 1], [1, 2], [2, 5]]
    assert scope.edit(reading.document.text).document.token_ids == reading.document.token_ids


LONG = "abcdefghijkabcde"  # four letters more than the limit, with the token five too many
SEEN = LONG[5:]


def test_beyond_the_limit_it_stays_and_the_oldest_text_falls_out(
    scope: Scope, loaded: Loaded
) -> None:
    """The model reads what it would of the token and the last letters alone."""
    reading = scope.edit(LONG)
    document = reading.document
    assert (reading.n_fallen, reading.n_tokens, reading.n_prefix) == (5, LIMIT, 1)
    letters = [ord(letter) - ord("a") for letter in LONG]
    assert reading.session.token_ids.tolist() == [BOS, *letters[5:]]
    assert document.token_ids == (*letters[:5], BOS, *letters[5:])
    assert (document.text, document.prefix_ids) == (LONG, (BOS,))
    assert document.text_ids == tuple(letters)
    assert document.spans.tolist() == [
        *([i, i + 1] for i in range(5)),
        [5, 5],
        *([i, i + 1] for i in range(5, 16)),
    ]
    alone = Scope(loaded).edit(SEEN)
    assert alone.n_fallen == 0
    np.testing.assert_allclose(reading.session.loss, alone.session.loss, atol=1e-5)
    np.testing.assert_allclose(reading.focus.weights, alone.focus.weights, atol=1e-5)
    assert reading.stages is not None
    expected = logits_of(loaded, (BOS, *letters[5:]))
    np.testing.assert_allclose(reading.stages.logits, expected, atol=1e-4)


def test_one_letter_too_many_takes_the_first_letter(scope: Scope) -> None:
    """And one less brings it back."""
    full = scope.edit(LONG[: LIMIT - 1])
    assert (full.n_fallen, full.n_tokens) == (0, LIMIT)
    over = scope.edit(LONG[:LIMIT])
    assert (over.n_fallen, over.n_tokens) == (1, LIMIT)
    assert over.session.token_ids.tolist() == [BOS, *range(1, 11), 0]
    back = scope.edit(LONG[: LIMIT - 1])
    assert (back.n_fallen, back.session.token_ids.tolist()) == (0, [BOS, *range(11)])


def test_beyond_the_limit_only_the_row_of_the_token_is_kept(scope: Scope) -> None:
    """All others move one position down at each keystroke, so they are computed again."""
    scope.edit(LONG)
    reading = scope.edit(f"{LONG}f")
    assert reading.computed == (1, LIMIT)
    assert (reading.stats[-1].n_kept, reading.stats[-1].n_computed) == (1, LIMIT - 1)


def test_a_full_context_is_gone_on_from_by_nobody(scope: Scope) -> None:
    """Steps fill it up, the token counted, and stop there; beyond it as well."""
    scope.edit(LONG[: LIMIT - 3])
    scope.step()
    full = scope.step()
    assert (full.n_tokens, full.n_fallen, full.full) == (LIMIT, 0, True)
    with pytest.raises(ContextFullError):
        scope.step()
    scope.edit(LONG)
    with pytest.raises(ContextFullError):
        scope.step()
    with pytest.raises(ContextFullError):
        scope.choose(5 + LIMIT, 3)


def test_a_branch_beyond_the_limit_keeps_the_token_first(scope: Scope, loaded: Loaded) -> None:
    """Then fewer letters have fallen out, or none."""
    scope.edit(LONG)
    reading = scope.choose(5 + 1 + 4, 10)  # behind position 4
    assert reading.document.text == f"{LONG[:9]}k"
    assert (reading.n_fallen, reading.document.token_ids[0]) == (0, BOS)
    assert_same(reading, fresh(loaded, reading, Look()))
    scope.edit(LONG)
    reading = scope.choose(5 + 1 + 9, 10)
    assert reading.document.text == f"{LONG[:14]}k"
    assert (reading.n_fallen, reading.session.token_ids[0]) == (4, BOS)
    assert_same(reading, fresh(loaded, reading, Look()))
    scope.edit(LONG)
    assert scope.choose(3, 10).document.token_ids == (BOS, 0, 1, 2, 10)


def test_going_back_beyond_the_limit_ends_at_the_token(scope: Scope) -> None:
    """It is the first that the model sees."""
    scope.edit(LONG)
    reading = scope.go_to(0)
    assert (reading.cursor, reading.session.token_ids.tolist()) == (6, [BOS])
    assert scope.step().session.token_ids.tolist() == [BOS, 5]


def test_the_switch_makes_room_for_one_letter_more(scope: Scope, loaded: Loaded) -> None:
    """And takes it away again, whoever wrote it."""
    scope.edit(LONG)
    without = scope.set_prefix(use=False)
    assert (without.n_fallen, without.document.text) == (4, LONG)
    assert_same(without, fresh(loaded, without, Look()))
    again = scope.set_prefix(use=True)
    assert (again.n_fallen, again.session.token_ids[0]) == (5, BOS)
    assert_same(again, fresh(loaded, again, Look()))


def test_what_was_drawn_stays_drawn_when_it_falls_out(scope: Scope) -> None:
    """A text without a prompt, whose first token makes room for the one before it."""
    scope.edit("")
    for _ in range(LIMIT - 1):
        scope.step()
    scope.set_prefix(use=False)
    scope.choose(LIMIT - 1, 3)
    reading = scope.set_prefix(use=True)
    document = reading.document
    assert (reading.n_fallen, document.prefix_ids, document.n_prompt) == (1, (BOS,), 1)
    assert document.generated.tolist() == [True, False, *[True] * (LIMIT - 1)]
    assert document.origin(0) is not None
    assert document.origin(LIMIT) is None  # chosen
    assert document.generated_from == 0


def test_a_context_of_one_token_is_the_texts(tiny: Callable[..., Any]) -> None:
    """What belongs before a text would leave no room for it."""
    model = tiny("rotary", max_seq_len=1, vocab_size=12).model
    info = replace(info_of(model.config), prefix_ids=(BOS,))
    reading = Scope(Loaded(model, LettersAfterBos(), info)).edit("abc")
    assert reading.session.token_ids.tolist() == [2]


def test_a_second_run_of_an_overlong_text_begins_as_the_first(scope: Scope) -> None:
    """With the token, and the same letters behind it."""
    reading = scope.edit(LONG)
    comparison = SecondRun().compare(scope, reading, Wanted())
    assert comparison is not None
    assert comparison.b.session.token_ids.tolist() == reading.session.token_ids.tolist()
    assert comparison.b.n_prefix == 1
    assert comparison.b.document.text == SEEN


def test_switched_off_the_text_is_read_without_it(scope: Scope, loaded: Loaded) -> None:
    """What is shown of the text stays shown, what was drawn stays drawn; and back again."""
    scope.edit("abc")
    scope.step()
    scope.step()
    before = scope.go_to(5)
    reading = scope.set_prefix(use=False)
    document = reading.document
    assert document.text == before.document.text
    assert document.token_ids == before.document.token_ids[1:]
    assert (document.n_prefix, document.n_prompt, reading.cursor) == (0, 3, 4)
    assert document.origins == before.document.origins
    assert (reading.reason, reading.computed) == ("edited", (0, 4))
    assert_same(reading, fresh(loaded, reading, Look()))
    assert reading.stages is not None
    expected = logits_of(loaded, document.token_ids[:4])
    np.testing.assert_allclose(reading.stages.logits, expected, atol=1e-4)
    assert scope.edit("ab").document.token_ids == (0, 1)
    again = scope.set_prefix(use=True)
    assert (again.document.token_ids, again.cursor) == ((BOS, 0, 1), 3)
    assert scope.set_prefix(use=True).reason == "looked"


def test_the_token_alone_gives_way_to_an_empty_text(scope: Scope) -> None:
    """And comes back."""
    scope.edit("")
    reading = scope.set_prefix(use=False)
    assert (reading.n_tokens, reading.cursor) == (0, 0)
    assert scope.set_prefix(use=True).n_tokens == 1


def test_a_switch_whose_pass_was_given_up_is_in_force_all_the_same(
    scope: Scope, loaded: Loaded
) -> None:
    """As a change of conditions is."""
    scope.edit("abcdef")
    with pytest.raises(CancelledError):
        scope.set_prefix(use=False, cancelled=give_up_after_one())
    reading = scope.look(Look())
    assert (reading.document.token_ids, reading.cursor) == ((0, 1, 2, 3, 4, 5), 6)
    assert_same(reading, fresh(loaded, reading, Look()))


def test_a_model_without_such_a_token_is_left_as_it_is(tiny: Callable[..., Any]) -> None:
    """Whatever the switch says."""
    model = tiny("rotary", max_seq_len=LIMIT).model
    scope = Scope(Loaded(model, Letters(), info_of(model.config)))
    scope.edit("abc")
    assert scope.set_prefix(use=False).reason == "looked"
    assert scope.set_prefix(use=True).document.token_ids == (0, 1, 2)


class AnyHistoryAfterBos(AnyHistory):
    """Whatever a window can ask, the switch among it."""

    @rule(use=st.booleans())
    def switch(self, use: bool) -> None:  # noqa: FBT001
        """On or off; the text stays."""
        text = self.reading.document.text
        self.reading = self.scope.set_prefix(use=use)
        assert self.reading.document.text == text
        assert self.reading.document.n_prefix == use

    @invariant()
    def the_text_is_what_the_tokens_spell(self) -> None:
        """All but those before it, which have no characters."""
        if not hasattr(self, "reading"):
            return
        document: Document = self.reading.document
        assert LettersAfterBos().decode(document.text_ids) == document.text
        assert document.prefix_ids == (BOS,) * document.n_prefix
        assert self.reading.session.token_ids[:1].tolist() == [BOS] or not document.n_prefix
        begin, end = document.spans[document.prefix].T
        assert (begin == end).all()
        assert len(document) == document.n_prompt + len(document.origins)


def test_any_history_shows_what_a_fresh_scope_would(loaded: Loaded) -> None:
    """Edits, steps, branches, masks, cache, looks and the switch, some given up half-way."""
    machine: Any = type("Machine", (AnyHistoryAfterBos,), {"loaded": loaded})
    machine.TestCase.settings = settings(
        max_examples=40, stateful_step_count=15, deadline=None, derandomize=True
    )
    machine.TestCase("runTest").runTest()


# Beside others


def test_a_second_run_begins_as_the_first_does(scope: Scope) -> None:
    """With its own text, and after the switch."""
    scope.edit("abc")
    second = SecondRun()
    for use in (True, False, True):
        reading = scope.set_prefix(use=use)
        for wanted in (Wanted(), Wanted(text="abd")):
            comparison = second.compare(scope, reading, wanted)
            assert comparison is not None
            assert comparison.b.document.n_prefix == use
            assert comparison.b.document.text == (wanted.text or "abc")


def _vocabulary() -> dict[str, Any]:
    bos = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 0}
    return byte_level() | bos


def test_two_vocabularies_are_compared_by_what_their_tokens_spell(
    scope: Scope, tmp_path: Path
) -> None:
    """The tokens before either text belong together, and no text reads their names."""
    other = write_llama(tmp_path / "toy.gguf", vocabulary=_vocabulary())
    wanted = Wanted(path=other, way="token")
    comparison = SecondRun().compare(scope, scope.edit("abc"), wanted)
    assert comparison is not None
    assert comparison.way == "token"
    assert comparison.b.document.text == "abc"
    assert comparison.b.document.tokens == (b"<|end|>", b"a", b"b", b"c")
    assert comparison.alignment.pairs.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]


def test_a_loaded_model_tells_what_belongs_before_its_texts(tmp_path: Path) -> None:
    """Also where its embedding is larger than its vocabulary."""
    metadata = LLAMA | {"llama.context_length": 16}
    loaded = load(write_llama(tmp_path / "toy.gguf", metadata=metadata, vocabulary=_vocabulary()))
    assert loaded.info.prefix_ids == (0,)
    reading: Reading = Scope(loaded).edit("the a")
    assert reading.document.tokens[0] == b"<|end|>"
    assert b"".join(reading.document.spelled) == b"the a"
    assert Padded(loaded.tokenizer, 300).prefix_ids == (0,)
    plain = load(write_llama(tmp_path / "plain.gguf"))
    assert plain.info.prefix_ids == ()
