"""How much memory a length needs, and a sentence before it is tried where there is not enough.

Upper bounds, by counting what lies in memory at the same time in a pass; `bench_room` in
`tests/benchmarks` holds them against the real peaks of fresh processes. Beside the model, whose
weights are there already, that is

    the cache     2 · G · D for each row that each layer has room for
    attention     the scores of one block of queries against all keys, in the layer where that is
                  most, as often as they are alive at once (fresh, and masked or softmax's; one
                  more where they are capped or lowered by ALiBi) and once more, because each
                  block is longer than the one before and does not fit where that one was; the
                  mask; q, k, v and the mixes of all rows
    the MLP       two rows of d_ff, three where it is gated
    logits        of one block
    the residual  four times

Attention, MLP and logits come one after another; they are added up all the same, because an
allocator keeps what one of them gave back, and has no use for it if the next one wants more.
"""

from collections.abc import Callable

from engine.conditions import Conditions
from engine.config import QUERY_BLOCK, ModelConfig
from engine.errors import EngineError
from engine.memory import available_bytes
from engine.sizes import bytes_said

_CAUSAL = Conditions()
_FLOAT = 4
_LONGEST_WHOLE = 1024  # tokens of the longest pass of a sweep that is made in one piece
_MATRICES = 2**28 + 3 * 2**22  # what the machine is measured with: 16 pieces, and three squares
_KEPT = 2**25  # the largest piece that an allocator may keep for later: glibc's highest threshold
_BESIDE = 3 * QUERY_BLOCK  # rows that `engine.sliding_cache` has room for beside a window's
_SLACK = 2**26  # of the allocator, and what torch makes for itself at the first use

Needed = Callable[[ModelConfig, int], int]


def sweep_bytes(config: ModelConfig, n_tokens: int) -> int:
    """What timing all lengths up to that one takes at most, by `engine.cost.length_sweep`.

    One after another: the matrices that the machine is measured with; passes of one block each,
    with a cache for all tokens; a pass in one piece, with a cache of its own. The first cache is
    given back between them, but if it is small the memory may stay with the process.
    """
    cache = _cache_bytes(config, n_tokens + 1)
    kept = cache if cache // 2 <= _KEPT else 0  # keys and values are one piece each
    in_blocks = cache + _pass_bytes(config, min(n_tokens, QUERY_BLOCK), n_tokens)
    n_whole = max(1, min(n_tokens, config.max_seq_len, _LONGEST_WHOLE))
    in_one = _cache_bytes(config, n_whole + 1) + _pass_bytes(config, n_whole, n_whole)
    return max(in_blocks, kept + max(_MATRICES, in_one)) + _SLACK


def two_ways_bytes(config: ModelConfig, n_tokens: int, conditions: Conditions = _CAUSAL) -> int:
    """What reading so many tokens in both ways takes: `engine.cost.two_ways`.

    One of them keeps all rows to compare with, the other has a cache.
    """
    kept = _rows_bytes(config, config.n_layer * n_tokens)
    cache = _cache_bytes(config, n_tokens, conditions)
    return kept + cache + _pass_bytes(config, n_tokens, n_tokens) + _SLACK


def _cache_bytes(config: ModelConfig, n_rows: int, conditions: Conditions = _CAUSAL) -> int:
    """Keys and values of all layers; those of a window twice while they are moved.

    First rows that a mask keeps in sight are held beside them, and put before them in one layer.
    """
    n_all = n_joined = 0
    for own in config.windows or (0,) * config.n_layer:
        window, n_first = conditions.narrowed(own), min(conditions.n_first(own), n_rows)
        most = window + _BESIDE if window else n_rows
        n_all += n_first + (n_rows if n_rows <= most else 2 * most)
        n_joined = max(n_joined, n_first and n_rows)
    return _rows_bytes(config, n_all + n_joined)


def _rows_bytes(config: ModelConfig, n_rows: int) -> int:
    """So many rows of keys and values."""
    return _FLOAT * 2 * config.n_kv_head * config.head_dim * n_rows


def _pass_bytes(config: ModelConfig, n_new: int, n_keys: int) -> int:
    """What a pass over new rows that ends at so many keys makes and drops, at its fullest."""
    q_width, kv_width = config.n_head * config.head_dim, config.n_kv_head * config.head_dim
    n_block, is_alibi = min(n_new, QUERY_BLOCK), config.positions == "alibi"
    n_squares = 3 + bool(config.score_cap) + is_alibi
    n_mask = 1 + 4 * is_alibi  # truth values; distances in whole numbers of eight bytes, twice
    seen = [n_block + window - 1 if window else n_keys for window in config.windows or (0,)]
    scores = n_block * min(n_keys, max(seen)) * (n_squares * config.n_head + n_mask)
    heads = n_new * (6 * q_width + 4 * kv_width)  # joined, split, turned; mixes, joined, as rows
    mlp = n_new * config.d_ff * (3 if config.mlp == "gated" else 2)
    logits = n_block * config.vocab_size * (3 if config.logit_cap else 1)
    return _FLOAT * (4 * n_new * config.d_model + scores + heads + mlp + logits)


def longest_that_fits(config: ModelConfig, n_bytes: int, needed: Needed = sweep_bytes) -> int:
    """The longest text that can be timed in so many bytes; 0 if none can."""
    low, high = 0, 2**24
    while low < high:
        middle = (low + high + 1) // 2
        if needed(config, middle) <= n_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def check_room(config: ModelConfig, n_tokens: int, needed: Needed = sweep_bytes) -> None:
    """See that a length can be tried; where nobody can tell, it can.

    Raises:
        EngineError: it needs more memory than there is; the sentence has both figures.
    """
    wanted, there = needed(config, n_tokens), available_bytes()
    if there is None or wanted <= there:
        return
    fits = longest_that_fits(config, there, needed)
    advice = f"{fits:,} tokens would fit" if fits else "no length would fit"
    raise EngineError(
        f"Timing {n_tokens:,} tokens needs about {bytes_said(wanted)} of memory, and "
        f"{bytes_said(there)} are free; {advice}."
    )
