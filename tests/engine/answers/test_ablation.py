"""Heads that are switched off: what it does, against hooks on the model and numpy by hand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from engine.answers.ablation import Effects, Head, divergence, log_probabilities
from engine.answers.ablation_pass import EffectSweep
from engine.cancelling import Cancelled, never
from engine.conditions import Conditions, OffBy
from engine.errors import CancelledError, ConfigError, EngineError
from engine.kv_cache import KVCache
from engine.loading import Loaded
from engine.model import Transformer
from engine.reading import Look, ModelInfo
from engine.run import Run
from engine.scope import Scope
from engine.tokenizers import Characters

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi")
SHAPES: dict[str, dict[str, Any]] = {
    "pre": {},
    "both": {"norm_placement": "both", "norm": "rms"},
    "parallel": {"parallel_residual": True},
    "post": {"norm_placement": "post"},
}
LAYER_1 = frozenset((1, head) for head in range(4))

Floats = NDArray[np.float64]
Tiny = Callable[..., Run]


@pytest.fixture
def scope(tiny: Tiny) -> Scope:
    """A small model whose tokens are letters."""
    tokenizer = Characters("abcdefg")
    run = tiny("rotary", vocab_size=tokenizer.vocab_size)
    info = ModelInfo("tiny", "", run.config, 0, 0.0)
    return Scope(Loaded(run.model, tokenizer, info))


def _running_mean(mix: Tensor) -> Tensor:
    """Row t: the mean of rows 0 to t of [T, D], in float64."""
    rows = mix.double().numpy()
    means = [rows[: t + 1].mean(axis=0) for t in range(len(rows))]
    return torch.tensor(np.stack(means)).to(mix)


@contextmanager
def hooked(model: Transformer, heads: frozenset[Head], by: OffBy) -> Iterator[None]:
    """Within it, what these heads hand to W_O is replaced, whoever calls the model, and however."""

    def hook(layer: int) -> Callable[..., tuple[Tensor]]:
        def change(_module: Any, inputs: tuple[Tensor]) -> tuple[Tensor]:
            mixes = inputs[0].clone()  # [T, H·D]
            size = mixes.shape[-1] // model.config.n_head
            for _layer, head in (each for each in heads if each[0] == layer):
                columns = slice(head * size, (head + 1) * size)
                rows = mixes[:, columns]
                mixes[:, columns] = 0 if by == "zero" else _running_mean(rows)
            return (mixes,)

        return change

    handles = [
        model.attention(layer).output.register_forward_pre_hook(hook(layer))
        for layer in range(model.config.n_layer)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def by_hand(model: Transformer, heads: frozenset[Head], by: OffBy) -> Floats:
    """Logits [S, V] of all of TOKENS with hooks in place."""
    with hooked(model, heads, by), torch.inference_mode():
        return np.asarray(model(torch.tensor(TOKENS)).double().numpy())


def figures(logits: Floats, position: int, token_id: int) -> SimpleNamespace:
    """Loss, distribution and the rest, from logits [S, V], term by term."""
    powers = np.exp(logits)
    probs = powers / powers.sum(axis=-1, keepdims=True)
    losses = [-np.log(probs[at, token]) for at, token in enumerate(TOKENS[1:])]
    return SimpleNamespace(
        loss=sum(losses) / len(losses),
        probs=probs[position],
        logit=logits[position, token_id],
        top=int(logits[position].argmax()),
    )


def whole(sweep: EffectSweep) -> Effects:
    """Every head measured."""
    effects = sweep.step()
    assert effects.n_measured == 0
    while not effects.is_whole:
        before, effects = effects.n_measured, sweep.step()
        assert effects.n_measured == before + 1
    return effects


def whole_rest(sweep: EffectSweep, cancelled: Cancelled = never) -> Effects:
    """The heads that are left."""
    effects = sweep.step(cancelled)
    while not effects.is_whole:
        effects = sweep.step(cancelled)
    return effects


# Conditions


def test_a_replacement_counts_only_where_a_head_is_off() -> None:
    """So that the choice alone does not run everything again."""
    assert Conditions(off_by="mean") == Conditions()
    off = Conditions(heads_off=frozenset({(0, 1)}))
    assert replace(off, off_by="mean") != off
    assert Conditions(heads_off=frozenset({(1, 2), (0, 3), (1, 0)})).off_in(1) == [0, 2]


def test_an_unknown_replacement_is_refused_by_name() -> None:
    with pytest.raises(ConfigError) as caught:
        Conditions(off_by="noise")  # type: ignore[arg-type]
    assert str(caught.value) == "a head cannot be replaced by 'noise'; use one of zero, mean."


def test_a_head_that_the_model_does_not_have_cannot_be_switched_off(tiny: Tiny) -> None:
    run = tiny()
    for head in ((2, 0), (0, 4), (-1, 0)):
        with pytest.raises(EngineError, match=r"this model has 2 layers of 4 heads, counted"):
            run.set_conditions(Conditions(heads_off=frozenset({head})))
    assert run.conditions == Conditions()


# The model


@pytest.mark.parametrize("by", ["zero", "mean"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positions", POSITIONS)
def test_heads_that_are_off_give_what_hooks_on_the_model_give(
    tiny: Tiny, positions: str, shape: str, by: OffBy
) -> None:
    """In one pass, and token by token through the cache."""
    heads = frozenset({(0, 1), (0, 2), (1, 3)})
    run = tiny(positions, **SHAPES[shape])
    wanted = by_hand(run.model, heads, by)
    run.set_conditions(Conditions(heads_off=heads, off_by=by))
    run.read(TOKENS)
    grown = Run(run.model)
    grown.set_conditions(run.conditions)
    for end in (3, 4, 9, len(TOKENS)):
        grown.read(TOKENS[:end])
    for each in (run, grown):
        logits = [each.logits(each.session, at) for at in range(len(TOKENS))]
        assert np.stack(logits) == pytest.approx(wanted, abs=2e-4)
    assert grown.check_cache(grown.session).logits < 1e-4


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_layer_without_heads_adds_only_its_bias(tiny: Tiny, positions: str) -> None:
    """By zero: as if W_O held zeros and its bias were all that is left."""
    run = tiny(positions)
    run.set_conditions(Conditions(heads_off=LAYER_1))
    session = run.read(TOKENS)
    other = tiny(positions)
    with torch.no_grad():
        other.model.attention(1).output.weight.zero_()
    expected = other.read(TOKENS)
    for at in range(len(TOKENS)):
        assert run.logits(session, at) == pytest.approx(other.logits(expected, at), abs=1e-5)
    stream = run.stream(session, 7)
    assert stream.bias is not None
    assert stream.attention.vectors[1] == pytest.approx(stream.bias.vectors[1], abs=1e-6)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    text=st.lists(st.integers(0, 10), min_size=1, max_size=12), by=st.sampled_from(["zero", "mean"])
)
def test_ablating_nothing_changes_nothing(tiny: Tiny, text: list[int], by: OffBy) -> None:
    """To the bit; and with every head back on, a text is as it was."""
    run, other = tiny(), tiny()
    other.set_conditions(Conditions(heads_off=LAYER_1, off_by=by))
    other.read(text)
    other.set_conditions(Conditions(off_by=by))
    session, again = run.read(text), other.read(text)
    for at in range(len(text)):
        assert np.array_equal(run.logits(session, at), other.logits(again, at))
    assert np.array_equal(session.loss, again.loss, equal_nan=True)


def test_where_all_mixes_are_alike_their_mean_is_what_they_were(tiny: Tiny) -> None:
    """One token again and again, without positions: nothing to tell the places apart."""
    run = tiny("none")
    session = run.read([4] * 9)
    logits = run.logits(session, 8)
    run.set_conditions(Conditions(heads_off=LAYER_1, off_by="mean"))
    assert run.logits(run.read([4] * 9), 8) == pytest.approx(logits, abs=1e-5)


def test_a_cache_that_was_filled_without_mixes_says_so(tiny: Tiny) -> None:
    """Rather than take a mean over what was never written."""
    run = tiny()
    run.read(TOKENS)
    with pytest.raises(ValueError, match="the mixes of 12 positions were not stored"):
        run.model.hidden(
            torch.tensor([1]), run._kv_cache, Conditions(heads_off=LAYER_1, off_by="mean")
        )


def test_many_tokens_outgrow_the_first_rows_of_a_cache(tiny: Tiny) -> None:
    """The kept mixes grow with it."""
    run = tiny("learned")
    run._kv_cache = KVCache(run.config, n_rows=2)
    run.set_conditions(Conditions(heads_off=LAYER_1, off_by="mean"))
    for end in range(1, len(TOKENS) + 1):
        run.read(TOKENS[:end])
    assert run.logits(run.session, 11) == pytest.approx(
        by_hand(run.model, LAYER_1, "mean")[11], abs=2e-4
    )


@pytest.mark.parametrize("mask", [{}, {"mask": "window", "window": 3}])
def test_the_lens_of_a_text_that_grew_is_that_of_the_whole(
    tiny: Tiny, mask: dict[str, Any]
) -> None:
    """It goes on from recorded keys and values, and must go on from the mixes too."""
    run = tiny()
    run.set_conditions(Conditions(heads_off=frozenset({(0, 1), (1, 0)}), off_by="mean", **mask))
    run.lens(run.read(TOKENS[:8]), None)
    lens = run.lens(run.read(TOKENS), None)
    assert lens.differences.max() < 1e-4


def test_the_arithmetic_of_a_cell_ends_in_what_stands_in_place_of_the_mix(scope: Scope) -> None:
    """Under the mean: the head's own mixes at all positions so far, added up by hand."""
    scope.edit("abcab")
    scope.set_conditions(Conditions(heads_off=frozenset({(1, 2)}), off_by="mean"))
    cells = [scope.cell(scope.look(Look(1, 2, at)), 0) for at in range(5)]
    mixes = np.stack([cell.mix for cell in cells if cell is not None])
    for at, cell in enumerate(cells):
        assert cell is not None
        assert cell.is_off
        mean = sum(mixes[: at + 1]) / (at + 1)
        assert cell.contribution == pytest.approx(cell.output.astype(np.float64) @ mean, abs=1e-6)


