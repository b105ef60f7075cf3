"""The logit lens, against residuals caught by hooks and read by hand in float64."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.answers.lens import Lens
from engine.answers.lens_pass import LensReader
from engine.answers.recorded_rows import RecordedRows
from engine.conditions import Conditions
from engine.errors import CancelledError
from engine.model import Transformer
from engine.reading import Look
from engine.run import Run
from engine.scope import Scope
from engine.session import Session
from tests.engine.kinds_of_conditions import CONDITIONS

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi")
PLACES = ("pre", "post")
SOME_CONDITIONS = [CONDITIONS[kind] for kind in ("causal", "window and first", "mask off")]

Floats = NDArray[np.float64]


def residuals(model: Transformer, token_ids: list[int], conditions: Conditions) -> list[Floats]:
    """What enters the first block and what leaves each block [S, C], caught by torch's hooks."""
    caught: list[Floats] = []

    def before(_block: Any, operands: tuple[Any, ...]) -> None:
        caught.append(operands[0].double().numpy())

    def after(_block: Any, _operands: tuple[Any, ...], x: torch.Tensor) -> None:
        caught.append(x.double().numpy())

    first = next(iter(model.blocks))
    hooks = [first.register_forward_pre_hook(before)]
    hooks += [block.register_forward_hook(after) for block in model.blocks]
    with torch.no_grad():
        model(torch.tensor(token_ids), conditions=conditions)
    for hook in hooks:
        hook.remove()
    return caught


def by_hand(model: Transformer, x: Floats) -> Floats:
    """Probabilities [S, V] of a residual: final norm, output matrix, softmax, from the weights."""
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    config = model.config
    if config.norm_placement == "pre":
        if config.norm == "layer":
            x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config.norm_eps)
        x = x * weights["final_norm.weight"] + weights.get("final_norm.bias", 0.0)
    matrix = weights["embedding.weight" if config.tied_output else "output.weight"]
    powers = np.exp(x @ matrix.T)
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def assert_is(lens: Lens, model: Transformer, token_ids: list[int], conditions: Conditions) -> None:
    """Every number of every depth and position."""
    caught = residuals(model, token_ids, conditions)
    assert lens.top.shape == (model.config.n_layer + 1, len(token_ids)) == (len(caught), len(lens))
    for depth, x in enumerate(caught):
        probs = by_hand(model, x)
        rows = np.arange(len(token_ids))
        best = probs.max(axis=-1)
        assert lens.top_probability[depth] == pytest.approx(best, abs=2e-5)
        # Two tokens may be as good as equal; the one that is named is one of them.
        assert probs[rows, lens.top[depth]] == pytest.approx(best, abs=2e-5)
        followed = probs[rows, lens.target]
        assert lens.target_probability[depth] == pytest.approx(followed, abs=2e-5)
        above = (probs > followed[:, None] + 2e-5).sum(axis=-1)
        at_most = (probs > followed[:, None] - 2e-5).sum(axis=-1) - 1
        assert np.all(above <= lens.target_rank[depth])
        assert np.all(lens.target_rank[depth] <= np.maximum(at_most, above))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_each_depth_is_its_residual_through_norm_and_output(
    tiny: Callable[..., Run], positions: str, place: str, norm: str
) -> None:
    """Under every kind of conditions, with a tied and an untied output."""
    for tied, conditions in enumerate(CONDITIONS.values()):
        run = tiny(
            positions, norm_placement=place, norm=norm, tied_output=bool(tied % 2), seed=tied
        )
        run.set_conditions(conditions)
        lens = run.lens(run.read(TOKENS), 7)
        assert_is(lens, run.model, TOKENS, conditions)
        assert lens.has_final_norm == (place == "pre")
        assert lens.target.tolist() == [*TOKENS[1:], 7]
        assert lens.follows.all()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_last_depth_is_the_models_output(
    tiny: Callable[..., Run], positions: str, place: str
) -> None:
    """The numbers of the recorded pass, and what a plain call returns; the residuals end there."""
    run = tiny(positions, norm_placement=place)
    session = run.read(TOKENS)
    lens = run.lens(session, None)
    assert lens.difference < 1e-5
    (trace,) = session.traces
    with torch.no_grad():
        shown = run.model.logits(torch.tensor(trace.hidden)).softmax(dim=-1)
    assert lens.top_probability[-1] == pytest.approx(shown.amax(dim=-1).numpy(), abs=2e-7)
    logits = run.model(torch.tensor(TOKENS)).detach()
    assert lens.top[-1].tolist() == logits.argmax(dim=-1).tolist()
    chosen = logits.softmax(dim=-1)[torch.arange(11), torch.tensor(TOKENS[1:])]
    assert lens.target_probability[-1, :-1] == pytest.approx(chosen.numpy(), rel=1e-5)
    # The recorded loss and rank are another way to the same numbers.
    assert -np.log(lens.target_probability[-1, :-1]) == pytest.approx(session.loss[1:], abs=1e-5)
    assert lens.target_rank[-1, :-1].tolist() == session.rank[1:].tolist()


