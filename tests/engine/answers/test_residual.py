"""The residual stream taken apart, against a model worked out by hand in float64."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.answers.residual import Added, Attribution, Stream, attribute, next_token, top_token
from engine.answers.residual_pass import read_stream
from engine.conditions import Conditions
from engine.errors import CancelledError
from engine.model import Transformer
from engine.reading import Look
from engine.run import Run
from engine.scope import Scope
from engine.session import Session
from tests.engine.conftest import Reference, instead
from tests.engine.kinds_of_conditions import CONDITIONS

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi")
SHAPES: dict[str, dict[str, Any]] = {
    "pre": {},
    "output": {"norm_placement": "output"},
    "both": {"norm_placement": "both"},
    "parallel": {"parallel_residual": True},
    "parallel both": {"parallel_residual": True, "norm_placement": "both"},
    "post": {"norm_placement": "post"},
}
SUMS = [name for name in SHAPES if name != "post"]

Floats = NDArray[np.float64]


class ByHand(Reference):
    """The whole stream of every token, part by part, from the weights by name."""

    def _norm_in_parts(self, name: str, parts: Floats, whole: Floats) -> Floats:
        """Each of some parts [P, S, C] as the norm of their sum [S, C] treats it, bias left out."""
        size = whole - whole.mean(axis=-1, keepdims=True) if self.config.norm == "layer" else whole
        scale = np.sqrt((size**2).mean(axis=-1, keepdims=True) + self.config.norm_eps)
        if self.config.norm == "layer":
            parts = parts - parts.mean(axis=-1, keepdims=True)
        return parts / scale * self.weights[f"{name}.weight"]

    def _heads(self, layer: int, x: Floats, conditions: Conditions) -> Floats:
        """What each head adds, before any norm behind it [H, S, C]."""
        config, name = self.config, f"blocks.{layer}.attention"
        _summed, weights = self._attention(layer, x, conditions)
        joined = self._linear(f"{name}.qkv", x).reshape(len(x), -1, config.head_dim)
        v = joined[:, config.n_head + config.n_kv_head :]
        matrix = self.weights[f"{name}.output.weight"]
        heads = []
        for head in range(config.n_head):
            first = head * config.head_dim
            mix = weights[head] @ v[:, head * config.n_kv_head // config.n_head]
            if (layer, head) in conditions.heads_off:
                mix = instead(mix, conditions)
            heads.append(mix @ matrix[:, first : first + config.head_dim].T)
        return np.stack(heads)

    def stream(self, token_ids: list[int], conditions: Conditions) -> SimpleNamespace:
        """All parts by name, each [..., S, C], and the logits before a cap [S, V]."""
        token = self.weights["embedding.weight"][token_ids] * self.config.embedding_scale
        place = self._embed(token_ids, conditions) - self.weights["embedding.weight"][token_ids]
        parts = SimpleNamespace(token=token, place=place, heads=[], bias=[], mlp=[])
        x = token + place
        parts.residual = [x]
        for layer in range(self.config.n_layer):
            x = self._layer(parts, layer, x, conditions)
            parts.residual.append(x)
        is_post = self.config.norm_placement == "post"
        final = x if is_post else self._norm("final_norm", x)
        parts.logits = final @ self._matrix().T
        return parts

    def _matrix(self) -> Floats:
        return self.weights["embedding.weight" if self.config.tied_output else "output.weight"]

    def _layer(
        self, parts: SimpleNamespace, layer: int, x: Floats, conditions: Conditions
    ) -> Floats:
        name, place = f"blocks.{layer}", self.config.norm_placement
        before = place in {"pre", "both"}
        heads = self._heads(
            layer, self._norm(f"{name}.attention_norm", x) if before else x, conditions
        )
        bias = np.broadcast_to(
            self.weights.get(f"{name}.attention.output.bias", np.zeros(x.shape[-1])), x.shape
        )
        mixed = heads.sum(axis=0) + bias
        if place in {"output", "both"}:
            norm = f"{name}.attention_output_norm"
            *heads, bias = self._norm_in_parts(norm, np.stack([*heads, bias]), mixed)
            bias = bias + self.weights.get(f"{norm}.bias", 0.0)
            mixed = np.sum(heads, axis=0) + bias
        if place == "post":
            x = self._norm(f"{name}.attention_norm", x + mixed)
            read = x
        else:
            read = x if self.config.parallel_residual else x + mixed
            x = x + mixed
        mlp = self._mlp(layer, self._norm(f"{name}.mlp_norm", read) if before else read)
        if place in {"output", "both"}:
            mlp = self._norm(f"{name}.mlp_output_norm", mlp)
        parts.heads.append(np.stack(list(heads)))
        parts.bias.append(bias)
        parts.mlp.append(mlp)
        return self._norm(f"{name}.mlp_norm", x + mlp) if place == "post" else x + mlp

    def shares(self, parts: SimpleNamespace, position: int, token_id: int) -> dict[str, Any]:
        """Each part's share of a logit: it through the final norm of the sum, times the row."""
        row, end = self._matrix()[token_id], parts.residual[-1][position]

        def share(vectors: Floats) -> Floats:
            normed = self._norm_in_parts("final_norm", vectors[..., position, :], end)
            return np.asarray(normed @ row)

        return {
            "token": share(parts.token),
            "place": share(parts.place),
            "heads": share(np.stack(parts.heads)),
            "bias": share(np.stack(parts.bias)),
            "mlp": share(np.stack(parts.mlp)),
            "norm_bias": self.weights.get("final_norm.bias", np.zeros(len(row))) @ row,
        }