# With and without


@pytest.mark.parametrize("mask", ["causal", "none"])
def test_the_same_text_with_all_heads_on_is_told_beside_it(tiny: Tiny, mask: Any) -> None:
    """Whether it was read before the heads were switched off or has to be run now."""
    fresh = tiny()
    fresh.set_conditions(Conditions(mask=mask))
    expected = fresh.read(TOKENS)
    off = Conditions(mask=mask, heads_off=frozenset({(0, 1)}))
    for first in (Conditions(mask=mask), off):
        run = tiny()
        run.set_conditions(first)
        run.read(TOKENS)
        run.set_conditions(off)
        intact = run.intact(run.read(TOKENS), 6)
        assert intact.position == 6
        assert intact.logits == pytest.approx(fresh.logits(expected, 6), abs=1e-5)
        assert intact.loss == pytest.approx(expected.loss, abs=1e-5, nan_ok=True)


def test_what_was_read_with_all_heads_on_is_not_run_again(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for a shorter text; but for a longer one it is."""
    run = tiny()
    run.read(TOKENS)
    expected = run.logits(run.session, 4)
    run.set_conditions(Conditions(heads_off=LAYER_1))
    session = run.read(TOKENS)
    calls: list[int] = []
    hidden = Transformer.hidden

    def count(model: Transformer, token_ids: Tensor, *more: Any) -> Tensor:
        calls.append(len(token_ids))
        return hidden(model, token_ids, *more)

    monkeypatch.setattr(Transformer, "hidden", count)
    assert run.intact(session, 4).logits == pytest.approx(expected, abs=1e-6)
    assert len(run.intact(run.at(5), 4).loss) == 5
    assert calls == []
    longer = run.read([*TOKENS, 7])
    calls.clear()
    assert len(run.intact(longer, 12).loss) == 13
    assert run.intact(longer, 3).logits is not None
    assert calls == [13]


def test_a_text_of_another_run_is_not_compared(scope: Scope) -> None:
    """Nor one with all heads on, nor an empty one."""
    reading = scope.edit("abc")
    assert scope.intact(reading) is None
    off = scope.set_conditions(Conditions(heads_off=frozenset({(0, 0)})))
    assert scope.intact(off) is not None
    assert scope.intact(reading) is None
    assert scope.effects(reading, 0, "zero") is None
    assert scope.intact(scope.edit("")) is None
    assert scope.effects(scope.edit(""), 0, "zero") is None


# Each head in turn


@pytest.mark.parametrize("by", ["zero", "mean"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi"])
def test_each_heads_effect_is_that_of_running_the_model_without_it(
    tiny: Tiny, positions: str, shape: str, by: OffBy
) -> None:
    """Against hooks: loss, divergence, logit, probability and the most probable token."""
    run = tiny(positions, tied_output=False, **SHAPES[shape])
    session = run.read(TOKENS)
    effects = whole(run.effects(session, 7, 5, by))
    shown = figures(by_hand(run.model, frozenset(), by), 7, 5)
    assert effects.shown.loss == pytest.approx(shown.loss, abs=1e-4)
    assert effects.shown.divergence == 0
    assert effects.shown.probability == pytest.approx(shown.probs[5], abs=1e-5)
    for layer, head in np.ndindex(2, 4):
        out = figures(by_hand(run.model, frozenset({(layer, head)}), by), 7, 5)
        moved = sum(p * np.log(p / q) for p, q in zip(shown.probs, out.probs, strict=True))
        at = layer, head
        assert effects.loss[at] == pytest.approx(out.loss, abs=1e-4)
        assert effects.scores("loss")[at] == pytest.approx(out.loss - shown.loss, abs=2e-4)
        assert effects.scores("answer")[at] == pytest.approx(moved, abs=1e-4, rel=1e-3)
        assert effects.logit[at] == pytest.approx(out.logit, abs=2e-4)
        assert effects.probability[at] == pytest.approx(out.probs[5], abs=1e-5)
        assert out.probs[effects.top[at]] == pytest.approx(out.probs.max(), abs=1e-5)


@pytest.mark.parametrize(
    "base",
    [
        Conditions(mask="none"),
        Conditions(mask="window", window=3, sinks=1),
        Conditions(heads_off=frozenset({(0, 1), (1, 1)}), off_by="mean"),
        Conditions(positions=False),
        Conditions(first_position=5),
    ],
)
def test_a_sweep_is_exactly_the_model_under_those_conditions(tiny: Tiny, base: Conditions) -> None:
    """To the bit, also where heads are off already: those are measured no more."""
    run = tiny("learned")
    run.set_conditions(base)
    session = run.read(TOKENS)
    effects = whole(run.effects(session, 9, 2, "mean"))
    assert effects.n_heads == 8 - len(base.heads_off)
    for at in np.ndindex(2, 4):
        if at in base.heads_off:
            assert effects.top[at] == -1
            assert np.isnan([effects.loss[at], effects.divergence[at]]).all()
            continue
        without = replace(base, heads_off=base.heads_off | {at}, off_by="mean")
        with torch.inference_mode():
            hidden = run.model.hidden(torch.tensor(TOKENS), None, without)
            logits = run.model.logits(hidden[9:10])[0]
        assert effects.logit[at] == float(logits[2])
        assert effects.top[at] == int(logits.argmax())


def test_a_sweep_that_is_given_up_goes_on_where_it_was(tiny: Tiny) -> None:
    """Between two layers of any step."""
    run = tiny()
    session = run.read(TOKENS)
    expected = whole(run.effects(session, 11, 1, "zero"))
    sweep = run.effects(session, 11, 1, "zero")
    for allowed in (0, 1, 0, 1, 1, 0, 1, 0):
        answers = iter([False] * allowed + [True] * 9)
        with pytest.raises(CancelledError):
            whole_rest(sweep, answers.__next__)
    effects = whole_rest(sweep)
    assert np.array_equal(effects.divergence, expected.divergence)
    assert np.array_equal(effects.loss, expected.loss)


def test_heads_are_ranked_by_how_much_they_move_in_either_direction(tiny: Tiny) -> None:
    """Of those that are measured; and a text of one token has no loss to change."""
    run = tiny()
    sweep = run.effects(run.read(TOKENS), 11, 1, "zero")
    sweep.step()
    sweep.step()
    some = sweep.step()
    assert {*some.ranked("answer")} == {(0, 0), (0, 1)}
    effects = whole_rest(sweep)
    for measure in ("answer", "loss"):
        sizes = [abs(float(effects.scores(measure)[at])) for at in effects.ranked(measure)]
        assert len(sizes) == 8
        assert sizes == sorted(sizes, reverse=True)
    one = whole(run.effects(run.read([3]), 0, 1, "zero"))
    assert np.isnan(one.scores("loss")).all()
    assert np.isfinite(one.scores("answer")).all()
    assert len(one.ranked("loss")) == 8


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=9), st.integers(0, 8))
def test_a_divergence_is_0_only_from_itself(logits: list[float], at: int) -> None:
    """And else above it."""
    p = log_probabilities(np.array(logits))
    assert np.exp(p).sum() == pytest.approx(1)
    assert divergence(p, p) == 0
    moved = np.array(logits)
    moved[at % len(moved)] += 1.0
    q = log_probabilities(moved)
    by_terms = sum(np.exp(a) * (a - b) for a, b in zip(p, q, strict=True))
    assert divergence(p, q) == pytest.approx(by_terms, abs=1e-12)
    assert divergence(p, q) >= 0


def test_a_scopes_sweep_is_of_what_is_shown(scope: Scope) -> None:
    """The reading's text and position, under its conditions."""
    scope.edit("abcabc")
    scope.set_conditions(Conditions(heads_off=frozenset({(0, 3)})))
    reading = scope.look(Look(0, 0, 2))
    sweep = scope.effects(reading, 4, "mean")
    assert sweep is not None
    effects = whole(sweep)
    assert (effects.position, effects.token_id, effects.off_by) == (2, 4, "zero")
    loss = np.asarray(reading.session.loss[1:], np.float64).mean()
    assert effects.shown.loss == pytest.approx(loss, abs=1e-5)
    assert reading.stages is not None
    assert effects.shown.logit == pytest.approx(reading.stages.logits[4], abs=1e-5)
