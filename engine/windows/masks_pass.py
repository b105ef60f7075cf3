"""Reads a text once under each of several masks, in whole passes of the loaded model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.attention import Recorder
from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.logit_rows import most_probable, token_losses
from engine.model import Transformer
from engine.recorder import frozen, with_first_keys
from engine.sliding_cache import new_cache
from engine.windows.masks import UnderMask, Windows, bytes_per_row

N_TOP = 3


class RowRecorder(Recorder):
    """Owns one query's weights [L, H, S] in all heads of one pass; nothing else is kept."""

    def __init__(self, n_layer: int, n_head: int, n_tokens: int, query: int) -> None:
        self.row = torch.zeros(n_layer, n_head, n_tokens)
        self._query = query

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """Keep the query's row of the weights [H, rows, keys], if it is among them."""
        if rows.start <= self._query < rows.stop:
            weights = with_first_keys(weights, rows.stop)
            self.row[layer, :, : weights.shape[-1]] = weights[:, self._query - rows.start]


@torch.inference_mode()
def read_windows(
    model: Transformer,
    token_ids: Sequence[int],
    masks: Sequence[Conditions],
    query: int,
    cancelled: Cancelled = never,
) -> Windows:
    """A text of at least one token under each of the masks, seen from one of its positions.

    Memory is linear in the text: of the weights only the query's rows are kept.

    Raises:
        ContextFullError: there are more tokens than the context holds.
        CancelledError: `cancelled` said so.
    """
    wanted = torch.tensor(token_ids, dtype=torch.int64)
    config = model.config
    under = []
    for conditions in masks:
        recorder = RowRecorder(config.n_layer, config.n_head, len(wanted), query)
        kv_cache = None
        if conditions.append_only:
            kv_cache = new_cache(config, model.device, len(wanted), conditions)
        hidden = model.hidden(wanted, kv_cache, conditions, recorder, cancelled)
        held = (0,) * config.n_layer if kv_cache is None else kv_cache.layer_bytes
        under.append(
            UnderMask(
                conditions=conditions,
                loss=frozen(token_losses(model, hidden, wanted, cancelled)),
                row=frozen(recorder.row),
                top=most_probable(model.logits(hidden[query]), N_TOP),
                cache_rows=tuple(each // bytes_per_row(config) for each in held),
                cache_bytes=sum(held),
            )
        )
    return Windows(query, tuple(under))
