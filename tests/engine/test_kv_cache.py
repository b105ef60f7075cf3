import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ContextFullError
from engine.kv_cache import KVCache

CONFIG = ModelConfig(
    vocab_size=5, n_layer=2, n_head=4, n_kv_head=2, d_model=12, head_dim=3, max_seq_len=6
)


def _rows(n_tokens: int, start: float) -> torch.Tensor:
    """Keys or values [G, T, D] in which each position holds its own number."""
    return (torch.arange(n_tokens) + start)[None, :, None].expand(2, n_tokens, 3)


def test_what_was_written_is_read_back_behind_what_was_there() -> None:
    cache = KVCache(CONFIG)
    for layer in range(2):
        cache.write(layer, _rows(2, 10 * layer), -_rows(2, 10 * layer))
    cache.advance(2)
    k, v = cache.write(1, _rows(3, 12), -_rows(3, 12))
    assert k.shape == v.shape == (2, 5, 3)
    assert k[0, :, 0].tolist() == [10, 11, 12, 13, 14]
    torch.testing.assert_close(v, -k)


def test_a_pass_that_is_given_up_leaves_nothing_to_undo() -> None:
    """Rows count only once the pass has advanced the length."""
    cache = KVCache(CONFIG)
    cache.write(0, _rows(4, 0), _rows(4, 0))
    assert (cache.length, cache.used_bytes) == (0, 0)
    k, _ = cache.write(0, _rows(1, 7), _rows(1, 7))
    assert k[0, :, 0].tolist() == [7]


def test_rewinding_forgets_the_end_and_never_invents_rows() -> None:
    cache = KVCache(CONFIG)
    for layer in range(2):
        cache.write(layer, _rows(5, 0), _rows(5, 0))
    cache.advance(5)
    cache.rewind(3)
    assert cache.length == 3
    k, _ = cache.write(0, _rows(1, 30), _rows(1, 30))
    assert k[0, :, 0].tolist() == [0, 1, 2, 30]
    cache.rewind(6)
    assert cache.length == 3


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.float16, 2)])
def test_bytes_are_those_of_the_formula(dtype: torch.dtype, size: int) -> None:
    """2 · n_layer · n_kv_head · head_dim · tokens · bytes."""
    cache = KVCache(CONFIG, dtype)
    cache.advance(5)
    assert cache.used_bytes == 2 * 2 * 2 * 3 * 5 * size
    assert cache.allocated_bytes == 2 * 2 * 2 * 3 * 6 * size
    assert cache.capacity == 6


def test_rows_are_allocated_as_texts_need_them() -> None:
    """A long context costs little until it is used; what was written stays."""
    long = ModelConfig.from_dict(CONFIG.to_dict() | {"max_seq_len": 10_000})
    cache = KVCache(long)
    a_row = 2 * 2 * 2 * 3 * 4
    assert cache.allocated_bytes == 1024 * a_row
    for n_tokens, rows in ((1000, 1024), (24, 1024), (1, 2048), (7000, 8025), (1975, 10_000)):
        for layer in range(2):
            start = 10_000 * layer + cache.length
            k, v = cache.write(layer, _rows(n_tokens, start), -_rows(n_tokens, start))
            expected = torch.arange(10_000 * layer, start + n_tokens)
            assert torch.equal(k[1, :, 2].long(), expected)
            assert torch.equal(-v[0, :, 0].long(), expected)
        cache.advance(n_tokens)
        assert (cache.allocated_bytes, cache.allocated_rows) == (rows * a_row, rows)
        assert cache.used_bytes == cache.length * a_row
    with pytest.raises(ContextFullError):
        cache.write(0, _rows(1, 0), _rows(1, 0))


def test_too_many_rows_are_refused_with_both_numbers() -> None:
    cache = KVCache(CONFIG)
    cache.advance(5)
    with pytest.raises(ContextFullError) as caught:
        cache.write(0, _rows(2, 0), _rows(2, 0))
    assert str(caught.value) == "7 tokens do not fit into a context of 6; shorten the text."
