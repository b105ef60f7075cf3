"""A window, a layer's or the mask's, keeps what a later query can still see, and nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import CancelledError, ContextFullError
from engine.kv_cache import KVCache
from engine.run import Run
from engine.sliding_cache import SlidingCache, new_cache
from tests.engine.hf_files import write_golden

WINDOW = 4
ROW = 2 * 2 * 3 * 4  # bytes: keys and values of 2 groups, 3 numbers of 4 bytes
CONFIG = ModelConfig(
    vocab_size=5,
    n_layer=3,
    n_head=4,
    n_kv_head=2,
    d_model=12,
    head_dim=3,
    max_seq_len=40,
    windows=(WINDOW, 0, 2),
)
TEXT = [(7 * at * at + 3 * at) % 5 for at in range(20)]

Tiny = Callable[..., Run]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any room behind a window, so that rows are moved, and let go, all the time."""
    monkeypatch.setattr("engine.sliding_cache._ROOM", 1)
    monkeypatch.setattr("engine.sliding_cache._SPARE", 1)


def rows_from(start: int, n_tokens: int) -> torch.Tensor:
    """Keys or values [G, T, D] in which each position holds its own number."""
    return (torch.arange(n_tokens) + start)[None, :, None].expand(2, n_tokens, 3).float()


def write(cache: KVCache, n_tokens: int) -> list[list[int]]:
    """A pass of so many tokens: the positions that each layer was given, after their number."""
    given = []
    for layer in range(3):
        new = rows_from(cache.length, n_tokens)
        k, v = cache.write(layer, new, -new)
        assert torch.equal(k, -v)
        assert torch.equal(k, k[:1, :, :1].expand_as(k))
        positions = [int(number) for number in k[0, :, 0]]
        assert positions == list(range(cache.n_gone(layer), cache.length + n_tokens))
        given.append(positions)
    cache.advance(n_tokens)
    return given


def recorded(_layer: int, start: int, end: int) -> tuple[Any, Any]:
    """What `write` wrote."""
    rows = rows_from(start, end - start).numpy()
    return rows, -rows


def test_only_under_windows_a_cache_slides() -> None:
    near = Conditions(mask="window", window=9)
    assert isinstance(new_cache(CONFIG), SlidingCache)
    for windows in ((), (0, 0, 0)):
        config = ModelConfig.from_dict(CONFIG.to_dict() | {"windows": windows})
        assert type(new_cache(config)) is KVCache
        assert isinstance(new_cache(config, conditions=near), SlidingCache)


def in_sight(n_tokens: int, conditions: Conditions, own: int) -> list[int]:
    """What the last of so many tokens sees in a layer with such a window, key by key."""
    last = n_tokens - 1
    keys = [key for key in range(n_tokens) if not own or last - key < own]
    if conditions.mask != "window":
        return keys
    return [key for key in keys if last - key < conditions.window or key < conditions.sinks]


