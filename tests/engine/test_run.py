from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.errors import CancelledError, ContextFullError, EngineError
from engine.reading import PassStats
from engine.run import Pieces, Run
from engine.session import Session
from tests.engine.kinds_of_conditions import CONDITIONS

Tiny = Callable[..., Run]
POSITIONS = ["none", "learned", "sinusoidal", "rotary", "alibi"]
TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
MASK_OFF = Conditions(mask="none")


def _logits(run: Run, session: Session) -> np.ndarray:
    return np.array([run.logits(session, at) for at in range(len(session))])


def _patterns(run: Run, session: Session) -> np.ndarray:
    return np.array(
        [
            [run.pattern(session, layer, head) for head in range(run.config.n_head)]
            for layer in range(run.config.n_layer)
        ]
    )


def _assert_same(run: Run, other: Run) -> None:
    """Two runs hold the same text and would show the same."""
    one, two = run.session, other.session
    assert one.token_ids.tolist() == two.token_ids.tolist()
    np.testing.assert_allclose(_logits(run, one), _logits(other, two), atol=1e-5)
    np.testing.assert_allclose(_patterns(run, one), _patterns(other, two), atol=1e-5)
    np.testing.assert_allclose(one.loss, two.loss, atol=1e-5)
    np.testing.assert_array_equal(one.rank, two.rank)
    np.testing.assert_allclose(one.features, two.features, atol=1e-5)


def _fresh(run: Run, token_ids: list[int]) -> Run:
    fresh = Run(run.model)
    fresh.set_conditions(run.conditions)
    fresh.read(token_ids)
    return fresh


# One text, many ways to it


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_prefill_and_steps_equal_one_pass(
    tiny: Tiny, positions: str, conditions: Conditions
) -> None:
    run = tiny(positions)
    run.set_conditions(conditions)
    for n_tokens in range(4, 11):
        run.read(TEXT[:n_tokens])
    _assert_same(run, _fresh(run, TEXT))


@pytest.mark.parametrize("positions", POSITIONS)
def test_stepping_back_and_branching_equals_a_fresh_run(tiny: Tiny, positions: str) -> None:
    run = tiny(positions)
    for n_tokens in (4, 5, 6, 7, 10):
        run.read(TEXT[:n_tokens])
    for branch in ([*TEXT[:5], 0], [*TEXT[:8], 0, 0], [*TEXT[:2], 7], TEXT):
        run.read(branch)
        _assert_same(run, _fresh(run, branch))


@pytest.mark.parametrize("at", [0, 1, 5, 9])
def test_an_edit_in_the_middle_equals_a_fresh_run_and_keeps_what_is_before(
    tiny: Tiny, at: int
) -> None:
    run = tiny()
    run.read(TEXT)
    edited = [*TEXT[:at], 8, 8, *TEXT[at:]]
    run.read(edited)
    assert (run.stats[-1].n_kept, run.stats[-1].n_computed) == (at, 12 - at)
    _assert_same(run, _fresh(run, edited))


def test_with_the_cache_off_everything_is_computed_again_and_is_the_same(tiny: Tiny) -> None:
    run = tiny()
    run.set_cache(use=False)
    for n_tokens in (4, 9, 10, 7):
        run.read(TEXT[:n_tokens])
        assert run.stats[-1].n_computed == n_tokens
        assert run.stats[-1].cache_bytes == run.cache_bytes == 0
        assert len(run.session.traces) == 1
        _assert_same(run, _fresh(run, TEXT[:n_tokens]))


# What a read reports