def test_a_text_that_grew_token_by_token_differs_by_rounding_only(
    tiny: Callable[..., Run],
) -> None:
    """Its records lie in twelve passes of one row."""
    run = tiny("rotary")
    for n_tokens in range(1, len(TOKENS) + 1):
        session = run.read(TOKENS[:n_tokens])
    lens = run.lens(session, None)
    assert 0 <= lens.difference < 1e-4 < Lens.TOLERANCE


def test_a_pass_that_is_not_the_shown_one_is_found_out(tiny: Callable[..., Run]) -> None:
    """The difference is measured, not assumed: a record changed by hand shows up in it."""
    run = tiny("rotary")
    session = run.read(TOKENS)
    (trace,) = session.traces
    hidden = trace.hidden.copy()
    hidden[4] += 0.5
    changed = Session((replace(trace, hidden=hidden),))
    reader = LensReader(run.model, changed, Conditions(), 0, follows=False)
    reader.read(0)
    lens = reader.lens(len(TOKENS))
    assert lens.difference > Lens.TOLERANCE
    assert np.flatnonzero(lens.differences > Lens.TOLERANCE).tolist() == [4]


def test_numbers_that_are_not_finite_are_not_hidden(tiny: Callable[..., Run]) -> None:
    run = tiny("rotary")
    with torch.no_grad():
        run.model.get_parameter("blocks.1.mlp.down.weight").fill_(float("nan"))
    lens = run.lens(run.read(TOKENS), None)
    assert np.isfinite(lens.top_probability[:2]).all()
    assert np.isnan(lens.top_probability[2]).all()
    assert not lens.difference <= Lens.TOLERANCE


def test_where_nothing_follows_the_models_own_answer_is_followed(tiny: Callable[..., Run]) -> None:
    run = tiny("learned")
    lens = run.lens(run.read(TOKENS), None)
    assert lens.follows.tolist() == [True] * 11 + [False]
    assert lens.target[-1] == lens.top[-1, -1]
    assert lens.target_rank[-1, -1] == 0
    assert lens.target_probability[-1, -1] == lens.top_probability[-1, -1]


def test_settled_is_the_first_depth_from_which_the_answer_stays(tiny: Callable[..., Run]) -> None:
    """Against a search from the end, on a model of six layers."""
    run = tiny("rotary", n_layer=6, seed=5)
    lens = run.lens(run.read(TOKENS), None)
    for position, settled in enumerate(lens.settled):
        depth = 6
        while depth and lens.top[depth - 1, position] == lens.top[6, position]:
            depth -= 1
        assert settled == depth
    assert len(set(lens.settled.tolist())) > 1


def test_many_rows_are_read_in_parts(tiny: Callable[..., Run]) -> None:
    """More than one part of 64 rows; the parts fit together."""
    run = tiny("alibi", max_seq_len=160)
    token_ids = np.random.default_rng(2).integers(0, 11, 150).tolist()
    lens = run.lens(run.read(token_ids), 0)
    assert_is(lens, run.model, token_ids, Conditions())


