"""What the Windows panel shows, as tables: the very arrays that were measured; no Qt."""

import numpy as np

from engine.windows.eviction import Eviction
from engine.windows.fixed_window_loss import FixedWindowLoss
from engine.windows.masks import Windows
from engine.windows.visibility import Visibility
from gui.export.numbers import Column, Table, token_columns
from gui.export.stamp import conditions_said
from gui.words.prepared import N_SEEN, PATTERNS, WORDS


def _tokens(token_ids: tuple[int, ...], tokens: tuple[bytes, ...]) -> dict[str, Column]:
    return {"position": np.arange(len(tokens)), **token_columns(token_ids, tokens)}


def windows_tables(
    token_ids: tuple[int, ...],
    tokens: tuple[bytes, ...],
    windows: Windows,
    fixed_window: FixedWindowLoss | None,
    prefix: str = "",
) -> tuple[Table, ...]:
    """The losses under each mask, what each mask comes to, and the query's weights.

    `prefix` tells tables of another text than the one that is read from those of that one.
    """
    names = [conditions_said(under.conditions) for under in windows.masks]
    losses = {**_tokens(token_ids, tokens), "nats": _columns([u.loss for u in windows.masks])}
    if fixed_window is not None:
        losses["n_gram_nats"] = fixed_window.loss
    masks: dict[str, Column] = {
        "mask": names,
        "nats_per_token": np.array([under.mean for under in windows.masks]),
        "cache_bytes": np.array([under.cache_bytes for under in windows.masks], np.int64),
        "keys_in_layer": np.array([under.cache_rows for under in windows.masks], np.int64),
    }
    layers = [f"layer {layer}" for layer in range(len(windows.masks[0].cache_rows))]
    tables = [
        Table(f"{prefix}losses", losses, {"nats": names}),
        Table(f"{prefix}masks", masks, {"keys_in_layer": layers}),
        _weights(f"{prefix}weights", windows, names),
    ]
    if fixed_window is not None:
        facts: dict[str, Column] = {
            "previous_tokens": np.array([fixed_window.n_previous]),
            "nats_per_token": np.array([fixed_window.mean]),
            "tokens_counted": np.array([fixed_window.n_counted]),
            "held_out_nats_per_token": np.array([fixed_window.held_out_mean]),
        }
        tables.append(Table("n_gram", facts))
    return tuple(tables)


def _columns(rows: list[np.ndarray]) -> np.ndarray:
    return np.stack(rows, axis=1)


def _weights(name: str, windows: Windows, names: list[str]) -> Table:
    """The query's weights: a row for each mask, layer and head, a column for each key."""
    row = np.stack([under.row for under in windows.masks])  # [masks, L, H, S]
    mask, layer, head = np.indices(row.shape[:3]).reshape(3, -1)
    columns: dict[str, Column] = {
        "query": np.full(len(mask), windows.query),
        "mask": [names[each] for each in mask.tolist()],
        "layer": layer,
        "head": head,
        "weight": row.reshape(-1, row.shape[-1]),
    }
    keys = [f"on key {key}" for key in range(row.shape[-1])]
    return Table(name, columns, {"weight": keys})


def visible_tables(
    token_ids: tuple[int, ...], tokens: tuple[bytes, ...], visibility: Visibility
) -> tuple[Table, ...]:
    """What may be seen to predict some tokens, what is expected there, and all losses."""
    predictions = visibility.predictions
    text: dict[str, Column] = {
        **_tokens(token_ids, tokens),
        "nats": visibility.loss,
        "predicted_from": visibility.n_seen,
    }
    if not predictions:
        return (Table("tokens", text),)
    text["seen"] = _columns([each.seen for each in predictions])
    names = [f"to predict token {each.number}" for each in predictions]
    facts: dict[str, Column] = {
        "token_number": np.array([each.number for each in predictions]),
        "nats": np.array([each.loss for each in predictions]),
        "largest_logit_difference": np.array([each.apart for each in predictions]),
    }
    tops = [(each.number, *top) for each in predictions for top in each.top]
    expected: dict[str, Column] = {
        "token_number": np.array([number for number, _id, _share in tops]),
        "token_id": np.array([token_id for _number, token_id, _share in tops]),
        "probability": np.array([share for _number, _id, share in tops]),
    }
    return (
        Table("tokens", text, {"seen": names}),
        Table("predictions", facts),
        Table("expected", expected),
    )


def prepared_tables() -> tuple[Table, ...]:
    """The prepared comparison; its name says that nothing of it was computed."""
    columns: dict[str, Column] = {
        "word": WORDS,
        "seen_by_fixed_window": np.arange(len(WORDS)) >= len(WORDS) - N_SEEN,
        "weight": np.stack([pattern.weights for pattern in PATTERNS], axis=1),
    }
    names = [pattern.name for pattern in PATTERNS]
    return (Table("prepared_not_computed", columns, {"weight": names}),)


def eviction_tables(
    token_ids: tuple[int, ...], tokens: tuple[bytes, ...], eviction: Eviction
) -> tuple[Table, ...]:
    """Losses with and without the budget, when each key was given up, and both continuations."""
    n_layer, n_group = eviction.dropped_at.shape[:2]
    steps = eviction.dropped_at[:, :, : eviction.n_tokens].reshape(n_layer * n_group, -1).T
    names = [f"layer {layer} group {group}" for layer, group in np.ndindex(n_layer, n_group)]
    read: dict[str, Column] = {
        **_tokens(token_ids, tokens),
        "nats": eviction.loss,
        "nats_with_all_keys": eviction.full_loss,
        "given_up_at_step": steps,
    }
    budget = eviction.budget
    whole: dict[str, Column] = {
        "policy": [budget.policy],
        "keys": np.array([budget.n_keys]),
        "first": np.array([budget.sinks]),
        "nats_per_token": np.array([eviction.mean]),
        "nats_per_token_with_all_keys": np.array([eviction.full_mean]),
        "cache_bytes": np.array([eviction.held_bytes]),
        "cache_bytes_with_all_keys": np.array([eviction.full_bytes]),
    }
    tables = [Table("tokens", read, {"given_up_at_step": names}), Table("budget", whole)]
    for name, each in (
        ("continuation", eviction.continuation),
        ("continuation_with_all_keys", eviction.full_continuation),
    ):
        tables.append(Table(name, _tokens(each.token_ids, each.tokens)))
    return tuple(tables)