MASKS = [
    Conditions(mask="window", window=5),
    Conditions(mask="window", window=3, sinks=2),
    Conditions(mask="window", window=1, sinks=1),
    Conditions(mask="window", window=4, sinks=6),
    Conditions(mask="window", window=2, sinks=90),
]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("conditions", MASKS, ids=str)
@pytest.mark.parametrize("passes", [[1] * 20, [9, 1, 1, 1], [3, 3, 3, 3], [2, 17, 1], [40]])
def test_under_a_windows_mask_it_holds_what_the_last_query_sees(
    conditions: Conditions, passes: list[int]
) -> None:
    """And a pass is given at least what its queries see, at the places that it tells."""
    cache = new_cache(CONFIG, n_rows=2, conditions=conditions)
    for n_tokens in passes:
        start = cache.length
        for layer, own in enumerate(CONFIG.windows):
            new = rows_from(start, n_tokens)
            k, v = cache.write(layer, new, -new)
            assert torch.equal(k, -v)
            places = cache.places(layer)
            given = [int(number) for number in k[0, :, 0]]
            if places is None:
                assert given == list(range(cache.n_gone(layer), start + n_tokens))
            else:
                assert given == places.at[0].tolist()
                assert cache.n_gone(layer) == 0
            for query in range(start, start + n_tokens):
                assert set(in_sight(query + 1, conditions, own)) <= set(given)
            if n_tokens == 1:
                assert given == in_sight(start + 1, conditions, own)
        cache.advance(n_tokens)
        seen = [in_sight(cache.length, conditions, own) for own in CONFIG.windows]
        assert cache.layer_bytes == tuple(ROW * len(keys) for keys in seen)
        assert cache.used_bytes == sum(cache.layer_bytes)
        assert cache.used_bytes <= cache.allocated_bytes
        for layer, keys in enumerate(seen):
            k, _v = cache.rows_in_use(layer)
            assert [int(number) for number in k[0, :, 0]] == keys


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("conditions", MASKS, ids=str)
@pytest.mark.parametrize("length", range(1, 21))
def test_rewinding_under_a_windows_mask_takes_back_what_was_let_go(
    conditions: Conditions, length: int
) -> None:
    cache = new_cache(CONFIG, conditions=conditions)
    for _token in range(20):
        for layer in range(3):
            cache.write(layer, rows_from(cache.length, 1), -rows_from(cache.length, 1))
        cache.advance(1)
    other = cache.copy()
    cache.rewind(length, recorded)
    for layer, own in enumerate(CONFIG.windows):
        k, v = cache.rows_in_use(layer)
        assert torch.equal(k, -v)
        assert [int(number) for number in k[0, :, 0]] == in_sight(length, conditions, own)
        k, _v = other.rows_in_use(layer)
        assert [int(number) for number in k[0, :, 0]] == in_sight(20, conditions, own)


@pytest.mark.parametrize("room", ["narrow", "wide"])
@pytest.mark.parametrize("n_tokens", [WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW, 40])
def test_a_windows_layer_is_flat_at_exactly_its_window(
    n_tokens: int, room: str, request: pytest.FixtureRequest
) -> None:
    """One below, at it, one above; read at once and one by one."""
    if room == "narrow":
        request.getfixturevalue("narrow")
    at_once, in_turn = new_cache(CONFIG), new_cache(CONFIG)
    write(at_once, n_tokens)
    for _token in range(n_tokens):
        write(in_turn, 1)
    rows = (min(n_tokens, WINDOW), n_tokens, min(n_tokens, 2))
    for cache in (at_once, in_turn):
        assert cache.layer_bytes == tuple(ROW * each for each in rows)
        assert cache.used_bytes == ROW * sum(rows)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("passes", [[1] * 20, [9, 1, 1, 1], [3, 3, 3, 3], [2, 17, 1], [5, 0, 6]])
def test_a_pass_is_given_what_its_queries_see_and_no_more(passes: list[int]) -> None:
    cache = new_cache(CONFIG, n_rows=2)
    for n_tokens in passes:
        start, end = cache.length, cache.length + n_tokens
        wide, whole, near = write(cache, n_tokens)
        assert wide == list(range(max(0, start - WINDOW + 1), end))
        assert whole == list(range(end))
        assert near == list(range(max(0, start - 1), end))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("length", range(21))
def test_rewinding_takes_back_from_the_records_what_was_let_go(length: int) -> None:
    cache = new_cache(CONFIG)
    for _token in range(20):
        write(cache, 1)
    cache.rewind(length, recorded)
    assert cache.layer_bytes == tuple(
        ROW * each for each in (min(length, WINDOW), length, min(length, 2))
    )
    for n_tokens in (1, 3):
        start, end = cache.length, cache.length + n_tokens
        assert write(cache, n_tokens)[0] == list(range(max(0, start - WINDOW + 1), end))


@pytest.mark.usefixtures("narrow")
def test_without_records_it_goes_back_by_a_token_or_to_the_beginning() -> None:
    """Anything else is refused when it is gone on from, and counted as what it is until then."""
    cache = new_cache(CONFIG)
    for _again in range(3):
        for _token in range(13):
            write(cache, 1)
            write(cache, 1)
            cache.rewind(cache.length - 1)
        cache.rewind(0)
        assert cache.used_bytes == 0
    write(cache, 20)
    cache.rewind(10)
    assert cache.layer_bytes == (0, 10 * ROW, 0)
    with pytest.raises(ValueError, match="the rows 7 to 9 were let go"):
        cache.write(0, rows_from(10, 1), rows_from(10, 1))


