"""One weight taken apart: every stage against the model's own weights, worked out by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.answers.cell import CellArithmetic
from engine.conditions import Conditions
from engine.loading import Loaded
from engine.model import Transformer
from engine.reading import Look, ModelInfo, Reading
from engine.scope import Scope
from engine.tokenizers import Characters
from tests.engine.conftest import Reference

Floats = NDArray[np.float64]
TEXT = "to be or not to be"
SCHEMES = ("none", "learned", "sinusoidal", "rotary", "alibi")
CONDITIONS = {
    "causal": Conditions(),
    "window": Conditions(mask="window", window=4),
    "window and first": Conditions(mask="window", window=3, sinks=2),
    "none": Conditions(mask="none"),
}


class Hooked:
    """What really went through one layer's attention in one pass, caught by torch's hooks."""

    def __init__(self, scope: Scope, reading: Reading) -> None:
        model, self.layer = scope._run.model, reading.focus.layer
        attention = model.get_submodule(f"blocks.{self.layer}.attention")
        handles = [
            attention.register_forward_pre_hook(lambda _module, given: self._keep_x(given[0])),
            attention.get_submodule("output").register_forward_pre_hook(
                lambda _module, given: self._keep_mix(given[0])
            ),
        ]
        token_ids = torch.from_numpy(reading.session.token_ids.copy())
        with torch.inference_mode():
            model.hidden(token_ids, conditions=reading.conditions)
        for handle in handles:
            handle.remove()

    def _keep_x(self, x: torch.Tensor) -> None:
        self.x = x.double().numpy()  # [S, C]

    def _keep_mix(self, mix: torch.Tensor) -> None:
        self.mix = mix.double().numpy()  # [S, H·D]


@pytest.fixture(scope="module")
def make_scope(tiny: Callable[..., Any]) -> Callable[..., Scope]:
    """`make_scope("alibi", n_kv_head=1)` has a small random model open on a text."""
    opened: dict[str, Scope] = {}

    def make(positions: str, text: str = TEXT, **sizes: Any) -> Scope:
        key = f"{positions} {sizes}"
        if key not in opened:
            tokenizer = Characters("abcdefghijklmnopqrstuvwxyz ")
            model: Transformer = tiny(positions, vocab_size=tokenizer.vocab_size, **sizes).model
            info = ModelInfo("tiny", "", model.config, 1, 0.0)
            opened[key] = Scope(Loaded(model, tokenizer, info))
        scope = opened[key]
        scope.set_conditions(Conditions())
        scope.look(Look())
        scope.edit(text)
        return scope

    return make


def opened(scope: Scope, look: Look, key: int | None) -> tuple[Reading, CellArithmetic]:
    """A reading and the arithmetic of one of its weights."""
    reading = scope.look(look)
    cell = scope.cell(reading, key)
    assert cell is not None
    return reading, cell


def by_hand(scope: Scope, reading: Reading, n_turning: int = 4) -> dict[str, Floats]:
    """The head in focus from the weights by name, its q and k before and after positions."""
    reference = Reference(scope._run.model)
    config, layer, head = reference.config, reading.focus.layer, reading.focus.head
    size, group = config.head_dim, reading.focus.head * config.n_kv_head // config.n_head
    x = Hooked(scope, reading).x
    matrix = reference.weights[f"blocks.{layer}.attention.qkv.weight"]
    bias = reference.weights[f"blocks.{layer}.attention.qkv.bias"]

    def project(first: int) -> Floats:
        rows = slice(first * size, (first + 1) * size)
        return np.asarray(x @ matrix[rows].T + bias[rows])

    q, k = project(head), project(config.n_head + group)
    v = project(config.n_head + config.n_kv_head + group)
    turns = config.positions == "rotary" and reading.conditions.positions
    after = [
        np.stack(
            [
                np.append(reference._turn(row[:n_turning], at), row[n_turning:])
                for at, row in enumerate(rows)
            ]
        )
        if turns
        else rows
        for rows in (q, k)
    ]
    return {"q_before": q, "k_before": k, "q": after[0], "k": after[1], "v": v}


def close(found: Any, expected: Any, within: float = 2e-5) -> None:
    """Two arrays agree to float32's rounding over a few layers."""
    np.testing.assert_allclose(found, expected, atol=within, rtol=within)


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_stage_is_what_the_models_weights_give_by_hand(
    make_scope: Callable[..., Scope], scheme: str, conditions: Conditions
) -> None:
    """From q and k over the row to the head's output, cell by cell in plain loops."""
    scope = make_scope(scheme)
    scope.set_conditions(conditions)
    query, key = 11, 9
    reading, cell = opened(scope, Look(1, 2, query), key)
    hand = by_hand(scope, reading)
    assert (cell.layer, cell.head, cell.query, cell.key) == (1, 2, query, key)
    close(cell.q, hand["q"][query])
    close(cell.k, hand["k"][key])
    close(cell.products, [a * b for a, b in zip(cell.q, cell.k, strict=True)], 1e-6)
    scores = []
    for at in range(len(TEXT)):
        score = sum(hand["q"][query] * hand["k"][at]) / 2.0  # √4
        if scheme == "alibi":
            score -= 2.0 ** (-8 * (2 + 1) / 4) * abs(query - at)
        seen = {
            "causal": at <= query,
            "window": query - conditions.window < at <= query or at < conditions.sinks,
            "none": True,
        }[conditions.mask]
        scores.append(score if seen else -np.inf)
    close(cell.scores, scores)
    close(cell.score, scores[key])
    assert cell.row_maximum == pytest.approx(max(scores), abs=2e-5)
    powers = [np.exp(score - max(scores)) for score in scores]
    close(cell.exponentials, powers, 1e-4)
    assert cell.row_sum == pytest.approx(sum(powers), rel=1e-4)
    close(cell.weight, powers[key] / sum(powers), 1e-4)
    mix = sum(power / sum(powers) * row for power, row in zip(powers, hand["v"], strict=True))
    close(cell.mix, mix, 1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_end_of_the_chain_is_what_the_pass_added_to_the_residual(
    make_scope: Callable[..., Scope], scheme: str
) -> None:
    """The mix that entered W_O; and all heads' contributions with W_O's bias are its output."""
    scope = make_scope(scheme)
    reading, _ = opened(scope, Look(0, 0, 7), 3)
    hooked = Hooked(scope, reading)
    reference = Reference(scope._run.model)
    name = "blocks.0.attention.output"
    total = reference.weights[f"{name}.bias"].copy()
    for head in range(4):
        _, cell = opened(scope, Look(0, head, 7), 3)
        close(cell.mix, hooked.mix[7, 4 * head : 4 * head + 4])
        total += cell.contribution
        assert cell.length == pytest.approx(sum(cell.contribution**2) ** 0.5)
        hidden = reading.session.hidden(7).astype(np.float64)
        cosine = sum(cell.contribution * hidden) / cell.length / sum(hidden**2) ** 0.5
        assert cell.cosine == pytest.approx(cosine)
    close(total, reference._linear(name, hooked.mix[7]))


def test_rotary_positions_are_shown_before_and_after_the_turn(
    make_scope: Callable[..., Scope],
) -> None:
    """Before: what W_q and W_k gave. The angles turn it into what is stored, as complex numbers."""
    scope = make_scope("rotary")
    reading, cell = opened(scope, Look(1, 3, 12), 5)
    hand = by_hand(scope, reading)
    assert cell.turns is not None
    for turn, before, after, position in (
        (cell.turns[0], hand["q_before"][12], cell.q, 12),
        (cell.turns[1], hand["k_before"][5], cell.k, 5),
    ):
        close(turn.before, before)
        turned = (before[:2] + 1j * before[2:]) * np.exp(1j * turn.angles)
        close(np.concatenate((turned.real, turned.imag)), after)
        angles = position * np.array([1.0, 0.01])
        close(np.exp(1j * turn.angles), np.exp(1j * angles))


@pytest.mark.parametrize("scheme", ["none", "learned", "sinusoidal", "alibi"])
def test_nothing_turns_without_rotary_positions(
    make_scope: Callable[..., Scope], scheme: str
) -> None:
    """And only ALiBi lowers a score."""
    _, cell = opened(make_scope(scheme), Look(0, 1, 9), 2)
    assert cell.turns is None
    assert (cell.slope is not None) == (scheme == "alibi")
    assert cell.lowering == (2.0**-4 * 7 if scheme == "alibi" else 0)


@pytest.mark.parametrize("scheme", ["rotary", "alibi"])
def test_positions_that_are_switched_off_leave_no_trace(
    make_scope: Callable[..., Scope], scheme: str
) -> None:
    """No turn, no slope, and the weights still agree."""
    scope = make_scope(scheme)
    scope.set_conditions(Conditions(positions=False))
    _, cell = opened(scope, Look(0, 1, 9), 2)
    assert (cell.turns, cell.slope) == (None, None)
    assert cell.difference < CellArithmetic.TOLERANCE


@pytest.mark.parametrize(("n_kv_head", "sharing"), [(4, (2,)), (2, (2, 3)), (1, (0, 1, 2, 3))])
def test_heads_that_share_a_key_are_named(
    make_scope: Callable[..., Scope], n_kv_head: int, sharing: tuple[int, ...]
) -> None:
    """They have the same keys and values, and others have not."""
    scope = make_scope("rotary", n_kv_head=n_kv_head)
    _, cell = opened(scope, Look(0, 2), 1)
    assert cell.sharing == sharing
    for head in range(4):
        _, other = opened(scope, Look(0, head), 1)
        assert np.array_equal(other.keys, cell.keys) == (head in sharing)
        assert np.array_equal(other.values, cell.values) == (head in sharing)


def test_what_else_a_family_does_to_scores_is_done_in_its_order(
    make_scope: Callable[..., Scope],
) -> None:
    """Half of each head turns, the model's own scale, a cap of 2, a window of the layer's own."""
    scope = make_scope("rotary", rotary_dim=2, score_scale=0.3, score_cap=2.0, windows=(0, 5))
    query, key = 12, 9
    reading, cell = opened(scope, Look(1, 2, query), key)
    hand = by_hand(scope, reading, n_turning=2)
    dots = hand["k"] @ hand["q"][query]
    scores = [
        2 * np.tanh(0.3 * dot / 2) if query - 5 < at <= query else -np.inf
        for at, dot in enumerate(dots)
    ]
    powers = np.exp(np.array(scores) - max(scores))
    close(cell.scaled, 0.3 * dots[key])
    close(cell.bent, scores[key])
    close(cell.scores, scores)
    close(cell.weights, powers / powers.sum(), 1e-4)
    assert cell.turns is not None
    for turn, before in zip(cell.turns, (hand["q_before"][12], hand["k_before"][9]), strict=True):
        assert len(turn.angles) == 1
        close(turn.before, before)
    assert cell.difference < CellArithmetic.TOLERANCE


def test_a_hidden_key_has_its_score_before_the_mask_and_no_weight(
    make_scope: Callable[..., Scope],
) -> None:
    """The mask adds −∞; the exponential and the weight are exactly 0."""
    _, cell = opened(make_scope("rotary"), Look(0, 0, 4), 9)
    assert not cell.is_visible
    assert np.isfinite(cell.score_before_mask)
    assert cell.score_before_mask == pytest.approx(sum(cell.products) / 2.0)
    assert (cell.score, cell.exponentials[9], cell.weight) == (-np.inf, 0, 0)


def test_without_a_key_the_largest_weight_of_the_row_is_opened(
    make_scope: Callable[..., Scope],
) -> None:
    """Whichever it is; and a key beyond the text is its last one."""
    scope = make_scope("rotary")
    for query in range(len(TEXT)):
        reading, cell = opened(scope, Look(1, 1, query), None)
        assert reading.focus.weights[query, cell.key] == reading.focus.weights[query].max()
    assert opened(scope, Look(), 99)[1].key == len(TEXT) - 1


def test_a_head_that_is_off_adds_nothing(make_scope: Callable[..., Scope]) -> None:
    """Its mix is still what it would be; its direction is none."""
    scope = make_scope("learned")
    scope.set_conditions(Conditions(heads_off=frozenset({(0, 1)})))
    _, cell = opened(scope, Look(0, 1, 8), 3)
    assert cell.is_off
    assert cell.mix.any()
    assert not cell.contribution.any()
    assert (cell.length, cell.cosine) == (0, None)
    assert not opened(scope, Look(0, 2, 8), 3)[1].is_off


def test_an_empty_text_has_no_weight_to_open(make_scope: Callable[..., Scope]) -> None:
    """None."""
    scope = make_scope("learned")
    assert scope.cell(scope.edit("")) is None


def test_a_reading_of_another_model_is_not_answered(make_scope: Callable[..., Scope]) -> None:
    """Its numbers would not be those of the reading."""
    reading = make_scope("alibi").look(Look())
    assert make_scope("rotary").cell(reading) is None


def test_the_arithmetic_is_of_what_is_shown_after_stepping_back(
    make_scope: Callable[..., Scope],
) -> None:
    """With the mask off too, where earlier rows were different then."""
    scope = make_scope("rotary")
    for conditions in (Conditions(), Conditions(mask="none")):
        scope.set_conditions(conditions)
        reading = scope.go_to(6)
        cell = scope.cell(reading, 2)
        assert cell is not None
        assert len(cell.weights) == 6
        np.testing.assert_array_equal(cell.shown, reading.focus.weights[5])
        assert cell.difference < CellArithmetic.TOLERANCE


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_parts_add_up_whatever_is_opened(
    make_scope: Callable[..., Scope], data: st.DataObject
) -> None:
    """Products to the dot product, weights to 1, weighted values to the mix; all as shown."""
    text = data.draw(st.text("abc xyz", min_size=1, max_size=30))
    scheme = data.draw(st.sampled_from(SCHEMES))
    scope = make_scope(scheme, text, n_kv_head=data.draw(st.sampled_from((1, 2, 4))))
    scope.set_conditions(data.draw(st.sampled_from(list(CONDITIONS.values()))))
    places = st.integers(0, len(text) - 1)
    look = Look(data.draw(st.integers(0, 1)), data.draw(st.integers(0, 3)), data.draw(places))
    reading, cell = opened(scope, look, data.draw(st.none() | places))
    assert cell.dot == pytest.approx(sum(cell.products), abs=1e-12)
    assert cell.score_before_mask == pytest.approx(cell.dot * cell.scale - cell.lowering)
    assert cell.score == pytest.approx(cell.scores[cell.key], abs=1e-12)
    assert cell.exponentials.max() == 1
    assert cell.weights.sum() == pytest.approx(1, abs=1e-12)
    assert not cell.weights[~cell.visible].any()
    np.testing.assert_allclose(cell.weighted(range(len(text))).sum(axis=0), cell.mix, atol=1e-12)
    assert cell.difference == np.abs(cell.weights - reading.focus.weights[look.query]).max()
    assert cell.difference < CellArithmetic.TOLERANCE
