import json
import math
from typing import Any

import pytest

from engine.config import ModelConfig, RopeScaling
from engine.errors import ConfigError

SMALL: dict[str, Any] = {
    "vocab_size": 11,
    "n_layer": 1,
    "n_head": 4,
    "d_model": 16,
    "max_seq_len": 8,
}


def test_sizes_left_out_are_completed_once() -> None:
    """As many key/value heads as heads, an even share of the width, four widths inside."""
    config = ModelConfig(**SMALL)
    assert (config.n_kv_head, config.head_dim, config.d_ff) == (4, 4, 64)


def test_sizes_that_are_given_stay() -> None:
    config = ModelConfig(**SMALL, n_kv_head=2, head_dim=6, d_ff=20)
    assert (config.n_kv_head, config.head_dim, config.d_ff) == (2, 6, 20)


def test_a_head_dim_of_its_own_needs_no_divisible_width() -> None:
    assert ModelConfig(**{**SMALL, "d_model": 18}, head_dim=6).head_dim == 6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"vocab_size": 0}, "vocab_size = 0 is not possible; it must be 1 or more."),
        ({"n_layer": 0}, "n_layer = 0 is not possible; it must be 1 or more."),
        ({"n_head": 0}, "n_head = 0 is not possible; it must be 1 or more."),
        ({"n_head": -2}, "n_head = -2 is not possible; it must be 1 or more."),
        ({"d_model": 0}, "d_model = 0 is not possible; it must be 1 or more."),
        ({"max_seq_len": -5}, "max_seq_len = -5 is not possible; it must be 1 or more."),
        ({"n_kv_head": -1}, "n_kv_head = -1 is not possible; it must be 1 or more."),
        ({"head_dim": -1}, "head_dim = -1 is not possible; it must be 1 or more."),
        (
            {"d_model": 18},
            "d_model = 18 is not divisible by n_head = 4; choose a multiple, or give head_dim.",
        ),
        (
            {"n_kv_head": 3},
            (
                "n_head = 4 is not divisible by n_kv_head = 3; "
                "every key/value head must serve the same number of query heads."
            ),
        ),
        (
            {"head_dim": 5, "positions": "rotary"},
            "head_dim = 5 is odd; rotary positions turn pairs, so make it even.",
        ),
        (
            {"positions": "polar"},
            "positions = 'polar' is unknown; use one of none, learned, sinusoidal, rotary, alibi.",
        ),
        ({"norm": "batch"}, "norm = 'batch' is unknown; use one of layer, rms."),
        (
            {"norm_placement": "mid"},
            "norm_placement = 'mid' is unknown; use one of pre, post, output, both.",
        ),
        ({"mlp": "deep"}, "mlp = 'deep' is unknown; use one of plain, gated."),
        (
            {"activation": "tanh"},
            "activation = 'tanh' is unknown; use one of gelu, gelu_tanh, silu, relu.",
        ),
        (
            {"vocab_size": 2**24 + 1},
            "vocab_size = 16777217 is not possible; 16777216 is the most there can be.",
        ),
        (
            {"head_dim": 2**23},
            (
                "n_head = 4 heads of head_dim = 8388608 are not possible; "
                "16777216 features are the most there can be."
            ),
        ),
        (
            {"rotary_dim": 6},
            (
                "rotary_dim = 6 is more than head_dim = 4; "
                "a part of a head cannot be larger than it."
            ),
        ),
        (
            {"rotary_dim": 3, "positions": "rotary"},
            "rotary_dim = 3 is odd; rotary positions turn pairs, so make it even.",
        ),
        (
            {"windows": (1, 2)},
            (
                "windows = (1, 2) is not possible; give one number, 0 to 16777216, for each of "
                "the 1 layers."
            ),
        ),
        (
            {"windows": (-1,)},
            (
                "windows = (-1,) is not possible; give one number, 0 to 16777216, for each of "
                "the 1 layers."
            ),
        ),
        (
            {"windows": (10**9,)},
            (
                "windows = (1000000000,) is not possible; give one number, 0 to 16777216, for "
                "each of the 1 layers."
            ),
        ),
        (
            {"parallel_residual": True, "norm_placement": "post"},
            (
                "parallel_residual = True is not possible with norm_placement = 'post'; "
                "there is one sum, not two to be normed."
            ),
        ),
        (
            {"score_cap": -1.0},
            "score_cap = -1.0 is not possible; make it positive and finite, or 0.",
        ),
        ({"qk_norm": "some"}, "qk_norm = 'some' is unknown; use one of none, head, all."),
        ({"norm_eps": 0.0}, "norm_eps = 0.0 is not possible; make it positive and finite."),
        (
            {"rope_theta": 10**400},
            (
                "rope_theta = 100000000000000000...0000000000000000000 is not possible; "
                "make it positive and finite."
            ),
        ),
        (
            {"rope_theta": float("inf")},
            "rope_theta = inf is not possible; make it positive and finite.",
        ),
        (
            {"rope_theta": float("nan")},
            "rope_theta = nan is not possible; make it positive and finite.",
        ),
    ],
)
def test_impossible_sizes_are_refused_in_one_sentence(
    change: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**{**SMALL, **change})
    assert str(caught.value) == sentence