def test_the_arrays_cannot_be_written_to(tiny: Callable[..., Run]) -> None:
    run = tiny("none")
    first = run.lens(run.read(TOKENS[:5]), None)
    grown = run.lens(run.read(TOKENS), None)
    for lens in (first, grown, run.lens(run.session.truncate(3), TOKENS[3])):
        for name in ("top", "top_probability", "target", "follows", "target_rank", "differences"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(lens, name)[..., 0] = 0


def test_it_can_be_given_up_between_layers_and_rows(tiny: Callable[..., Run]) -> None:
    """And then goes on from what was read."""
    for n_asked in range(5):
        run = tiny("rotary", max_seq_len=64)
        session = run.read(TOKENS * 5)
        answers = iter([False] * n_asked)
        with pytest.raises(CancelledError):
            run.lens(session, None, cancelled=lambda: next(answers, True))  # noqa: B023
        assert run.read(TOKENS * 5) is session
        assert_is(run.lens(session, None), run.model, TOKENS * 5, Conditions())


def test_nobody_else_pays_for_it(tiny: Callable[..., Run]) -> None:
    """Reading a text asks the final norm once per pass, as before."""
    run, calls = tiny("rotary"), []
    run.model.final_norm.register_forward_hook(lambda *_: calls.append(1))
    run.read(TOKENS)
    assert len(calls) == 1
    run.lens(run.session, None)
    assert len(calls) == 1 + 3


# What is known is not worked out again


class Counted:
    """Which rows the lenses of a run computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[range] = []
        residuals = RecordedRows.residuals

        def counting(recorded: RecordedRows, rows: slice, *more: Any) -> Iterator[torch.Tensor]:
            self.rows.append(range(rows.start, rows.stop))
            return residuals(recorded, rows, *more)

        monkeypatch.setattr(RecordedRows, "residuals", counting)

    @property
    def counts(self) -> list[int]:
        """How many each time."""
        return list(map(len, self.rows))


def test_one_more_token_costs_one_position_more(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the one before it, if another token follows it now than was followed there."""
    counted, run = Counted(monkeypatch), tiny("rotary")
    own = int(run.lens(run.read(TOKENS), None).target[-1])
    run.lens(run.read([*TOKENS, own]), None)
    run.lens(run.read([*TOKENS, own, 1]), 2)
    run.lens(run.read([*TOKENS, own, 1, 2]), None)
    run.lens(run.session.truncate(9), 3)
    run.lens(run.session, None)
    run.lens(run.session.truncate(9), 4)
    assert counted.counts == [12, 2, 2, 1, 1]


def test_with_the_mask_off_everything_is_worked_out_again(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier rows change with every token."""
    counted, run = Counted(monkeypatch), tiny("rotary")
    run.set_conditions(Conditions(mask="none"))
    run.lens(run.read(TOKENS), None)
    lens = run.lens(run.read([*TOKENS, 1]), None)
    assert counted.counts == [12, 13]
    assert_is(lens, run.model, [*TOKENS, 1], Conditions(mask="none"))


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 3), min_size=1, max_size=8),
            st.none() | st.integers(0, 3),
            st.sampled_from(
                [CONDITIONS[kind] for kind in ("causal", "window and first", "mask off")]
            ),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=40, deadline=None)
def test_after_any_history_the_lens_is_a_fresh_ones(
    tiny: Callable[..., Run], asked: list[tuple[list[int], int | None, Conditions, bool]]
) -> None:
    """Texts that share beginnings, under conditions that come and go."""
    model = tiny("rotary").model
    run = Run(model)
    for token_ids, next_id, conditions, use_cache in asked:
        run.set_conditions(conditions)
        run.set_cache(use=use_cache)
        lens = run.lens(run.read(token_ids), next_id)
        other = Run(model)
        other.set_conditions(conditions)
        fresh = other.lens(other.read(token_ids), next_id)
        assert lens.follows.tolist() == fresh.follows.tolist()
        assert lens.top_probability == pytest.approx(fresh.top_probability, abs=1e-5)
        assert lens.target[lens.follows].tolist() == fresh.target[fresh.follows].tolist()
        assert lens.difference < 1e-4


# Position by position


@pytest.fixture
def in_bits(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """No more than three positions of a tiny model at a time."""
    monkeypatch.setattr("engine.answers.lens_pass._NUMBERS", 3 * 3 * 11)
    return Counted(monkeypatch)


def test_the_position_that_is_asked_for_is_read_first_and_then_its_neighbours(
    tiny: Callable[..., Run], in_bits: Counted
) -> None:
    """Whoever asks again gets more of it, until all is known."""
    run = tiny("rotary")
    session = run.read(TOKENS)
    known: list[list[bool]] = []
    while not known or not all(known[-1]):
        lens = run.lens(session, None, around=7, only_some=True)
        known.append(lens.known.tolist())
        assert lens.n_known == sum(known[-1])
        assert lens.is_whole == all(known[-1])
    assert list(in_bits.rows[0]) == [7]
    assert sorted(at for rows in in_bits.rows for at in rows) == list(range(12))
    assert all(len(rows) <= 3 for rows in in_bits.rows)
    distances = [min(abs(at - 7) for at in rows) for rows in in_bits.rows]
    assert distances == sorted(distances)
    assert_is(lens, run.model, TOKENS, Conditions())


def test_another_position_goes_before_the_rest(tiny: Callable[..., Run], in_bits: Counted) -> None:
    run = tiny("rotary")
    session = run.read(TOKENS)
    run.lens(session, None, around=11, only_some=True)
    lens = run.lens(session, None, around=2, only_some=True)
    assert in_bits.rows == [range(11, 12), range(2, 3)]
    assert lens.known.nonzero()[0].tolist() == [2, 11]
    whole = tiny("rotary")
    rest = whole.lens(whole.read(TOKENS), None)
    for name in ("top", "target_rank", "top_probability", "target_probability"):
        assert getattr(lens, name)[:, [2, 11]] == pytest.approx(getattr(rest, name)[:, [2, 11]])
    unread = np.delete(np.arange(12), [2, 11])
    assert np.isnan(lens.top_probability[:, unread]).all()
    assert lens.difference < 1e-5


@pytest.mark.parametrize("is_idle", [False, True])
def test_a_position_alone_is_the_same_on_one_thread_and_on_two(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, *, is_idle: bool
) -> None:
    """A core that torch leaves idle reads half of the depths."""
    monkeypatch.setattr("engine.answers.lens_pass._NUMBERS", 1)
    monkeypatch.setattr("engine.answers.lens_pass._is_core_idle", lambda _hidden: is_idle)
    run = tiny("rotary")
    lens = run.lens(run.read(TOKENS), None)
    assert_is(lens, run.model, TOKENS, Conditions())
    assert lens.difference < 1e-5


def test_a_lens_that_was_read_in_part_grows_with_its_text(
    tiny: Callable[..., Run], in_bits: Counted
) -> None:
    """What is known of the beginning is not read again, wherever the text goes on."""
    run = tiny("rotary")
    run.lens(run.read(TOKENS), None, around=3, only_some=True)
    run.lens(run.session, None, around=3, only_some=True)
    known = {at for rows in in_bits.rows for at in rows}
    in_bits.rows.clear()
    longer = [*TOKENS[:8], 7, 7]
    assert_is(run.lens(run.read(longer), None, around=9), run.model, longer, Conditions())
    read = [at for rows in in_bits.rows for at in rows]
    assert sorted(read) == sorted(set(range(10)) - known)


# The question as the window asks it


@pytest.fixture
def scope(lettered: Callable[..., Scope]) -> Scope:
    """A model of letters on "abcabc" with room for eight."""
    return lettered("abcabc", letters="abcdefgh", max_seq_len=8)


def test_stepping_back_leaves_what_follows_known(scope: Scope) -> None:
    """The text beyond the cursor says what follows the last position that is shown."""
    at_end = scope.lens(scope.look(Look()))
    assert at_end is not None
    assert not at_end.follows[-1]
    reading = scope.go_to(3)
    lens = scope.lens(reading)
    assert lens is not None
    assert len(lens) == 3
    assert lens.follows.all()
    assert lens.target.tolist() == list(reading.document.token_ids[1:4])


def test_what_has_fallen_out_is_not_followed(scope: Scope) -> None:
    """Ten letters, of which the model sees the last eight."""
    reading = scope.edit("abcdefghab")
    lens = scope.lens(reading)
    assert lens is not None
    assert lens.target[:-1].tolist() == list(reading.document.token_ids[3:])
    assert_is(lens, scope._run.model, list(reading.document.token_ids[2:]), Conditions())


def test_an_empty_text_and_another_models_reading_have_no_lens(scope: Scope) -> None:
    reading = scope.look(Look())
    assert scope.lens(replace(reading, info=replace(reading.info))) is None
    assert scope.lens(scope.edit("")) is None


def test_a_reading_under_other_conditions_has_no_lens(scope: Scope) -> None:
    reading = scope.look(Look())
    scope.set_conditions(Conditions(mask="none"))
    assert scope.lens(reading) is None


def test_perplexity_of_the_last_depth_is_the_recorded_one(scope: Scope) -> None:
    """A sum over the whole text, by two ways."""
    reading = scope.look(Look())
    lens = scope.lens(reading)
    assert lens is not None
    mean = float(-np.log(lens.target_probability[-1, :-1].astype(np.float64)).mean())
    assert math.exp(mean) == pytest.approx(math.exp(float(reading.session.loss[1:].mean())))