def test_stats_tell_what_each_read_cost_and_why(tiny: Tiny) -> None:
    run = tiny()
    for text in (TEXT[:4], TEXT[:5], [*TEXT[:2], 7, 7], [*TEXT[:2], 7], []):
        run.read(text)
    run.read(TEXT[:3])
    run.set_cache(use=False)
    run.read(TEXT[:3])
    run.set_conditions(MASK_OFF)
    run.read(TEXT[:4])
    run.read(TEXT[:5])
    told = [(each.reason, each.n_tokens, each.n_kept, each.n_computed) for each in run.stats]
    assert told == [
        ("started", 4, 0, 4),
        ("grown", 5, 4, 1),
        ("edited", 4, 2, 2),
        ("edited", 3, 3, 0),
        ("edited", 0, 0, 0),
        ("started", 3, 0, 3),
        ("cache off", 3, 0, 3),
        ("mask off", 4, 0, 4),
        ("mask off", 5, 0, 5),
    ]
    assert [each.cached for each in run.stats] == [True] * 6 + [False] * 3
    assert all((each.seconds > 0) == (each.n_computed > 0) for each in run.stats)


def test_cache_bytes_are_those_of_the_formula(tiny: Tiny) -> None:
    """2 · n_layer · n_kv_head · head_dim · tokens · 4 bytes."""
    run = tiny()
    for n_tokens in (3, 4, 9, 2):
        run.read(TEXT[:n_tokens])
        assert run.stats[-1].cache_bytes == run.cache_bytes == 2 * 2 * 2 * 4 * n_tokens * 4
    assert run.cache_allocated_bytes == 2 * 2 * 2 * 4 * 32 * 4
    assert run.cache_bytes_per_number == 4


def test_the_same_text_again_costs_and_reports_nothing(tiny: Tiny) -> None:
    for conditions in (Conditions(), MASK_OFF):
        run = tiny()
        run.set_conditions(conditions)
        session = run.read(TEXT)
        assert run.read(TEXT) is session
        assert len(run.stats) == 1


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("use", [True, False])
def test_a_text_can_become_empty_and_start_again(
    tiny: Tiny,
    conditions: Conditions,
    use: bool,  # noqa: FBT001
) -> None:
    run = tiny()
    run.set_cache(use=use)
    run.set_conditions(conditions)
    for text in ([], TEXT, [], TEXT[:3]):
        run.read(text)
        assert run.session.token_ids.tolist() == text
    assert run.pattern(Session(), 1, 3).shape == run.visible(0, 0).shape == (0, 0)
    _assert_same(run, _fresh(run, TEXT[:3]))


# Limits


def test_the_context_can_be_filled_and_one_more_is_a_clear_state(tiny: Tiny) -> None:
    run = tiny(max_seq_len=10)
    session, size, stats = run.read(TEXT), run.cache_bytes, run.stats
    with pytest.raises(ContextFullError) as caught:
        run.read([*TEXT, 0])
    assert str(caught.value) == (
        "11 tokens do not fit into this model's context of 10; shorten the text."
    )
    assert run.session is session
    assert (run.cache_bytes, run.stats) == (size, stats)
    run.read([*TEXT[:9], 0])
    _assert_same(run, _fresh(run, [*TEXT[:9], 0]))


@pytest.mark.parametrize("token_ids", [[3, 11], [-1, 3]])
def test_a_token_outside_the_vocabulary_is_refused_and_leaves_the_run(
    tiny: Tiny, token_ids: list[int]
) -> None:
    run = tiny()
    session = run.read(TEXT)
    with pytest.raises(EngineError) as caught:
        run.read(token_ids)
    assert str(caught.value) == (
        f"the token ids {min(token_ids)} to {max(token_ids)} do not fit a vocabulary of 11; "
        "the tokenizer belongs to another model."
    )
    assert run.session is session


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("most_rows", [1, 3, 4, 99])
def test_a_text_that_is_read_in_pieces_is_the_same(
    tiny: Tiny, positions: str, conditions: Conditions, most_rows: int
) -> None:
    run = tiny(positions)
    run.set_conditions(conditions)
    run.read(TEXT, pieces=Pieces(most_rows))
    _assert_same(run, _fresh(run, TEXT))