def test_a_configuration_survives_being_written_down() -> None:
    config = ModelConfig(**SMALL, positions="alibi", norm="rms", n_kv_head=2, tied_output=False)
    assert ModelConfig.from_dict(config.to_dict()) == config
    scaling = RopeScaling(kind="llama3", factor=8.0)
    config = ModelConfig(**SMALL, windows=(3,), rope_scaling=scaling)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    scaling = RopeScaling(kind="longrope", factor=2.0, divisors=(1.0,), whole_pairs=False)
    config = ModelConfig(**SMALL, rotary_dim=2, rope_scaling=scaling)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "cubic"}, "'cubic' is unknown; use one of linear, llama3, yarn, longrope"),
        ({"factor": 0.0}, r"factor = 0.0 is not possible in a rope scaling"),
        ({"attention_factor": math.inf}, r"attention_factor = inf is not possible in a rope"),
        ({"divisors": (1.0, 0.0)}, "the divisors of a rope scaling must be positive and finite"),
        ({"low_turns": 4.0}, r"low_turns = 4.0 is not below high_turns = 4.0"),
    ],
)
def test_an_impossible_rope_scaling_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        RopeScaling(**({"kind": "llama3", "factor": 8.0} | change))


def test_a_whole_number_will_do_where_a_broken_one_is_meant() -> None:
    """JSON writers turn 10000.0 into 10000."""
    assert ModelConfig.from_dict({**SMALL, "rope_theta": 500}).rope_theta == 500


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_lay": 2}, "'n_lay' is not a setting of a model; known: vocab_size, n_layer"),
        ({"n_layer": 2.0}, r"n_layer = 2.0 should be of type int."),
        ({"n_layer": True}, r"n_layer = True should be of type int."),
        ({"qkv_bias": 1}, r"qkv_bias = 1 should be of type bool."),
        ({"norm": 3}, r"norm = 3 should be of type str."),
        ({"norm_eps": "small"}, r"norm_eps = 'small' should be of type float."),
        ({"rope_scaling": 4}, r"rope_scaling = 4 is not possible; it needs kind and factor"),
        ({"rope_scaling": {"kind": "linear"}}, r"it needs kind and factor"),
        ({"rope_scaling": {"kind": "yarn", "factor": 2, "whole_pairs": 1}}, r"whole_pairs = 1 in"),
        ({"rope_scaling": {"kind": "longrope", "factor": 2, "divisors": 1}}, r"divisors = 1 in"),
        (
            {"rope_scaling": {"kind": "longrope", "factor": 2, "divisors": ["1"]}},
            r"divisors in .* ",
        ),
        ({"rope_scaling": {"kind": 1, "factor": 2}}, r"kind = 1 in rope_scaling is of the wrong"),
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ModelConfig.from_dict({**SMALL, **change})


def test_missing_sizes_are_listed() -> None:
    with pytest.raises(ConfigError, match="configuration lacks n_head, max_seq_len"):
        ModelConfig.from_dict({"vocab_size": 5, "n_layer": 1, "d_model": 4})


@pytest.mark.parametrize(
    ("scaling", "changes", "sentence"),
    [
        (
            RopeScaling(kind="longrope", factor=2.0, divisors=(1.0,)),
            {"rotary_dim": 4},
            "a rope scaling has 1 divisors; 2 pairs of a head turn",
        ),
        (
            RopeScaling(kind="longrope", factor=2.0, divisors=(1.0,), first_context=4),
            {"rotary_dim": 2, "max_seq_len": 5},
            "max_seq_len = 5 is not possible with the rope scaling 'longrope'; its first context",
        ),
        (
            RopeScaling(kind="yarn", factor=2.0),
            {"rope_theta": 1.0},
            "rope_theta = 1.0 is not possible with the rope scaling 'yarn'",
        ),
    ],
)
def test_a_rope_scaling_that_does_not_fit_the_model_is_refused(
    scaling: RopeScaling, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ModelConfig(**{**SMALL, **changes, "rope_scaling": scaling})
