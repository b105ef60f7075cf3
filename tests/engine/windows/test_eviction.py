"""A budget for the cache: exact where it equals a mask, and by hand where it goes by weights."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import CancelledError, ConfigError, EngineError
from engine.loading import Loaded
from engine.logit_rows import token_losses
from engine.model import Transformer
from engine.reading import ModelInfo
from engine.run import Run
from engine.sampling import Sampling
from engine.scope import Scope
from engine.tokenizers import Characters
from engine.windows import eviction_pass
from engine.windows.evicting_cache import EvictingCache
from engine.windows.eviction import NEVER, Budget, Eviction
from engine.windows.eviction_pass import Writing, evict

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
GREEDY = Sampling(temperature=0)
CAUSAL = Conditions()

Tiny = Callable[..., Run]


def writing(n_tokens: int = 6, sampling: Sampling = GREEDY, first: int = len(TOKENS)) -> Writing:
    """How a text goes on, its tokens spelled as digits."""
    return Writing(sampling, n_tokens, first, lambda token_id: str(token_id).encode())


def under(run: Run, budget: Budget, **fields: Any) -> Eviction:
    """TOKENS under a budget."""
    return evict(run.model, TOKENS, CAUSAL, budget, writing(**fields))


@pytest.mark.parametrize("positions", ["rotary", "learned", "alibi", "none"])
@pytest.mark.parametrize("policy", ["window", "first + window", "most attended"])
def test_a_budget_for_all_tokens_changes_nothing(tiny: Tiny, positions: str, policy: Any) -> None:
    """The continuation has 6 tokens more, so 22 keys hold everything."""
    run = tiny(positions)
    eviction = under(run, Budget(policy=policy, n_keys=22, sinks=2))
    plain = run.read(TOKENS)
    np.testing.assert_allclose(eviction.loss, plain.loss, atol=2e-6)
    np.testing.assert_allclose(eviction.full_loss, plain.loss, atol=2e-6)
    assert (eviction.dropped_at == NEVER).all()
    assert eviction.continuation.token_ids == eviction.full_continuation.token_ids
    assert len(eviction.continuation.token_ids) == 6
    assert eviction.continuation.n_common(eviction.full_continuation) == 6
    assert eviction.held_bytes == eviction.full_bytes == run.cache_bytes
    assert (eviction.kept(15) == 1).all()


@pytest.mark.parametrize("positions", ["rotary", "learned", "alibi", "none"])
@pytest.mark.parametrize("own_windows", [(), (3, 0)])
@pytest.mark.parametrize(("policy", "sinks"), [("window", 0), ("first + window", 2)])
def test_keeping_a_window_is_the_window_mask(
    tiny: Tiny, positions: str, own_windows: tuple[int, ...], policy: Any, sinks: int
) -> None:
    """Losses and 6 greedy tokens, against runs under the mask that see the whole text anew."""
    run = tiny(positions, windows=own_windows)
    eviction = under(run, Budget(policy=policy, n_keys=5, sinks=sinks))
    mask = Conditions(mask="window", window=5 - sinks, sinks=sinks)
    run.set_conditions(mask)
    np.testing.assert_allclose(eviction.loss, run.read(TOKENS).loss, atol=2e-6)
    token_ids = list(TOKENS)
    for drawn in eviction.continuation.token_ids:
        with torch.no_grad():
            logits = run.model(torch.tensor(token_ids), conditions=mask)[-1]
        assert drawn == int(logits.argmax())
        token_ids.append(drawn)


def by_hand(q: np.ndarray, k: np.ndarray, scale: float, budget: Budget) -> np.ndarray:
    """When keys are given up by the weight they got [G, S], in plain loops.

    q [H, S, D] and k [G, S, D] are of a first layer, which no eviction can change.
    """
    n_head, n_tokens, _dim = q.shape
    dropped_at = np.full((len(k), n_tokens), NEVER)
    shares = n_head // len(k)
    for group in range(len(k)):
        held: list[int] = []
        got: dict[int, float] = {}
        for step in range(n_tokens):
            if len(held) == budget.n_keys:
                recent = set(range(step - budget.n_keys // 2 + 1, step + 1))
                victim = min((key for key in held if key not in recent), key=lambda key: got[key])
                held.remove(victim)
                dropped_at[group, victim] = step
            held.append(step)
            got[step] = 0.0
            for head in range(group * shares, (group + 1) * shares):
                scores = np.array([q[head, step] @ k[group, key] * scale for key in held])
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                for key, weight in zip(held, weights.tolist(), strict=True):
                    got[key] += weight
    return dropped_at


@pytest.mark.parametrize("n_keys", [2, 5, 8])
def test_the_least_attended_keys_go_and_each_group_chooses(tiny: Tiny, n_keys: int) -> None:
    """In the first layer, whose q and k do not depend on what was given up."""
    run = tiny("rotary", seed=3)
    budget = Budget(policy="most attended", n_keys=n_keys)
    eviction = under(run, budget, n_tokens=0)
    session = run.read(TOKENS)
    scale = run.model.scoring(0, CAUSAL).scale
    wanted = by_hand(session.q(0).astype(float), session.k(0).astype(float), scale, budget)
    np.testing.assert_array_equal(eviction.dropped_at[0], wanted)
    assert n_keys < 8 or (wanted[0] != wanted[1]).any()


def test_what_a_step_gave_up_is_no_longer_seen_by_it_or_later(tiny: Tiny) -> None:
    """The weights that the cache's recorder is given have a place for every held key, no more."""
    run, seen = tiny("rotary"), []

    class Watching(EvictingCache):
        def keep_weights(self, layer: int, rows: slice, weights: torch.Tensor) -> None:
            seen.append((layer, self.places(layer).at[0].tolist(), weights.shape[-1]))
            super().keep_weights(layer, rows, weights)

    cache = Watching(run.config, Budget(policy="first + window", n_keys=4, sinks=1))
    with torch.no_grad():
        for token in TOKENS[:8]:
            run.model.hidden(torch.tensor([token]), cache, CAUSAL, cache)
    held = [sorted(places) for layer, places, _n in seen if layer == 1]
    assert held == [
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 2, 3, 4],
        [0, 3, 4, 5],
        [0, 4, 5, 6],
        [0, 5, 6, 7],
    ]
    assert all(len(places) == n_weights for _layer, places, n_weights in seen)


