"""The same text under several masks: against fresh runs, and against tokens that were changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.errors import CancelledError, ConfigError
from engine.run import Run
from engine.windows.evicting_cache import EvictingCache
from engine.windows.eviction import Budget
from engine.windows.masks import (
    antecedent,
    reach,
    three_masks,
    visible_keys,
)
from engine.windows.masks_pass import read_windows

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
MASKS = three_masks(Conditions(), 5, 2)

Tiny = Callable[..., Run]


@pytest.mark.parametrize("positions", ["rotary", "learned", "alibi", "none"])
@pytest.mark.parametrize("own_windows", [(), (0, 3)])
def test_each_mask_gives_what_a_run_under_it_gives(
    tiny: Tiny, positions: str, own_windows: tuple[int, ...]
) -> None:
    """Losses, the query's weights in every head, and the most probable tokens."""
    run = tiny(positions, windows=own_windows)
    windows = read_windows(run.model, TOKENS, MASKS, query=13)
    assert [under.conditions for under in windows.masks] == list(MASKS)
    for under in windows.masks:
        run.set_conditions(under.conditions)
        session = run.read(TOKENS)
        np.testing.assert_allclose(under.loss, session.loss, atol=2e-6)
        assert under.mean == pytest.approx(float(session.loss[1:].mean()), abs=1e-6)
        for layer, head in np.ndindex(2, 4):
            shown = run.pattern(session, layer, head)[13]
            np.testing.assert_allclose(under.row[layer, head], shown, atol=1e-6)
        logits = run.logits(session, 13).astype(np.float64)
        probs = np.exp(logits - logits.max())
        probs /= probs.sum()
        best = np.argsort(-probs)[:3]
        assert [token_id for token_id, _share in under.top] == best.tolist()
        np.testing.assert_allclose([share for _id, share in under.top], probs[best], atol=1e-6)


def test_losses_are_the_cross_entropy_of_the_next_token(tiny: Tiny) -> None:
    """From the logits of one pass, in float64 here; the first token has none."""
    run = tiny("rotary")
    windows = read_windows(run.model, TOKENS, MASKS, query=0)
    with torch.no_grad():
        logits = run.model(torch.tensor(TOKENS), conditions=MASKS[1]).double().numpy()
    norms = np.log(np.exp(logits).sum(axis=-1))
    wanted = [norms[at] - logits[at, token] for at, token in enumerate(TOKENS[1:])]
    assert np.isnan(windows.masks[1].loss[0])
    np.testing.assert_allclose(windows.masks[1].loss[1:], wanted, atol=1e-5)


@pytest.mark.parametrize("n_tokens", [4, 5, 6, 19])
def test_a_windows_cache_is_flat_at_exactly_min_of_tokens_and_window(
    tiny: Tiny, n_tokens: int
) -> None:
    """Around a window of 5, in a model whose head_dim is not d_model / n_head.

    By what the passes' tensors hold, and by those of another cache that keeps no more.
    """
    run = tiny("rotary", head_dim=6)
    under = read_windows(run.model, TOKENS[:n_tokens], MASKS, query=0).masks[1]
    assert under.cache_rows == (min(n_tokens, 5),) * 2
    per_key = 2 * 2 * 6 * 4  # key and value, groups, head_dim, bytes
    assert under.cache_bytes == 2 * min(n_tokens, 5) * per_key
    cache = EvictingCache(run.config, Budget(n_keys=5))
    with torch.no_grad():
        for token in TOKENS[:n_tokens]:
            run.model.hidden(torch.tensor([token]), cache)
    assert cache.used_bytes == under.cache_bytes


@pytest.mark.parametrize(
    ("n_tokens", "causal", "window", "first"),
    [(20, (20, 4), (5, 4), (7, 4)), (6, (6, 4), (5, 4), (6, 4)), (1, (1, 1), (1, 1), (1, 1))],
)
def test_each_mask_holds_what_its_last_query_sees(
    tiny: Tiny,
    n_tokens: int,
    causal: tuple[int, ...],
    window: tuple[int, ...],
    first: tuple[int, ...],
) -> None:
    """The second layer has a window of its own of 4, narrower than the mask's 5."""
    run = tiny("rotary", windows=(0, 4))
    masks = (*MASKS, Conditions(mask="none"))
    found = read_windows(run.model, TOKENS[:n_tokens], masks, query=0).masks
    assert [under.cache_rows for under in found] == [causal, window, first, (0, 0)]
    for under in found[:3]:
        run.set_conditions(under.conditions)
        run.read(TOKENS[:n_tokens])
        assert run.cache_bytes == under.cache_bytes


def test_visible_keys_are_the_last_ones_and_the_first() -> None:
    seen = visible_keys(MASKS[2], 10, 12)
    assert np.flatnonzero(seen).tolist() == [0, 1, 6, 7, 8, 9, 10]
    assert np.flatnonzero(visible_keys(MASKS[1], 10, 12, window=3)).tolist() == [8, 9, 10]


def test_layers_hand_on_what_stood_as_far_back_as_is_said_and_no_further(tiny: Tiny) -> None:
    """A token is changed at the edge of the reach, then one before it; the last row is compared."""
    run = tiny("none", n_layer=3, max_seq_len=32)
    conditions = Conditions(mask="window", window=4)
    far = reach(conditions, run.config)
    assert far == 9
    token_ids = [1] * 20

    def last_row(changed: int) -> np.ndarray:
        wanted = [*token_ids[:changed], 7, *token_ids[changed + 1 :]]
        return np.asarray(run.model(torch.tensor(wanted), conditions=conditions)[-1].numpy())

    plain = run.model(torch.tensor(token_ids), conditions=conditions)[-1].numpy()
    assert np.abs(last_row(19 - far) - plain).max() > 0
    assert np.abs(last_row(19 - far - 1) - plain).max() == 0
    assert reach(Conditions(), run.config) is None


@pytest.mark.parametrize(("query", "wanted"), [(0, None), (3, 2), (10, 9), (12, 6), (19, 3)])
def test_the_antecedent_is_what_followed_the_token_before(query: int, wanted: int | None) -> None:
    """TOKENS has 1 at 1 and 3, 5 at 4, 8 and 10, 9 at 5 and 12, 4 at 2 and 19."""
    assert antecedent(TOKENS, query) == wanted


def test_what_is_kept_grows_with_the_text_and_not_with_its_square(tiny: Tiny) -> None:
    run = tiny("rotary", max_seq_len=1024)
    sizes = []
    for n_tokens in (300, 600):
        windows = read_windows(run.model, [1] * n_tokens, MASKS, query=n_tokens - 1)
        sizes.append(sum(under.loss.nbytes + under.row.nbytes for under in windows.masks))
    assert sizes[1] == 2 * sizes[0]


def test_one_token_has_no_loss_and_no_mean(tiny: Tiny) -> None:
    windows = read_windows(tiny("rotary").model, [4], MASKS, query=0)
    assert windows.n_tokens == 1
    assert all(np.isnan(under.loss).all() and np.isnan(under.mean) for under in windows.masks)
    assert all((under.row == 1).all() for under in windows.masks)


def test_reading_can_be_given_up(tiny: Tiny) -> None:
    asked: list[Any] = []

    def soon() -> bool:
        asked.append(None)
        return len(asked) > 3

    with pytest.raises(CancelledError):
        read_windows(tiny("rotary").model, TOKENS, MASKS, 3, soon)


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="a window of 0 positions"):
        three_masks(Conditions(), 0, 2)
