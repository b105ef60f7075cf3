from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine.conditions import Conditions
from engine.run import Run
from engine.session import Session
from engine.thumbnails import Thumbnails, merge_bins, visible_bins

Tiny = Callable[..., Run]
TEXT = [(7 * i * i + i // 3) % 11 for i in range(1100)]


def _pooled(weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Peaks [L, H, R, R] and first [L, H, R] of squares [L, H, S, S] by torch's own pooling."""
    squares = torch.tensor(weights)
    first = F.max_pool1d(squares[..., 0].flatten(0, 1), size, ceil_mode=True)
    squares[..., 0] = 0
    peaks = F.max_pool2d(squares.flatten(0, 1), size, ceil_mode=True)
    shape = weights.shape[:2]
    return peaks.unflatten(0, shape).numpy(), first.unflatten(0, shape).numpy()


def _assert_exact(thumbnails: Thumbnails, weights: np.ndarray) -> None:
    """Bit for bit the pooled weights that the passes used."""
    peaks, first = _pooled(weights, thumbnails.bin_size)
    np.testing.assert_array_equal(thumbnails.peaks, (255 * np.sqrt(peaks)).round())
    np.testing.assert_array_equal(thumbnails.first, (255 * np.sqrt(first)).round())
    assert thumbnails.n_tokens == weights.shape[2]


def _assert_rounded(thumbnails: Thumbnails, weights: np.ndarray) -> None:
    """The same where weights were worked out again: equal up to float32 before the rounding."""
    peaks, first = _pooled(weights, thumbnails.bin_size)
    for shown, expected in ((thumbnails.peaks, peaks), (thumbnails.first, first)):
        assert shown.shape == expected.shape
        assert np.abs(shown - 255 * np.sqrt(expected)).max(initial=0) < 0.51


def _patterns(run: Run, session: Session) -> np.ndarray:
    return np.array(
        [
            [run.pattern(session, layer, head) for head in range(run.config.n_head)]
            for layer in range(run.config.n_layer)
        ]
    )


def test_a_growing_text_keeps_exact_thumbnails_at_every_step(tiny: Tiny, used: Any) -> None:
    """Token by token over the doubling from 64 to 65, in one thumbnail maker."""
    run = tiny(max_seq_len=200)
    for n_tokens in range(1, 132):
        thumbnails = run.thumbnails(run.read(TEXT[:n_tokens]))
        _assert_exact(thumbnails, used.pattern(n_tokens))
    assert thumbnails.bin_size == 4


@pytest.mark.parametrize(
    ("n_tokens", "size", "bins"), [(63, 1, 63), (64, 1, 64), (65, 2, 33), (66, 2, 33)]
)
def test_the_65th_token_halves_the_picture(tiny: Tiny, n_tokens: int, size: int, bins: int) -> None:
    run = tiny(max_seq_len=200)
    thumbnails = run.thumbnails(run.read(TEXT[:n_tokens]))
    assert thumbnails.bin_size == size
    assert thumbnails.peaks.shape == (2, 4, bins, bins)
    assert thumbnails.first.shape == (2, 4, bins)


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(),
        Conditions(mask="window", window=9, sinks=2),
        Conditions(mask="none"),
        Conditions(positions=False),
    ],
    ids=["causal", "window", "mask off", "positions off"],
)
def test_a_long_text_in_pieces_is_exact_up_to_1024_tokens(
    tiny: Tiny, used: Any, conditions: Conditions
) -> None:
    run = tiny("alibi", n_layer=1, n_head=2, n_kv_head=1, d_model=8, max_seq_len=1024)
    run.set_conditions(conditions)
    for n_tokens in (300, 301, 700, 1023, 1024):
        thumbnails = run.thumbnails(run.read(TEXT[:n_tokens]))
    _assert_exact(thumbnails, used.pattern(1024))
    assert thumbnails.peaks.shape[2:] == (64, 64)


def test_many_steps_drawn_for_the_first_time_are_exact(tiny: Tiny, used: Any) -> None:
    """Nothing depends on having been asked after every step."""
    run = tiny(max_seq_len=200)
    for n_tokens in range(30, 150):
        run.read(TEXT[:n_tokens])
    _assert_exact(run.thumbnails(run.session), used.pattern(149))


def test_stepping_back_over_whole_passes_is_exact(tiny: Tiny, used: Any) -> None:
    run = tiny(max_seq_len=200)
    for n_tokens in range(40, 70):
        run.thumbnails(run.read(TEXT[:n_tokens]))
    for n_tokens in (66, 65, 64, 41):
        thumbnails = run.thumbnails(run.at(n_tokens))
        if n_tokens > 64:
            _assert_exact(thumbnails, used.pattern(n_tokens))
        _assert_rounded(thumbnails, _patterns(run, run.at(n_tokens)))
    _assert_exact(run.thumbnails(run.session), used.pattern(69))


@pytest.mark.parametrize("kept", [1, 30, 63, 64, 65, 128, 129, 250, 299])
def test_a_long_text_cut_short_is_drawn_as_finely_as_a_short_one(tiny: Tiny, kept: int) -> None:
    """Its rows were pooled for the long text, so they are pooled again from q and k."""
    run = tiny(max_seq_len=300)
    run.thumbnails(run.read(TEXT[:300]))
    session = run.read(TEXT[:kept])
    thumbnails = run.thumbnails(session)
    assert thumbnails.bin_size == {1: 1, 30: 1, 63: 1, 64: 1, 65: 2, 128: 2}.get(
        kept, 4 if kept < 257 else 8
    )
    _assert_rounded(thumbnails, _patterns(run, session))
    edited = run.read([*TEXT[:kept], 0, 1, 2][:300])
    _assert_rounded(run.thumbnails(edited), _patterns(run, edited))


def test_an_edit_in_the_middle_is_drawn_from_there_on(tiny: Tiny) -> None:
    run = tiny(max_seq_len=200)
    run.thumbnails(run.read(TEXT[:100]))
    session = run.read([*TEXT[:40], 3, 3, *TEXT[40:100]])
    _assert_rounded(run.thumbnails(session), _patterns(run, session))


def test_empty_texts_come_and_go(tiny: Tiny) -> None:
    """A new text after an empty one is drawn whole."""
    run = tiny()
    assert run.thumbnails(run.read([])).peaks.size == 0
    session = run.read(TEXT[:5])
    _assert_rounded(run.thumbnails(session), _patterns(run, session))
    assert run.thumbnails(run.read([])).n_tokens == 0
    session = run.read(TEXT[:7])
    _assert_rounded(run.thumbnails(session), _patterns(run, session))


def test_rows_before_changed_from_are_as_they_were(tiny: Tiny) -> None:
    """So that a window may redraw only the rest."""
    run = tiny(max_seq_len=200)
    shown = run.thumbnails(run.read(TEXT[:3]))
    froms = []
    for n_tokens in (4, 5, 60, 64, 65, 66, 67, 80, 130):
        before, shown = shown, run.thumbnails(run.read(TEXT[:n_tokens]))
        froms.append(shown.changed_from)
        if not shown.changed_from:
            continue
        old = slice(0, shown.changed_from)
        np.testing.assert_array_equal(
            shown.peaks[:, :, old, : before.peaks.shape[3]], before.peaks[:, :, old]
        )
        np.testing.assert_array_equal(shown.first[:, :, old], before.first[:, :, old])
        assert not shown.peaks[:, :, old, before.peaks.shape[3] :].any()
    assert froms == [3, 4, 5, 60, 0, 32, 33, 33, 0]


def test_an_old_picture_is_never_written_to(tiny: Tiny) -> None:
    run = tiny(max_seq_len=100)
    shown = [run.thumbnails(run.read(TEXT[:n_tokens])) for n_tokens in (5, 6, 7)]
    copies = [each.peaks.copy() for each in shown]
    run.thumbnails(run.read(TEXT[:99]))
    for each, copy in zip(shown, copies, strict=True):
        np.testing.assert_array_equal(each.peaks, copy)
        assert not each.peaks.flags.writeable
        assert not each.first.flags.writeable


def test_merging_takes_maxima_of_neighbours() -> None:
    row = np.array([[3, 1, 4, 1, 5]], np.uint8)
    assert merge_bins(row, 2, axis=1).tolist() == [[3, 4, 5]]
    assert merge_bins(row, 4, axis=1).tolist() == [[4, 5]]
    assert merge_bins(row, 1, axis=1) is row


def test_a_picture_knows_the_one_that_it_grew_from(tiny: Tiny) -> None:
    """So that a window redraws from the right one, and the same text is the same picture."""
    run = tiny()
    shown = run.thumbnails(run.read(TEXT[:5]))
    assert run.thumbnails(run.session) is shown
    grown = run.thumbnails(run.read(TEXT[:6]))
    assert grown.grown_from is not None
    assert grown.grown_from() is shown
    edited = run.thumbnails(run.read([*TEXT[:3], 0]))
    assert edited.grown_from is not None
    assert edited.grown_from() is not grown
    assert edited.changed_from == 0


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(),
        Conditions(mask="none"),
        *(
            Conditions(mask="window", window=window, sinks=sinks)
            for window in (1, 2, 3, 8, 30)
            for sinks in (0, 1, 5)
        ),
    ],
    ids=str,
)
def test_a_bin_is_visible_if_any_of_its_cells_is(conditions: Conditions) -> None:
    for n_tokens, size, own in product((0, 1, 7, 16, 19), (1, 2, 4, 8), (0, 1, 3, 9)):
        n_bins = -(-n_tokens // size)
        expected = np.zeros((n_bins, n_bins), dtype=np.bool_)
        for query, key in product(range(n_tokens), repeat=2):
            expected[query // size, key // size] |= bool(conditions.visible(query, key, own))
        np.testing.assert_array_equal(visible_bins(conditions, n_tokens, size, own), expected)