def test_the_record_says_at_each_step_what_is_held_and_what_was_dropped(tiny: Tiny) -> None:
    eviction = under(tiny("rotary"), Budget(policy="first + window", n_keys=4, sinks=1))
    assert eviction.kept(2).tolist() == [1, 1, 1]
    assert eviction.kept(6).tolist() == [1, 0, 0, 0, 1, 1, 1]
    assert eviction.dropped(3) == ()
    assert eviction.dropped(6) == (3,)
    assert eviction.dropped_at.shape == (2, 2, 21)  # the last token written is not read


def test_groups_that_differ_hold_a_key_in_part(tiny: Tiny) -> None:
    eviction = under(tiny("rotary", seed=3), Budget(policy="most attended", n_keys=5))
    shares = eviction.kept(15)
    assert shares.sum() == pytest.approx(5)
    assert ((shares > 0) & (shares < 1)).any()


@pytest.mark.parametrize("n_keys", [15, 16, 17])
def test_bytes_held_are_those_of_min_of_tokens_and_budget(tiny: Tiny, n_keys: int) -> None:
    """16 tokens, 2 layers, 2 groups, head_dim 6, keys and values of 4 bytes a number."""
    eviction = under(tiny("rotary", head_dim=6), Budget(n_keys=n_keys))
    assert eviction.held_bytes == 2 * 2 * 2 * 6 * 4 * min(16, n_keys)
    assert eviction.full_bytes == 2 * 2 * 2 * 6 * 4 * 16