def test_pieces_are_even_and_told_of_as_soon_as_they_are_read(tiny: Tiny) -> None:
    """Seven new rows in pieces of at most three are three pieces, and one entry in the stats."""
    run, told = tiny(), []
    run.read(TEXT[:3])

    def so_far(session: Session, stats: PassStats) -> None:
        told.append((session.token_ids.tolist(), stats.n_kept, stats.n_computed, stats.reason))

    run.read(TEXT, pieces=Pieces(most_rows=3, so_far=so_far))
    assert told == [(TEXT[:5], 3, 2, "grown"), (TEXT[:7], 3, 4, "grown")]
    assert [(each.n_tokens, each.n_kept, each.n_computed) for each in run.stats] == [
        (3, 0, 3),
        (10, 3, 7),
    ]
    assert run.stats[-1].seconds == pytest.approx(sum(t.seconds for t in run.session.traces[1:]))


@pytest.mark.parametrize(
    ("first_rows", "ends"), [(0, [3, 6, 10]), (2, [2, 6, 10]), (5, [5, 7, 10]), (6, [3, 6, 10])]
)
def test_the_first_piece_may_be_smaller_if_it_leaves_as_much_for_others(
    tiny: Tiny, first_rows: int, ends: list[int]
) -> None:
    """A last piece of a few rows would cost a pass of its own and show hardly more."""
    run = tiny()
    run.read(TEXT, pieces=Pieces(4, first_rows))
    assert [trace.end for trace in run.session.traces] == ends
    _assert_same(run, _fresh(run, TEXT))


@pytest.mark.parametrize("conditions", [Conditions(), MASK_OFF], ids=["cache off", "mask off"])
def test_where_every_pass_computes_all_rows_there_are_no_pieces(
    tiny: Tiny, conditions: Conditions
) -> None:
    run, told = tiny(), []
    run.set_conditions(conditions)
    run.set_cache(use=conditions == MASK_OFF)
    run.read(TEXT, pieces=Pieces(3, 2, lambda *piece: told.append(piece)))
    assert not told
    assert len(run.session.traces) == 1


def test_reading_that_is_given_up_between_two_pieces_leaves_those_before(tiny: Tiny) -> None:
    run, told = tiny(), []
    pieces = Pieces(4, so_far=lambda *piece: told.append(piece))
    with pytest.raises(CancelledError):
        run.read(TEXT, lambda: bool(told), pieces)
    assert len(run.session) == 3
    run.read(TEXT)
    assert run.stats[-1].n_kept == 3
    _assert_same(run, _fresh(run, TEXT))


@pytest.mark.parametrize("n_layers_done", [0, 1])
@pytest.mark.parametrize("kept", [0, 4, 7])
def test_a_pass_that_is_given_up_leaves_a_true_prefix(
    tiny: Tiny, kept: int, n_layers_done: int
) -> None:
    run = tiny()
    run.read(TEXT[:7])
    answers = iter([False] * n_layers_done + [True])
    edited = [*TEXT[:kept], 0, 0, 0]
    with pytest.raises(CancelledError):
        run.read(edited, lambda: next(answers))
    assert len(run.stats) == 1
    if kept:
        _assert_same(run, _fresh(run, TEXT[:kept]))
    assert len(run.session) == kept
    run.read(edited)
    assert run.stats[-1].n_kept == kept
    _assert_same(run, _fresh(run, edited))


@pytest.mark.parametrize("use", [True, False])
def test_where_nothing_is_reused_a_pass_that_is_given_up_changes_nothing(
    tiny: Tiny,
    use: bool,  # noqa: FBT001
) -> None:
    run = tiny()
    run.set_cache(use=use)
    run.set_conditions(MASK_OFF if use else Conditions())
    session = run.read(TEXT)
    with pytest.raises(CancelledError):
        run.read(TEXT[:5], lambda: True)
    assert run.session is session


# Conditions


