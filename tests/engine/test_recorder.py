from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.recorder import condense
from engine.run import Run
from engine.trace import (
    ENTROPY,
    FIRST_TOKEN,
    INDUCTION,
    MASKED,
    PREVIOUS_TOKEN,
    ROW_SUM,
    SAME_TOKEN,
)

Tiny = Callable[..., Run]
TEXT = [1, 2, 3, 1, 2, 2, 0, 1, 2, 3, 3, 0]
CONDITIONS = {
    "causal": Conditions(),
    "window": Conditions(mask="window", window=3, sinks=1),
    "mask off": Conditions(mask="none"),
    "heads off": Conditions(heads_off=frozenset({(0, 0)})),
}


def features_by_loops(
    weights: np.ndarray, token_ids: list[int], conditions: Conditions
) -> np.ndarray:
    """The features of one head's square [S, S], cell by cell: [S, 7]."""
    rows = np.zeros((len(token_ids), 7))
    for query, token in enumerate(token_ids):
        for key, weight in enumerate(weights[query].astype(np.float64)):
            rows[query, ROW_SUM] += weight
            if key < query and token_ids[key] == token:
                rows[query, SAME_TOKEN] += weight
            if 1 <= key <= query and token_ids[key - 1] == token:
                rows[query, INDUCTION] += weight
            if key == query - 1:
                rows[query, PREVIOUS_TOKEN] += weight
            if key == 0:
                rows[query, FIRST_TOKEN] += weight
            if not conditions.visible(query, key):
                rows[query, MASKED] += weight
            if weight > 0:
                rows[query, ENTROPY] -= weight * np.log(weight)
    return rows


@pytest.mark.parametrize("block", [128, 5])
@pytest.mark.parametrize("passes", [[12], [5, 6, 7, 12]])
@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_features_are_the_sums_they_claim_to_be(
    tiny: Tiny,
    used: Any,
    monkeypatch: pytest.MonkeyPatch,
    conditions: Conditions,
    passes: list[int],
    block: int,
) -> None:
    """For the weights that the passes used, in one block or several, one pass or several."""
    monkeypatch.setattr("engine.attention.QUERY_BLOCK", block)
    run = tiny()
    run.set_conditions(conditions)
    for n_tokens in passes:
        run.read(TEXT[:n_tokens])
    weights = used.pattern(len(TEXT))
    for layer in range(2):
        for head in range(4):
            expected = features_by_loops(weights[layer, head], TEXT, conditions)
            np.testing.assert_allclose(run.session.features[layer, head], expected, atol=1e-5)


@pytest.mark.parametrize("n_keys", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_condensed_rows_are_maxima_over_bins_without_the_first_key(n_keys: int, size: int) -> None:
    weights = torch.rand(2, 3, n_keys, generator=torch.Generator().manual_seed(n_keys))
    peaks, first = condense(weights, size)
    assert peaks.shape == (2, 3, -(-n_keys // size))
    for head in range(2):
        for row in range(3):
            assert first[head, row] == round(255 * weights[head, row, 0].item() ** 0.5)
            for column in range(peaks.shape[2]):
                keys = range(max(1, column * size), min(n_keys, (column + 1) * size))
                largest = max((weights[head, row, key].item() for key in keys), default=0.0)
                assert peaks[head, row, column] == round(255 * largest**0.5)


def test_recording_changes_nothing(tiny: Tiny) -> None:
    run = tiny()
    run.read(TEXT)
    logits = run.model(torch.tensor(TEXT)).numpy()
    shown = np.array([run.logits(run.session, at) for at in range(len(TEXT))])
    np.testing.assert_allclose(shown, logits, atol=1e-6)


def test_q_k_and_v_are_kept_as_attention_used_them(tiny: Tiny, spy: Any) -> None:
    """After the position scheme."""
    run = tiny("rotary")
    session = run.read(TEXT)
    run.model(torch.tensor(TEXT), None, Conditions(), spy)
    for layer in range(2):
        for kept, given in zip(
            (session.q(layer), session.k(layer), session.v(layer)), spy.qkv[layer], strict=True
        ):
            np.testing.assert_allclose(kept, given.numpy(), atol=1e-6)


@pytest.mark.parametrize("windows", [(0, 0, 0), (0, 3, 0), (3, 3, 0)], ids=str)
def test_decoded_tokens_are_recorded_as_a_prefill_is(tiny: Tiny, windows: tuple[int, ...]) -> None:
    """Whichever neighbouring layers share a window, and so are condensed together."""
    sizes = {"n_layer": 3, "windows": windows}
    prefill = tiny("rotary", **sizes).read(TEXT)
    decoding = tiny("rotary", **sizes)
    for length in range(1, len(TEXT) + 1):
        decoded = decoding.read(TEXT[:length])
    np.testing.assert_allclose(decoded.features, prefill.features, atol=1e-5)
    for name in ("peaks", "first"):
        whole = getattr(prefill.traces[0], name).astype(int)
        for row, trace in enumerate(decoded.traces):
            part = getattr(trace, name).astype(int)
            expected = whole[:, :, row : row + 1]
            if name == "peaks":
                expected = expected[..., : part.shape[-1]]
            assert np.abs(part - expected).max() <= 1  # a 255th, where a rounding tips over