def test_the_continuation_with_all_keys_is_what_stepping_writes() -> None:
    """Drawn with a seed, from a text that stands in the middle of a longer document."""
    tokenizer = Characters("abcdefgh ")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, n_layer=2, n_head=4, d_model=16, max_seq_len=40
    )
    torch.manual_seed(1)
    scope = Scope(Loaded(Transformer(config), tokenizer, ModelInfo("tiny", "", config, 1, 0.0)))
    scope.set_sampling(Sampling(temperature=1.0, seed=7))
    reading = scope.edit("abc def head bad")
    eviction = scope.eviction(reading, Budget(n_keys=4), 12)
    assert eviction is not None
    assert scope.look(scope._look).document is reading.document  # nothing that is shown changed
    for _ in range(12):
        reading = scope.step()
    assert eviction.full_continuation.token_ids == reading.document.token_ids[-12:]
    assert eviction.full_continuation.tokens == reading.document.tokens[-12:]


def test_writing_ends_at_the_context_limit(tiny: Tiny) -> None:
    run = tiny("rotary", max_seq_len=18)
    eviction = under(run, Budget(n_keys=4), n_tokens=40)
    assert len(eviction.continuation.token_ids) == 2
    full = evict(run.model, (TOKENS * 2)[:18], CAUSAL, Budget(n_keys=4), writing(first=18))
    assert full.continuation.token_ids == ()


def test_one_token_has_no_mean_loss(tiny: Tiny) -> None:
    eviction = evict(tiny("rotary").model, [3], CAUSAL, Budget(n_keys=1), writing(first=1))
    assert np.isnan(eviction.mean)
    assert eviction.kept(0).tolist() == [1]


def test_another_models_reading_has_no_eviction(tiny: Tiny) -> None:
    scopes = []
    for seed in (1, 2):
        tokenizer = Characters("ab")
        model = tiny("rotary", seed=seed, vocab_size=tokenizer.vocab_size).model
        info = ModelInfo("tiny", "", model.config, 1, 0.0)
        scopes.append(Scope(Loaded(model, tokenizer, info)))
    reading = scopes[0].edit("abba")
    assert scopes[1].eviction(reading, Budget(), 3) is None
    assert scopes[0].eviction(scopes[0].edit(""), Budget(), 3) is None


def test_progress_is_told_and_reading_can_be_given_up(tiny: Tiny) -> None:
    told: list[float] = []
    run = tiny("rotary")
    evict(run.model, TOKENS, CAUSAL, Budget(), writing(), told=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    n_passes = 1 + 5 + 1 + 5  # the text and five of six tokens written, with all keys and without
    assert len(told) == n_passes
    with pytest.raises(CancelledError):
        evict(
            run.model,
            TOKENS,
            CAUSAL,
            Budget(),
            writing(),
            lambda: len(told) > n_passes + 8,
            told.append,
        )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"n_keys": 0}, "a budget of 0 keys holds nothing; use 1 or more."),
        (
            {"policy": "first + window", "n_keys": 4, "sinks": 4},
            "a budget of 4 keys does not hold the first 4 and the newest; use 0 to 3 first ones.",
        ),
        (
            {"policy": "random"},
            "the policy 'random' is unknown; use one of window, first + window, most attended.",
        ),
    ],
)
def test_an_impossible_budget_is_refused_in_a_sentence(
    fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError) as error:
        Budget(**fields)
    assert str(error.value) == sentence


def test_a_policy_without_first_keys_has_none() -> None:
    assert Budget(n_keys=4, sinks=3) == Budget(n_keys=4)