def test_new_conditions_start_from_nothing_and_the_same_ones_do_not(tiny: Tiny) -> None:
    run = tiny()
    session = run.read(TEXT)
    run.set_conditions(Conditions(window=7))
    run.set_cache(use=True)
    assert run.session is session
    run.set_conditions(Conditions(mask="window", window=2))
    assert len(run.session) == run.cache_bytes == 0
    run.read(TEXT)
    assert run.stats[-1].n_kept == 0
    run.set_cache(use=False)
    assert len(run.session) == run.cache_bytes == 0


@pytest.mark.parametrize("n_tokens", [3, 4, 5, 10])
def test_under_a_windows_mask_the_cache_is_flat_at_the_window(tiny: Tiny, n_tokens: int) -> None:
    """One below a window of 4, at it and above; and all of it is back with the mask."""
    run = tiny()
    row = 2 * run.config.n_kv_head * run.config.head_dim * 4
    for window, sinks, most in ((4, 0, 4), (3, 1, 4), (2, 0, 2), (90, 2, 92)):
        run.set_conditions(Conditions(mask="window", window=window, sinks=sinks))
        run.read(TEXT[:n_tokens])
        assert run.cache_layer_bytes == (row * min(n_tokens, most),) * run.config.n_layer
        assert run.stats[-1].cache_bytes == run.cache_bytes
        assert (run.stats[-1].window, run.stats[-1].sinks) == (window, sinks)
    run.set_conditions(Conditions())
    run.read(TEXT[:n_tokens])
    assert run.cache_layer_bytes == (row * n_tokens,) * run.config.n_layer
    assert (run.stats[-1].window, run.stats[-1].sinks) == (0, 0)


def test_the_mask_off_changes_the_loss_and_the_mask_on_restores_it(tiny: Tiny) -> None:
    run = tiny()
    before = run.read(TEXT).loss
    run.set_conditions(MASK_OFF)
    assert np.abs(run.read(TEXT).loss - before)[1:].max() > 1e-2
    run.set_conditions(Conditions())
    np.testing.assert_allclose(run.read(TEXT).loss, before, atol=1e-6)


@pytest.mark.parametrize("n_tokens", range(12))
def test_an_earlier_moment_is_what_it_was_then(tiny: Tiny, n_tokens: int) -> None:
    """With the mask on by keeping rows, with the mask off by computing them again."""
    for conditions in (Conditions(), MASK_OFF):
        run = tiny()
        run.set_conditions(conditions)
        run.read(TEXT)
        then = run.at(n_tokens)
        fresh = _fresh(run, TEXT[:n_tokens])
        assert then.token_ids.tolist() == TEXT[:n_tokens]
        np.testing.assert_allclose(_patterns(run, then), _patterns(fresh, fresh.session), atol=1e-5)
        np.testing.assert_allclose(_logits(run, then), _logits(fresh, fresh.session), atol=1e-5)
        np.testing.assert_allclose(then.loss, fresh.session.loss, atol=1e-5)
        assert len(run.session) == len(TEXT)


def test_an_earlier_moment_with_the_mask_off_is_computed_once(tiny: Tiny) -> None:
    run = tiny()
    run.set_conditions(MASK_OFF)
    run.read(TEXT)
    then = run.at(4)
    assert run.at(4) is then
    assert run.at(5) is not then
    run.read([0, *TEXT[1:]])
    assert run.at(4).token_ids.tolist() == [0, *TEXT[1:4]]


# What is shown is what was used


@pytest.mark.parametrize("block", [128, 3])
@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_the_shown_pattern_is_what_the_passes_used(
    tiny: Tiny,
    used: Any,
    monkeypatch: pytest.MonkeyPatch,
    positions: str,
    conditions: Conditions,
    block: int,
) -> None:
    """Over a prefill, steps and an edit, in one block of queries or several."""
    monkeypatch.setattr("engine.attention.QUERY_BLOCK", block)
    run = tiny(positions)
    run.set_conditions(conditions)
    for text in (TEXT[:6], TEXT[:7], [*TEXT[:3], 0], [*TEXT[:3], 0, *TEXT[3:]]):
        run.read(text)
    shown = _patterns(run, run.session)
    np.testing.assert_allclose(shown, used.pattern(11), atol=1e-6)
    assert not shown[:, :, ~run.visible(0, 11)].any()
    np.testing.assert_allclose(run.last_rows(run.session), shown[:, :, -1], atol=1e-6)