def test_it_always_goes_back_by_a_block_of_queries_without_records() -> None:
    """As those do who time a block and forget it; in front of wherever rows are moved."""
    config = ModelConfig.from_dict(CONFIG.to_dict() | {"max_seq_len": 5000})
    cache = new_cache(config, n_rows=1)
    for n_tokens in (128, 100, 1, 128, 77, 128, 128, 600, 128, 3, 128, 128):
        write(cache, n_tokens)
        for n_again in (128, 1):
            cache.rewind(max(0, cache.length - n_again))
            assert write(cache, n_again)[0][-1] == cache.length - 1


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("n_given_up", [1, 3, 30])
def test_a_pass_that_is_given_up_leaves_nothing_to_undo(n_given_up: int, n_layers: int) -> None:
    """Whether or not it would have moved the rows."""
    for n_before in range(1, 10):
        cache = new_cache(CONFIG)
        for _token in range(n_before):
            write(cache, 1)
        before = cache.layer_bytes
        for layer in range(n_layers):
            cache.write(layer, rows_from(90, n_given_up), rows_from(90, n_given_up))
        assert (cache.length, cache.layer_bytes) == (n_before, before)
        write(cache, 2)
        write(cache, 1)


def test_a_copy_goes_its_own_way() -> None:
    cache = new_cache(CONFIG)
    write(cache, 9)
    other = cache.copy()
    for layer in range(3):
        cache.write(layer, rows_from(50, 1), rows_from(50, 1))
    cache.advance(1)
    assert write(other, 2)[0] == [6, 7, 8, 9, 10]
    assert (cache.length, other.length) == (10, 11)


def test_memory_stays_within_a_few_rows_of_the_window() -> None:
    """Windows of 4 and 2 with room for three blocks more; the layer without one takes all."""
    config = ModelConfig.from_dict(CONFIG.to_dict() | {"max_seq_len": 5000})
    cache = new_cache(config, n_rows=1)
    for n_tokens in (3000, *[1] * 600):
        write(cache, n_tokens)
    whole = cache.allocated_bytes - 5000 * ROW
    assert 2 * 1 * ROW <= whole <= (WINDOW + 2 + 2 * 3 * 128) * ROW
    assert cache.layer_bytes == (WINDOW * ROW, 3600 * ROW, 2 * ROW)


def test_a_full_context_is_refused_with_both_numbers() -> None:
    """Also by a layer that would have room."""
    cache = new_cache(CONFIG)
    write(cache, 39)
    with pytest.raises(ContextFullError, match="41 tokens do not fit into a context of 40"):
        cache.write(0, rows_from(39, 2), rows_from(39, 2))


@pytest.mark.parametrize(
    "name", ["mistral", "gemma2", "gemma3", "gpt_neo", "phi3", "qwen2_windows"]
)
@pytest.mark.parametrize("n_tokens", [7, 8, 9, 40])
def test_real_families_hold_their_windows_of_eight_and_no_more(
    name: str, n_tokens: int, tmp_path: Any
) -> None:
    """Below a window of 8, at it, above: bytes by hand from the configuration's own sizes."""
    from engine.loading import load  # noqa: PLC0415

    golden = write_golden(tmp_path, name)
    run = Run(load(tmp_path).model)
    config = run.config
    assert set(config.windows) <= {0, 8}
    assert 8 in config.windows
    row = 2 * config.n_kv_head * config.head_dim * 4
    held = tuple(row * (min(n_tokens, window) if window else n_tokens) for window in config.windows)
    token_ids = golden["token_ids"][:n_tokens].tolist()
    run.read(token_ids)
    assert run.cache_layer_bytes == held
    assert run.session.traces[-1].cache_bytes == run.stats[-1].cache_bytes == sum(held)
    for shorter in (3, 1):
        run.read(token_ids[:shorter])
        assert run.cache_bytes == row * shorter * config.n_layer
    for longer in range(2, n_tokens + 1):
        run.read(token_ids[:longer])
    assert run.cache_layer_bytes == held