def test_several_rows_at_once_are_refused_where_weights_decide(tiny: Tiny) -> None:
    """Unless it knows how layers score, and is told of the queries."""
    run = tiny("rotary")
    budget = Budget(policy="most attended", n_keys=2)
    with pytest.raises(ValueError, match="3 rows at once"):
        run.model.hidden(torch.tensor([1, 2, 3]), EvictingCache(run.config, budget))
    scorings = [run.model.scoring(layer, CAUSAL) for layer in range(run.config.n_layer)]
    knowing = EvictingCache(run.config, budget, scorings=scorings)
    with pytest.raises(ValueError, match="record the pass here"):
        run.model.hidden(torch.tensor([1, 2, 3]), knowing)


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_the_most_attended_keys_of_a_long_text_take_a_pass_for_each_block(
    tiny: Tiny, positions: str
) -> None:
    """300 tokens are three blocks of queries, and nothing else goes than one by one."""
    run = tiny(positions, max_seq_len=300, n_head=6, n_kv_head=2, d_model=24)
    text = np.random.default_rng(5).integers(run.config.vocab_size, size=300).tolist()
    budget, told = Budget(policy="most attended", n_keys=24), list[float]()
    eviction = evict(run.model, text, CAUSAL, budget, writing(n_tokens=0), told=told.append)
    assert len(told) == 1 + 3  # with all keys, and under the budget
    cache = EvictingCache(run.config, budget)
    with torch.inference_mode():
        each = (torch.tensor([token]) for token in text)
        rows = [run.model.hidden(token, cache, CAUSAL, cache) for token in each]
        losses = token_losses(run.model, torch.cat(rows), torch.tensor(text))
    np.testing.assert_array_equal(eviction.dropped_at, cache.dropped_at)
    np.testing.assert_allclose(eviction.loss, losses, atol=1e-5)


WINDOWED = Conditions(mask="window", window=3, sinks=1)
SILENT = Conditions(heads_off=frozenset({(0, 1), (1, 0), (1, 3)}))


@pytest.mark.parametrize("n_at_once", [2, 3, 7, 16])
@pytest.mark.parametrize(
    "budget",
    [
        Budget(n_keys=1),
        Budget(n_keys=5),
        Budget(policy="first + window", n_keys=6, sinks=2),
        Budget(policy="most attended", n_keys=1),
        Budget(policy="most attended", n_keys=6),
    ],
    ids=lambda budget: f"{budget.policy} {budget.n_keys}",
)
@pytest.mark.parametrize(
    "conditions", [CAUSAL, WINDOWED, replace(SILENT, off_by="mean")], ids=["", "window", "off"]
)
def test_reading_many_tokens_at_once_gives_up_what_one_by_one_does(
    tiny: Tiny,
    monkeypatch: pytest.MonkeyPatch,
    n_at_once: int,
    budget: Budget,
    conditions: Conditions,
) -> None:
    """Rows, and what is held in the end, against one token a pass."""
    run = tiny("rotary", windows=(4, 0))
    monkeypatch.setattr(eviction_pass, "QUERY_BLOCK", n_at_once)
    eviction = evict(run.model, TOKENS, conditions, budget, writing())
    cache = EvictingCache(run.config, budget)
    with torch.inference_mode():
        each = (torch.tensor([token]) for token in TOKENS)
        rows = [run.model.hidden(token, cache, conditions, cache) for token in each]
        losses = token_losses(run.model, torch.cat(rows), torch.tensor(TOKENS))
        np.testing.assert_allclose(eviction.loss, losses, atol=2e-6)
        assert eviction.held_bytes == cache.used_bytes
        logits = run.model.logits(rows[-1])[0]
        *read, last = eviction.continuation.token_ids
        for drawn in read:
            assert drawn == int(logits.argmax())
            logits = run.model(torch.tensor([drawn]), cache, conditions, cache)[0]
        assert last == int(logits.argmax())
    np.testing.assert_array_equal(eviction.dropped_at, cache.dropped_at[:, :, :21])


