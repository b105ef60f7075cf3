from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import CancelledError, ContextFullError
from engine.kv_cache import KVCache
from engine.model import Transformer
from engine.run import Run
from tests.engine.kinds_of_conditions import CONDITIONS

Tiny = Callable[..., Run]
Reference = Callable[..., tuple[np.ndarray, np.ndarray]]

POSITIONS = ["none", "learned", "sinusoidal", "rotary", "alibi"]
TEXT = [3, 1, 4, 1, 5, 9, 2, 6]
FAMILIES: dict[str, dict[str, Any]] = {
    "pre-norm, plain": {},
    "post-norm": {"norm_placement": "post", "activation": "relu"},
    "gated, rms, untied": {
        "mlp": "gated",
        "norm": "rms",
        "activation": "silu",
        "tied_output": False,
        "qkv_bias": False,
        "attention_output_bias": False,
        "mlp_bias": False,
    },
    "one key for all heads, wide": {"n_kv_head": 1, "head_dim": 6, "activation": "gelu"},
    "post-norm, rms, gated": {"norm_placement": "post", "norm": "rms", "mlp": "gated"},
}


def _run_whole(
    model: Transformer,
    token_ids: list[int],
    conditions: Conditions,
    spy: Any,
) -> tuple[np.ndarray, np.ndarray]:
    logits = model(torch.tensor(token_ids), None, conditions, spy)
    return logits.numpy(), spy.weights(len(token_ids))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("positions", POSITIONS)
def test_every_family_computes_what_the_formulas_say(
    tiny: Tiny, reference: Reference, spy: Any, family: dict[str, Any], positions: str
) -> None:
    """Against the same transformer in numpy, float64, one token and head at a time."""
    model = tiny(positions, **family).model
    logits, weights = _run_whole(model, TEXT, Conditions(), spy)
    expected_logits, expected_weights = reference(model, TEXT)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)
    np.testing.assert_allclose(logits, expected_logits, atol=1e-4)


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_all_conditions_do_what_they_say(
    tiny: Tiny, reference: Reference, spy: Any, conditions: Conditions, positions: str
) -> None:
    model = tiny(positions).model
    logits, weights = _run_whole(model, TEXT, conditions, spy)
    expected_logits, expected_weights = reference(model, TEXT, conditions)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)
    np.testing.assert_allclose(logits, expected_logits, atol=1e-4)


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_any_split_into_passes_equals_one_pass(
    tiny: Tiny, conditions: Conditions, positions: str
) -> None:
    """Prefill, then pieces of 1, 3 and 1 tokens through the cache."""
    if not conditions.append_only:
        conditions = Conditions(mask="window", window=4)
    model = tiny(positions).model
    cache = KVCache(model.config)
    pieces = [
        model(torch.tensor(piece), cache, conditions)
        for piece in (TEXT[:3], TEXT[3:4], TEXT[4:7], TEXT[7:])
    ]
    assert cache.length == len(TEXT)
    whole = model(torch.tensor(TEXT), None, conditions)
    torch.testing.assert_close(torch.cat(pieces), whole, atol=1e-5, rtol=0)


def test_without_positions_the_last_row_does_not_know_the_order(tiny: Tiny) -> None:
    """With one layer; a second one would see order through the causal mask."""
    model = tiny("learned", n_layer=1).model
    off = Conditions(positions=False)
    shuffled = [*TEXT[-2::-1], TEXT[-1]]
    last, other = (model(torch.tensor(text), None, off)[-1] for text in (TEXT, shuffled))
    torch.testing.assert_close(last, other, atol=1e-5, rtol=0)
    with_order, other = (model(torch.tensor(text))[-1] for text in (TEXT, shuffled))
    assert (with_order - other).abs().max() > 1e-2


@pytest.mark.parametrize("n_tokens", [3, 4, 5])
def test_a_window_counts_from_its_size_on(tiny: Tiny, n_tokens: int) -> None:
    """A window of 4 changes nothing for 3 or 4 tokens, and the fifth row forgets the first."""
    model = tiny().model
    token_ids = torch.tensor(TEXT[:n_tokens])
    window = Conditions(mask="window", window=4)
    same = torch.allclose(model(token_ids, None, window), model(token_ids), atol=1e-6)
    assert same == (n_tokens <= 4)


def test_tied_output_uses_the_embedding() -> None:
    sizes = {"vocab_size": 7, "n_layer": 1, "n_head": 1, "d_model": 4, "max_seq_len": 4}
    tied, untied = (Transformer(ModelConfig(**sizes, tied_output=tied)) for tied in (True, False))
    assert "output.weight" not in tied.state_dict()
    assert untied.state_dict()["output.weight"].shape == (7, 4)
    torch.testing.assert_close(tied.logits(torch.eye(4)), tied.embedding.weight.T)


def test_fixed_tables_are_no_part_of_the_weights(tiny: Tiny) -> None:
    """So that a checkpoint holds trained numbers only."""
    for positions in POSITIONS:
        names = tiny(positions).model.state_dict()
        assert not {"rotary", "position_table", "alibi"} & set(names)
        assert ("position_embedding.weight" in names) == (positions == "learned")


def test_fresh_weights_are_drawn_by_the_seed_and_narrower_where_they_add_to_the_residual() -> None:
    config = ModelConfig(vocab_size=50, n_layer=8, n_head=2, d_model=64, max_seq_len=64)
    one, other = Transformer(config), Transformer(config)
    for model in (one, other):
        model.init_weights(torch.Generator().manual_seed(1))
    for name, weight in one.state_dict().items():
        torch.testing.assert_close(weight, other.state_dict()[name], atol=0, rtol=0)
        if name.endswith("bias"):
            assert not weight.any()
        elif weight.dim() == 1:
            assert (weight == 1).all()
        else:
            writes = name.endswith(("attention.output.weight", "mlp.down.weight"))
            assert weight.std().item() == pytest.approx(0.02 / (4 if writes else 1), rel=0.1)


def test_batches_of_windows_give_each_windows_logits(tiny: Tiny) -> None:
    for positions in POSITIONS:
        model = tiny(positions).model
        windows = torch.tensor([TEXT, TEXT[::-1]])
        expected = torch.stack([model(window) for window in windows])
        torch.testing.assert_close(model.batch_logits(windows), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", POSITIONS)
def test_one_token_too_many_is_refused_and_leaves_the_cache(tiny: Tiny, positions: str) -> None:
    model = tiny(positions, max_seq_len=6).model
    cache = KVCache(model.config)
    model(torch.tensor(TEXT[:6]), cache)
    for token_ids, kv_cache in ((TEXT[:1], cache), (TEXT[:7], None)):
        with pytest.raises(ContextFullError) as caught:
            model(torch.tensor(token_ids), kv_cache)
        assert str(caught.value) == (
            "7 tokens do not fit into this model's context of 6; shorten the text."
        )
    assert cache.length == 6


@pytest.mark.parametrize("n_layers_done", [0, 1])
def test_a_pass_can_be_given_up_between_layers(tiny: Tiny, n_layers_done: int) -> None:
    model = tiny().model
    cache = KVCache(model.config)
    model(torch.tensor(TEXT[:3]), cache)
    answers = iter([False] * n_layers_done + [True])
    with pytest.raises(CancelledError, match="given up for something newer"):
        model.hidden(torch.tensor(TEXT[3:]), cache, cancelled=lambda: next(answers))
    assert cache.length == 3
    again = model(torch.tensor(TEXT[3:]), cache)
    torch.testing.assert_close(again, model(torch.tensor(TEXT))[3:], atol=1e-5, rtol=0)