CONDITIONS = {
    "causal": Conditions(),
    "narrower": Conditions(mask="window", window=3),
    "wider": Conditions(mask="window", window=7),
    "first positions": Conditions(mask="window", window=2, sinks=2),
    "more first positions": Conditions(mask="window", window=3, sinks=5),
    "first positions and a mean": Conditions(
        mask="window", window=2, sinks=1, heads_off=frozenset({(0, 2), (1, 0)}), off_by="mean"
    ),
    "a mean": Conditions(heads_off=frozenset({(0, 1), (1, 3)}), off_by="mean"),
    "zeros and a window": Conditions(mask="window", window=3, heads_off=frozenset({(1, 0)})),
}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("positions", ["rotary", "alibi", "learned"])
@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_step_by_step_gives_what_one_pass_gives(
    tiny: Tiny, conditions: Conditions, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With edits near the end and in the middle, against a pass without any cache."""
    monkeypatch.setattr("engine.attention.QUERY_BLOCK", 3)
    run = tiny(positions, windows=(WINDOW, 0))
    fresh = Run(run.model)
    for each in (run, fresh):
        each.set_conditions(conditions)
    fresh.set_cache(use=False)
    texts = [TEXT[:n] for n in range(2, 18)]
    texts += [[*TEXT[:16], 4], [*TEXT[:9], 3, 3, 1], TEXT[:12], TEXT, [*TEXT[:18], 1, 1], TEXT[:3]]
    for text in texts:
        session, expected = run.read(text), fresh.read(text)
        last = len(text) - 1
        np.testing.assert_allclose(
            run.logits(session, last), fresh.logits(expected, last), atol=2e-5
        )
        np.testing.assert_allclose(session.loss, expected.loss, atol=2e-5)
        np.testing.assert_allclose(session.features, expected.features, atol=2e-5)
        each = 2 * run.config.n_kv_head * run.config.head_dim * 4
        assert run.cache_layer_bytes == tuple(
            each * len(in_sight(len(text), conditions, own)) for own in (WINDOW, 0)
        )
    assert any(stat.reason == "edited" and stat.n_computed <= 2 for stat in run.stats)


@pytest.mark.usefixtures("narrow")
def test_an_edit_that_is_given_up_can_be_made_again(tiny: Tiny) -> None:
    run = tiny(windows=(WINDOW, 2))
    run.read(TEXT)
    answers = iter([False, True])
    with pytest.raises(CancelledError):
        run.read([*TEXT[:15], 1, 2, 0], lambda: next(answers))
    session = run.read([*TEXT[:15], 3, 3])
    assert run.stats[-1].n_computed == 2
    expected = Run(run.model).read([*TEXT[:15], 3, 3])
    np.testing.assert_allclose(session.loss, expected.loss, atol=2e-5)


@pytest.mark.usefixtures("narrow")
def test_two_runs_that_part_keep_their_own_rows(tiny: Tiny) -> None:
    run = tiny(windows=(WINDOW, 2))
    run.read(TEXT[:12])
    other = run.beside()
    run.read([*TEXT[:12], 1, 1, 1, 1, 1])
    session = other.read([*TEXT[:10], 4, 0])
    expected = Run(run.model).read([*TEXT[:10], 4, 0])
    np.testing.assert_allclose(session.loss, expected.loss, atol=2e-5)


def test_what_a_window_hides_from_a_whole_block_is_not_computed(
    tiny: Tiny, spy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of 3 from 0, 3, 6: through a window of 4 they see from 0, 0 and 3 on."""
    monkeypatch.setattr("engine.attention.QUERY_BLOCK", 3)
    model = tiny(windows=(WINDOW, 0)).model
    model.hidden(torch.tensor(TEXT[:9]), None, Conditions(), spy)
    assert [block.shape[-1] for block in spy.blocks[0]] == [3, 6, 6]
    assert [block.shape[-1] for block in spy.blocks[1]] == [3, 6, 9]