@pytest.mark.parametrize("positions", ["rotary", "alibi", "learned"])
def test_a_mask_hides_what_it_hides_from_what_is_held(tiny: Tiny, positions: str) -> None:
    """The last 5 keys under a window of 3 are that window; the last 3 under one of 5 are 3."""
    run = tiny(positions)
    for mask, budget, wanted in (
        (Conditions(mask="window", window=3), Budget(n_keys=5), (3, 0)),
        (Conditions(mask="window", window=5), Budget(n_keys=3), (3, 0)),
        (WINDOWED, Budget(policy="first + window", n_keys=5, sinks=2), (3, 1)),
    ):
        eviction = evict(run.model, TOKENS, mask, budget, writing())
        both = Conditions(mask="window", window=wanted[0], sinks=wanted[1])
        for conditions, loss in ((mask, eviction.full_loss), (both, eviction.loss)):
            run.set_conditions(conditions)
            np.testing.assert_allclose(loss, run.read(TOKENS).loss, atol=2e-6)
        assert eviction.conditions == mask


@pytest.mark.parametrize("off_by", ["zero", "mean"])
@pytest.mark.parametrize(("policy", "sinks"), [("window", 0), ("first + window", 2)])
def test_heads_that_are_off_are_off_under_a_budget_too(
    tiny: Tiny, off_by: Any, policy: Any, sinks: int
) -> None:
    """A mean is that of the positions that are held, as it is that of a window's."""
    run = tiny("rotary")
    off = replace(SILENT, off_by=off_by)
    budget = Budget(policy=policy, n_keys=5, sinks=sinks)
    eviction = evict(run.model, TOKENS, off, budget, writing())
    mask = replace(off, mask="window", window=5 - sinks, sinks=sinks)
    for conditions, loss in ((off, eviction.full_loss), (mask, eviction.loss)):
        run.set_conditions(conditions)
        np.testing.assert_allclose(loss, run.read(TOKENS).loss, atol=2e-6)
    token_ids = list(TOKENS)
    for drawn in eviction.continuation.token_ids:
        with torch.no_grad():
            logits = run.model(torch.tensor(token_ids), conditions=mask)[-1]
        assert drawn == int(logits.argmax())
        token_ids.append(drawn)


def test_without_a_mask_there_is_no_cache_to_give_up_from(tiny: Tiny) -> None:
    with pytest.raises(EngineError) as error:
        evict(tiny("rotary").model, TOKENS, Conditions(mask="none"), Budget(), writing())
    assert str(error.value) == (
        "Without the mask each further token changes every earlier row, so no cache can be kept "
        "and none of it given up; switch the mask on to try a budget."
    )


def test_losses_are_known_before_anything_is_written(tiny: Tiny) -> None:
    run, parts = tiny("rotary"), []
    how = run.model, TOKENS, CAUSAL, Budget(n_keys=4), writing()
    whole = evict(*how, so_far=parts.append)
    (part,) = parts
    assert not part.is_whole
    assert whole.is_whole
    np.testing.assert_array_equal(part.loss, whole.loss)
    np.testing.assert_array_equal(part.full_loss, whole.full_loss)
    np.testing.assert_array_equal(part.dropped_at[:, :, :12], whole.dropped_at[:, :, :12])
    assert part.continuation.token_ids == ()
    evict(*how, known=whole, so_far=parts.append)
    assert parts[1].full_continuation is whole.full_continuation


def test_what_all_keys_give_is_worked_out_once_for_all_budgets() -> None:
    tokenizer = Characters("abcdefgh ")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size, n_layer=2, n_head=4, d_model=16, max_seq_len=40
    )
    torch.manual_seed(1)
    scope = Scope(Loaded(Transformer(config), tokenizer, ModelInfo("tiny", "", config, 1, 0.0)))

    def full(budget: Budget) -> Any:
        eviction = scope.eviction(reading, budget, 6)
        assert eviction is not None
        return eviction.full_continuation

    reading = scope.edit("abc def")
    once = full(Budget(n_keys=4))
    assert full(Budget(policy="most attended", n_keys=3)) is once
    for changed in (
        lambda: scope.set_sampling(Sampling(seed=8)),
        lambda: scope.set_conditions(Conditions(mask="window", window=3)),
        lambda: scope.edit("abc deg"),
    ):
        before = full(Budget(n_keys=2))
        reading = changed()
        assert full(Budget(n_keys=2)) is not before