def test_the_shown_logits_are_the_models(tiny: Tiny) -> None:
    run = tiny()
    session = run.read(TEXT)
    expected = run.model(torch.tensor(TEXT)).numpy()
    np.testing.assert_allclose(_logits(run, session), expected, atol=1e-6)


@pytest.mark.parametrize("rows", [64, 3])
def test_loss_and_rank_are_those_of_the_row_before(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Also across passes, behind a cut, and when logits are worked out in several parts."""
    monkeypatch.setattr("engine.run.N_TOGETHER", rows)
    run = tiny()
    for text in ([*TEXT[:4], 0, 0, 0], TEXT[:5], TEXT):
        session = run.read(text)
    logits = _logits(run, session).astype(np.float64)
    assert np.isnan(session.loss[0])
    assert session.rank[0] == -1
    for position in range(1, len(TEXT)):
        row, target = logits[position - 1], TEXT[position]
        loss = np.log(np.exp(row).sum()) - row[target]
        assert session.loss[position] == pytest.approx(loss, abs=1e-5)
        assert session.rank[position] == sorted(row)[::-1].index(row[target])


def test_an_old_story_stays_true_while_the_run_goes_on(tiny: Tiny) -> None:
    """Records are not views of anything that a later pass writes to."""
    run = tiny()
    old = run.read(TEXT[:6])
    kept = [trace.q.copy() for trace in old.traces], old.k(1).copy(), old.features.copy()
    pattern = run.pattern(old, 1, 2)
    run.read([0, 0, 0])
    run.read(TEXT)
    np.testing.assert_array_equal(old.traces[0].q, kept[0][0])
    np.testing.assert_array_equal(old.k(1), kept[1])
    np.testing.assert_array_equal(old.features, kept[2])
    np.testing.assert_array_equal(run.pattern(old, 1, 2), pattern)


def test_nothing_that_is_handed_out_can_be_written_to(tiny: Tiny) -> None:
    run = tiny()
    session = run.read(TEXT)
    for array in (run.pattern(session, 0, 0), run.logits(session, 3), run.visible(0, 4)):
        assert not array.flags.writeable


# The cache is checked against a pass without it


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_cached_text_agrees_with_one_pass_without_cache(tiny: Tiny, positions: str) -> None:
    run = tiny(positions)
    for text in (TEXT[:6], TEXT[:7], [*TEXT[:3], 0], TEXT):
        run.read(text)
    check = run.check_cache(run.session)
    assert check.n_tokens == 10
    assert check.logits < 1e-5
    assert check.weights < 1e-5
    assert len(run.session) == 10


def test_a_wrong_cache_is_found(tiny: Tiny) -> None:
    run = tiny()
    run.read(TEXT[:9])
    run._kv_cache.v[0] += 1
    run.read(TEXT)
    check = run.check_cache(run.session)
    assert check.logits > 1e-2
    assert check.weights > 1e-3


def test_the_check_can_be_given_up(tiny: Tiny) -> None:
    run = tiny()
    session = run.read(TEXT)
    with pytest.raises(CancelledError):
        run.check_cache(session, lambda: True)
    assert run.session is session


def test_what_follows_a_text_is_known_after_a_step_back(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And after an edit of the last token what was before it; the output matrix is not asked."""
    run = tiny("rotary")
    before = run.read(TEXT[:5])
    expected = run.logits(before, 4)
    run.logits(run.read(TEXT[:6]), 5)
    asked: list[int] = []
    logits = run.model.logits
    monkeypatch.setattr(run.model, "logits", lambda x: asked.append(len(x)) or logits(x))
    assert np.array_equal(run.logits(run.read(TEXT[:5]), 4), expected)
    run.read([*TEXT[:5], 7])
    assert asked == []