def assert_is(stream: Stream, parts: SimpleNamespace, position: int) -> None:
    """Every vector, length and cosine."""
    final = parts.residual[-1][position]
    for name in ("token", "place", "heads", "bias", "mlp", "residual"):
        wanted = np.stack(list(getattr(parts, name)))[..., position, :]
        added: Added | None = getattr(stream, name)
        if added is None:
            assert np.abs(wanted).max() < 1e-12
            continue
        assert added.vectors == pytest.approx(wanted, abs=3e-4, rel=1e-4)
        lengths = np.sqrt((wanted**2).sum(axis=-1))
        assert added.lengths == pytest.approx(lengths, abs=3e-4, rel=1e-4)
        for at in np.ndindex(lengths.shape):
            if lengths[at] < 1e-12:
                assert np.isnan(added.cosines[at])
            else:
                cosine = (wanted[at] @ final) / (lengths[at] * np.sqrt(final @ final))
                assert added.cosines[at] == pytest.approx(cosine, abs=1e-3)
    together = stream.heads.vectors.sum(axis=1)
    together = together if stream.bias is None else together + stream.bias.vectors
    assert stream.attention.vectors == pytest.approx(together, abs=1e-5)


def assert_shares(attribution: Attribution, shares: dict[str, Any]) -> None:
    for name, wanted in shares.items():
        got = getattr(attribution, name)
        if got is None:
            assert np.abs(wanted).max() < 1e-12
        else:
            assert got == pytest.approx(wanted, abs=1e-3, rel=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_every_part_is_what_the_weights_say_by_hand(
    tiny: Callable[..., Run], positions: str, shape: str, norm: str
) -> None:
    """Under every kind of conditions, tied and untied, with and without biases."""
    for case, conditions in enumerate(CONDITIONS.values()):
        run = tiny(
            positions,
            norm=norm,
            tied_output=bool(case % 2),
            attention_output_bias=bool(case % 3),
            seed=case,
            **SHAPES[shape],
        )
        run.set_conditions(conditions)
        session = run.read(TOKENS)
        hand = ByHand(run.model)
        parts = hand.stream(TOKENS, conditions)
        for position in (0, 5, 11):
            stream = run.stream(session, position)
            assert_is(stream, parts, position)
            assert stream.logits == pytest.approx(parts.logits[position], abs=1e-3)
            assert stream.difference < 1e-4
            attribution = run.attribution(stream, 7)
            if shape == "post":
                assert attribution is None
                continue
            assert attribution is not None
            assert_shares(attribution, hand.shares(parts, position, 7))


@pytest.mark.parametrize("shape", SUMS)
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_shares_of_every_token_add_up_to_the_models_own_logit(
    tiny: Callable[..., Run], shape: str, norm: str
) -> None:
    """That of a plain call of the model; so do the projections on the final residual."""
    run = tiny("learned", norm=norm, **SHAPES[shape])
    session = run.read(TOKENS)
    logits = run.model(torch.tensor(TOKENS))[9].detach().numpy()
    stream = run.stream(session, 9)
    for token_id in range(11):
        attribution = run.attribution(stream, token_id)
        assert attribution is not None
        assert attribution.token_id == token_id
        assert attribution.total == pytest.approx(logits[token_id], abs=1e-4)
        assert attribution.logit == pytest.approx(logits[token_id], abs=1e-4)
        assert attribution.difference <= stream.difference + 1e-5
        assert attribution.attention.sum() == pytest.approx(
            attribution.heads.sum() + (0 if attribution.bias is None else attribution.bias.sum())
        )
    parts = (stream.token, stream.place, stream.attention, stream.mlp)
    projections = [float((part.lengths * part.cosines).sum()) for part in parts if part]
    assert sum(projections) == pytest.approx(stream.residual.lengths[-1], rel=1e-4)


def test_with_a_cap_the_shares_are_of_the_logit_before_it(tiny: Callable[..., Run]) -> None:
    """And the cap of their sum is the model's logit."""
    run = tiny("rotary", logit_cap=2.0, norm="rms", norm_placement="both", embedding_scale=4.0)
    session = run.read(TOKENS)
    hand = ByHand(run.model).stream(TOKENS, Conditions()).logits[11]
    assert np.abs(hand).max() > 2
    logits = run.model(torch.tensor(TOKENS))[11].detach().numpy()
    stream = run.stream(session, 11)
    for token_id in range(11):
        attribution = run.attribution(stream, token_id)
        assert attribution is not None
        assert attribution.total == pytest.approx(hand[token_id], abs=1e-3)
        assert attribution.bent == pytest.approx(logits[token_id], abs=1e-4)
        assert attribution.difference < 1e-4
    assert stream.difference < 1e-4


def test_positions_that_add_nothing_are_no_part(tiny: Callable[..., Run]) -> None:
    for positions in POSITIONS:
        run = tiny(positions)
        has_place = run.stream(run.read(TOKENS), 3).place is not None
        assert has_place == (positions in {"learned", "sinusoidal"})
    run = tiny("learned")
    run.set_conditions(Conditions(positions=False))
    assert run.stream(run.read(TOKENS), 3).place is None


def test_a_head_that_is_off_adds_nothing_and_has_no_direction(tiny: Callable[..., Run]) -> None:
    run = tiny("rotary")
    run.set_conditions(Conditions(heads_off=frozenset({(1, 2)})))
    stream = run.stream(run.read(TOKENS), 6)
    assert stream.heads.lengths[1, 2] == 0
    assert np.isnan(stream.heads.cosines).nonzero() == (1, 2)
    attribution = run.attribution(stream, 0)
    assert attribution is not None
    assert attribution.heads[1, 2] == 0


def test_grouped_heads_windows_caps_and_normed_queries_are_taken_as_they_were(
    tiny: Callable[..., Run],
) -> None:
    """A Gemma-like model with everything at once: its parts add up to a plain call's logits."""
    run = tiny(
        "rotary",
        n_head=8,
        n_kv_head=2,
        head_dim=4,
        norm="rms",
        norm_placement="both",
        qk_norm="head",
        mlp="gated",
        windows=(3, 0),
        score_cap=5.0,
        score_scale=0.3,
        local_rope_theta=500.0,
        qkv_bias=False,
        attention_output_bias=False,
    )
    session = run.read(TOKENS)
    logits = run.model(torch.tensor(TOKENS)).detach().numpy()
    for position in range(len(TOKENS)):
        stream = run.stream(session, position)
        assert stream.bias is None
        assert (stream.n_layer, stream.n_head) == (2, 8)
        attribution = run.attribution(stream, 4)
        assert attribution is not None
        assert attribution.total == pytest.approx(logits[position, 4], abs=1e-4)


def test_a_pass_that_is_not_the_shown_one_is_found_out(tiny: Callable[..., Run]) -> None:
    """The difference is measured: a record changed by hand shows up in it."""
    for name in ("v", "hidden"):
        run = tiny("rotary")
        (trace,) = run.read(TOKENS).traces
        changed = getattr(trace, name).copy()
        changed += 0.5 * np.arange(changed.shape[-1])
        session = Session((replace(trace, **{name: changed}),))
        assert read_stream(run.model, session, 5, Conditions()).difference > Stream.TOLERANCE


def test_numbers_that_are_not_finite_are_not_hidden(tiny: Callable[..., Run]) -> None:
    run = tiny("rotary")
    with torch.no_grad():
        run.model.get_parameter("blocks.1.mlp.down.weight").fill_(float("nan"))
    stream = run.stream(run.read(TOKENS), 4)
    assert np.isfinite(stream.mlp.lengths[0])
    assert np.isnan(stream.mlp.lengths[1])
    assert not stream.difference <= Stream.TOLERANCE


def test_the_arrays_cannot_be_written_to(tiny: Callable[..., Run]) -> None:
    run = tiny("learned")
    stream = run.stream(run.read(TOKENS), 2)
    for name in ("token", "place", "heads", "bias", "attention", "mlp", "residual"):
        added = getattr(stream, name)
        for array in (added.vectors, added.lengths, added.cosines):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    with pytest.raises(ValueError, match="read-only"):
        stream.logits[0] = 0


def test_it_can_be_given_up_between_layers(tiny: Callable[..., Run]) -> None:
    """And then nothing of it is remembered."""
    run = tiny("rotary")
    session = run.read(TOKENS)
    for n_asked in range(2):
        answers = iter([False] * n_asked)
        with pytest.raises(CancelledError):
            run.stream(session, 3, lambda: next(answers, True))  # noqa: B023
    assert_is(run.stream(session, 3), ByHand(run.model).stream(TOKENS, Conditions()), 3)


def test_another_token_costs_no_pass(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another position, another text or other conditions do."""
    counted: list[int] = []

    def counting(model: Transformer, session: Session, position: int, *more: Any) -> Stream:
        counted.append(position)
        return read_stream(model, session, position, *more)

    monkeypatch.setattr("engine.run.read_stream", counting)
    run = tiny("rotary")
    session = run.read(TOKENS)
    for token_id in range(11):
        run.attribution(run.stream(session, 11), token_id)
    assert counted == [11]
    run.stream(session, 3)
    assert counted == [11, 3]
    run.stream(run.read([*TOKENS, 1]), 3)
    assert counted == [11, 3, 3]
    run.set_conditions(Conditions(mask="none"))
    run.stream(run.read(TOKENS), 3)
    assert counted == [11, 3, 3, 3]


def test_nobody_else_pays_for_it(tiny: Callable[..., Run]) -> None:
    """A stream runs neither attention nor an MLP over again."""
    run, ran = tiny("rotary"), []
    for part in ("attention", "mlp"):
        run.model.get_submodule(f"blocks.0.{part}").register_forward_hook(
            lambda *_, part=part: ran.append(part)
        )
    session = run.read(TOKENS)
    assert ran == ["attention", "mlp"]
    run.stream(session, 11)
    assert ran == ["attention", "mlp"]


@given(
    st.sampled_from(POSITIONS),
    st.sampled_from(SUMS),
    st.sampled_from(["layer", "rms"]),
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 3), min_size=1, max_size=8),
            st.sampled_from(list(CONDITIONS.values())),
            st.booleans(),
            st.integers(0, 7),
        ),
        min_size=1,
        max_size=4,
    ),
)
@settings(max_examples=40, deadline=None)
def test_after_any_history_parts_add_up_to_residual_and_logit(
    tiny: Callable[..., Run],
    positions: str,
    shape: str,
    norm: str,
    asked: list[tuple[list[int], Conditions, bool, int]],
) -> None:
    """Texts that share beginnings, cache on and off, at any position."""
    run = tiny(positions, norm=norm, **SHAPES[shape])
    for token_ids, conditions, use_cache, at in asked:
        run.set_conditions(conditions)
        run.set_cache(use=use_cache)
        session = run.read(token_ids)
        position = at % len(token_ids)
        stream = run.stream(session, position)
        x = stream.token.vectors.astype(np.float64)
        x = x if stream.place is None else x + stream.place.vectors
        assert stream.residual.vectors[0] == pytest.approx(x, abs=1e-5)
        for layer in range(2):
            x = x + stream.attention.vectors[layer] + stream.mlp.vectors[layer]
            assert stream.residual.vectors[layer + 1] == pytest.approx(x, abs=1e-4)
        ids = torch.tensor(token_ids)
        with torch.no_grad():
            logits = run.model(ids, conditions=conditions)[position].numpy()
        for token_id in range(11):
            attribution = run.attribution(stream, token_id)
            assert attribution is not None
            assert attribution.total == pytest.approx(logits[token_id], abs=3e-4)
        assert stream.difference < 1e-3


def test_a_row_of_the_output_matrix_is_all_that_is_needed(tiny: Callable[..., Run]) -> None:
    """A row that no token has gives that row's product with the hidden state."""
    run = tiny("rotary", norm="layer")
    session = run.read(TOKENS)
    stream = run.stream(session, 8)
    row = np.random.default_rng(3).normal(size=16).astype(np.float32)
    attribution = attribute(stream, 0, row)
    assert attribution is not None
    assert attribution.total == pytest.approx(float(session.hidden(8) @ row), abs=1e-4)


# The question as the window asks it


@pytest.fixture
def scope(lettered: Callable[..., Scope]) -> Scope:
    """A model of letters on "abcabc" with room for eight."""
    return lettered("abcabc", letters="abcdefgh", max_seq_len=8)


def test_the_readings_position_and_one_token_are_answered(scope: Scope) -> None:
    reading = scope.look(Look(query=2))
    answer = scope.residual(reading, 5)
    assert answer is not None
    stream, attribution = answer
    assert stream.position == 2
    assert attribution is not None
    assert attribution.token_id == 5
    assert reading.stages is not None
    assert attribution.total == pytest.approx(float(reading.stages.logits[5]), abs=1e-4)


def test_the_token_that_follows_and_the_most_probable_are_found(scope: Scope) -> None:
    """Also behind the cursor, and with a beginning that has fallen out."""
    reading = scope.look(Look(query=2))
    assert next_token(reading) == reading.document.token_ids[3]
    assert reading.stages is not None
    assert top_token(reading) == int(reading.stages.logits.argmax())
    assert next_token(scope.look(Look())) is None
    reading = scope.go_to(3)
    assert next_token(reading) == reading.document.token_ids[3]
    reading = scope.edit("abcdefghab")
    assert next_token(scope.look(Look(query=0))) == reading.document.token_ids[3]
    empty = scope.edit("")
    assert (next_token(empty), top_token(empty)) == (None, None)


def test_an_empty_text_another_model_and_old_conditions_have_no_answer(scope: Scope) -> None:
    reading = scope.look(Look())
    other = replace(reading, info=replace(reading.info, name="other"))
    assert scope.residual(other, 0) is None
    scope.set_conditions(Conditions(mask="none"))
    assert scope.residual(reading, 0) is None
    assert scope.residual(scope.edit(""), 0) is None


def test_with_the_mask_off_an_earlier_moment_is_its_own(scope: Scope) -> None:
    """Its rows had not seen what came later."""
    scope.set_conditions(Conditions(mask="none"))
    reading = scope.go_to(4)
    answer = scope.residual(scope.look(Look(query=1)), 3)
    assert answer is not None
    ids = list(reading.document.token_ids[:4])
    parts = ByHand(scope._run.model).stream(ids, Conditions(mask="none"))
    assert_is(answer[0], parts, 1)
