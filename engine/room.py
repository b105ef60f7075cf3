"""How much memory a length needs, and a sentence before it is tried where there is not enough."""

from engine.config import QUERY_BLOCK, ModelConfig
from engine.errors import EngineError
from engine.memory import available_bytes

_FLOAT = 4
_SQUARES = 4  # of a block's scores at once: fresh, bent or lowered, masked, softmax's
_WHOLE = 1024  # tokens of the longest pass that is made in one piece
_MATRICES = 2**28  # what the machine is measured with


def working_bytes(config: ModelConfig, n_tokens: int) -> int:
    """What timing a text of that length takes beside the model itself, to the nearest kind.

    The cache of all its rows; for one block of queries the scores against all keys, the logits
    and what goes through the MLP; the residual and q, k, v of a pass in one piece.
    """
    q_width, kv_width = config.n_head * config.head_dim, config.n_kv_head * config.head_dim
    cache = 2 * config.n_layer * kv_width * n_tokens
    rows = min(n_tokens, QUERY_BLOCK)
    scores = _SQUARES * config.n_head * rows * n_tokens
    logits = 2 * rows * config.vocab_size
    whole = min(n_tokens, _WHOLE)
    through = whole * (4 * config.d_model + 2 * (q_width + 2 * kv_width) + 3 * config.d_ff)
    return _FLOAT * (cache + scores + logits + through) + _MATRICES


def longest_that_fits(config: ModelConfig, n_bytes: int) -> int:
    """The longest text that can be timed in so many bytes; 0 if none can."""
    low, high = 0, 2**24
    while low < high:
        middle = (low + high + 1) // 2
        if working_bytes(config, middle) <= n_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def check_room(config: ModelConfig, n_tokens: int) -> None:
    """See that a length can be tried; where nobody can tell, it can.

    Raises:
        EngineError: it needs more memory than there is; the sentence has both figures.
    """
    needed, there = working_bytes(config, n_tokens), available_bytes()
    if there is None or needed <= there:
        return
    fits = longest_that_fits(config, there)
    advice = f"{fits:,} tokens would fit" if fits else "no length would fit"
    raise EngineError(
        f"Timing {n_tokens:,} tokens needs about {needed / 1e9:,.1f} GB of memory, and "
        f"{there / 1e9:,.1f} GB are free; {advice}."
    )
