"""From what was measured under windows and budgets to strips and sentences; decides no number."""

from collections.abc import Sequence
from math import isnan

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.sizes import bytes_said
from engine.windows.eviction import Budget, Eviction
from engine.windows.fixed_window_loss import FixedWindowLoss
from engine.windows.masks import UnderMask, Windows, reach, visible_keys
from gui.export.stamp import conditions_said
from gui.widgets.candidate_text import percent, token_label
from gui.widgets.lettering import quoted
from gui.widgets.sight import Sight
from gui.widgets.strip_table import Strip
from gui.words.prepared import N_SEEN, PATTERNS, WORDS
from gui.words.quantities import counted

CEILING = 8.0  # nats from which on the colour no longer changes, as on the token strip
DIFFERENCE = 4.0  # nats to either side at which it no longer changes
Floats = NDArray[np.floating]


def mask_said(under: UnderMask) -> str:
    """The mask in a few words."""
    return conditions_said(under.conditions).split(", off")[0]


# Losses


def _loss_texts(loss: Floats) -> tuple[str, ...]:
    return tuple("" if isnan(each) else f"{each:.2f}" for each in loss.tolist())


def loss_strip(
    wordings: tuple[str, ...],
    loss: Floats,
    held: Floats | None = None,
    sight: Sight | None = None,
) -> Strip:
    """The loss of every token, on the scale that all strips share."""
    return Strip(wordings, np.asarray(loss) / CEILING, _loss_texts(loss), "loss", held, sight)


def in_sight(
    under: UnderMask, config: ModelConfig, query: int | None, n_tokens: int
) -> Floats | None:
    """In which share of the layers the query may see each key [S]; NaN after the query."""
    if query is None:
        return None
    share = np.mean(
        [
            visible_keys(under.conditions, query, n_tokens, config.window(layer))
            for layer in range(config.n_layer)
        ],
        axis=0,
    )
    if under.conditions.mask != "none":
        share[query + 1 :] = np.nan
    return np.asarray(share)


def mask_strips(
    windows: Windows, config: ModelConfig, query: int | None, antecedent: int | None
) -> list[Strip]:
    """A strip for each mask: losses, and what the query sees."""
    base = windows.masks[0]
    strips = []
    for under in windows.masks:
        name, n_tokens = mask_said(under), windows.n_tokens
        mean, short = _mean_said(under.mean, base.mean if under is not base else None)
        keys = _keys_said(under.cache_rows, n_tokens)
        size = bytes_said(under.cache_bytes)
        on = _on_antecedent(windows, under, antecedent)
        strips.append(
            loss_strip(
                (
                    f"{name}: {mean} · cache {size}, {keys} in a layer{on}",
                    f"{name}: {mean} · cache {size}{on}",
                    f"{name}: {short} · cache {size}",
                    f"{name}: {short} · {size}",
                    f"{name}: {short.removesuffix(' nats')} · {size}",
                    name,
                ),
                under.loss,
                in_sight(under, config, query, n_tokens),
                Sight.of(under.conditions, n_tokens, query),
            )
        )
    return strips


def _mean_said(mean: float, base: float | None = None) -> tuple[str, str]:
    """A mean loss in words and in fewer; with how far it is from another."""
    if isnan(mean):
        return "no loss yet", "no loss"
    apart = f" ({mean - base:+.2f})" if base is not None else ""
    return f"mean {mean:.2f}{apart} nats", f"{mean:.2f}{apart} nats"


def _keys_said(rows: Sequence[int], n_tokens: int) -> str:
    low, high = min(rows), max(rows)
    held = f"{high:,}" if low == high else f"{low:,} to {high:,}"
    return f"{held} of {counted(n_tokens, 'key')}"


def strongest_head(windows: Windows, key: int) -> tuple[int, int]:
    """The layer and head that put most weight on a key under the causal mask."""
    row = windows.masks[0].row[:, :, key]  # [L, H]
    layer, head = np.unravel_index(int(row.argmax()), row.shape)
    return int(layer), int(head)


def _on_antecedent(windows: Windows, under: UnderMask, antecedent: int | None) -> str:
    if antecedent is None:
        return ""
    weight = float(under.row[(*strongest_head(windows, antecedent), antecedent)])
    is_seen = bool(visible_keys(under.conditions, windows.query, windows.n_tokens)[antecedent])
    return f" · on the antecedent {weight:.2f}" if is_seen else " · antecedent out of sight"


def fixed_window_strip(loss: FixedWindowLoss, query: int | None) -> Strip:
    """A strip of the model that has no attention: what follows the query hangs on its lane."""
    n_tokens = len(loss.loss)
    window = Conditions(mask="window", window=loss.n_previous)
    held = None
    if query is not None:
        held = visible_keys(window, query, n_tokens).astype(np.float64)
        held[query + 1 :] = np.nan
    sees = f"{loss.n_previous} previous token{'s' * (loss.n_previous > 1)}"
    mean, short = _mean_said(loss.mean)
    return loss_strip(
        (
            f"n-gram counts, {sees}: {mean} · no attention, no cache",
            f"n-gram, {sees}: {mean} · no cache",
            f"n-gram, {sees}: {short}",
            "n-gram",
        ),
        loss.loss,
        held,
        Sight.of(window, n_tokens, query),
    )


def fixed_window_said(loss: FixedWindowLoss) -> tuple[str, ...]:
    """What the n-gram model was counted on, and how well it does elsewhere.

    Each wording says that it does better on what it counted: else its line above, on a text from
    one of those plays, seems to beat the model's.
    """
    held_out = f"on the plays kept out it costs {loss.held_out_mean:.2f} nats per token"
    basis = f"counted {loss.n_counted:,} tokens of {loss.n_texts} plays"
    mean = f"{loss.held_out_mean:.2f} nats"
    return (
        f"The n-gram model {basis} (interpolated Kneser–Ney); {held_out}, and less on its own.",
        f"The n-gram model {basis}; {held_out}, and less on its own.",
        f"n-gram: {mean} per token on plays kept out, less on those counted.",
        f"n-gram: {mean} on plays kept out, less on others.",
    )


def antecedent_said(
    windows: Windows, labels: Sequence[str], antecedent: int | None, vocabulary: Sequence[bytes]
) -> tuple[str, ...]:
    """How the query, its antecedent and what follows fare under the masks."""
    query = windows.query
    looks = f"From {quoted(labels[query])} ({query})"
    follows = _what_follows(windows, labels, vocabulary)
    if antecedent is None:
        never = f"{looks}: it never stood before, so nothing shows what followed it."
        return f"{never} {follows}", f"{looks}: it never stood before. {follows}", follows
    layer, head = strongest_head(windows, antecedent)
    weights = " → ".join(f"{under.row[layer, head, antecedent]:.2f}" for under in windows.masks)
    word = f"{quoted(labels[antecedent])} ({antecedent})"
    back = query - antecedent
    where = f"{back} back" if back > 0 else "itself" if not back else f"{-back} ahead"
    weighs = f"layer {layer}, head {head} weighs it {weights}"
    return (
        f"{looks}, the antecedent {word} is {where}: {weighs}. {follows}",
        f"{looks} on {word}, {where}, L{layer} H{head}: {weights}. {follows}",
        f"On {word}, {where}: {weights}. {follows}",
        follows,
    )


def _what_follows(windows: Windows, labels: Sequence[str], vocabulary: Sequence[bytes]) -> str:
    at = windows.query + 1
    if at < windows.n_tokens:
        costs = " → ".join(f"{under.loss[at]:.2f}" for under in windows.masks)
        return f"What follows, {quoted(labels[at])}, costs {costs} nats."
    tops = " → ".join(
        f"{quoted(token_label(vocabulary, token_id))} {percent(share)}"
        for token_id, share in (under.top[0] for under in windows.masks)
    )
    return f"Most probable next: {tops}."


def reach_said(windows: Windows, config: ModelConfig) -> tuple[str, ...]:
    """How far a window reaches through all layers together, in fewer and fewer words."""
    under = windows.masks[1]
    far = reach(under.conditions, config)
    rule = f"A window is a rule for one layer: the {config.n_layer} together hand on"
    return (
        f"{rule} what stood up to {far:,} positions back.",
        f"All {config.n_layer} layers together reach {far:,} positions back.",
    )


# The prepared comparison


def prepared_strips() -> list[Strip]:
    """The last word's three visible words, and two patterns of weights written by hand."""
    seen = np.arange(len(WORDS)) >= len(WORDS) - N_SEEN
    strips = [
        Strip(
            (f"fixed window: only the last {N_SEEN} words can be used", f"last {N_SEEN} words"),
            texts=tuple("seen" if each else "out of reach" for each in seen.tolist()),
            held=seen.astype(np.float64),
        )
    ]
    for pattern in PATTERNS:
        weights = np.array(pattern.weights)
        strips.append(weights_strip((f"{pattern.name}: {pattern.says}", pattern.name), weights))
    return strips


def weights_strip(wordings: tuple[str, ...], weights: Floats, held: Floats | None = None) -> Strip:
    """Weights on the words or tokens, on the scale from 0 to 1."""
    texts = tuple(f"{each:.2f}" for each in weights.tolist())
    return Strip(wordings, weights, texts, "weights", held)


def live_strips(
    windows: Windows, config: ModelConfig, at: tuple[int, int], vocabulary: Sequence[bytes]
) -> list[Strip]:
    """The weights of one head's last query, under each mask, and what the model would say."""
    layer, head = at
    strips = []
    for under in windows.masks:
        top = ", ".join(
            f"{quoted(token_label(vocabulary, token_id))} {percent(share)}"
            for token_id, share in under.top
        )
        name, (mean, short) = mask_said(under), _mean_said(under.mean)
        strips.append(
            weights_strip(
                (
                    f"{name}, layer {layer}, head {head}: {mean} · next {top}",
                    f"{name}, L{layer} H{head}: {short} · next {top.split(', ')[0]}",
                    f"{name}, L{layer} H{head}: {short}",
                    name,
                ),
                under.row[layer, head],
                in_sight(under, config, windows.query, windows.n_tokens),
            )
        )
    return strips


# Eviction


def budget_said(budget: Budget) -> str:
    """The policy with its numbers."""
    if budget.policy == "window":
        return f"last {budget.n_keys}"
    if budget.policy == "first + window":
        return f"first {budget.sinks} + last {budget.n_keys - budget.sinks}"
    n_others = budget.n_keys - budget.n_recent
    return f"last {budget.n_recent} + {n_others} most attended"


def eviction_strips(eviction: Eviction, step: int | None) -> list[Strip]:
    """What is held at a step, the losses without a budget and under it, the difference."""
    n = eviction.n_tokens
    change = eviction.loss - eviction.full_loss
    name = budget_said(eviction.budget)
    conditions = eviction.conditions
    is_plain = conditions == Conditions(first_position=conditions.first_position)
    how = "" if is_plain else f", {conditions_said(conditions)}"
    held: Floats | None = None
    wordings: tuple[str, ...] = ("held: choose a position",)
    if step is not None:
        share = eviction.kept(step)
        held = np.full(n, np.nan)
        held[: step + 1] = share
        kept = min(step + 1, eviction.budget.n_keys)
        wordings = (
            f"keys held when position {step} looks: {kept} of {step + 1} in each layer",
            f"held at {step}: {kept} of {step + 1} keys",
        )
    full, full_short = _mean_said(eviction.full_mean)
    mean, short = _mean_said(eviction.mean)
    full_size, size = bytes_said(eviction.full_bytes), bytes_said(eviction.held_bytes)
    differs = np.where(np.isnan(change), np.nan, 0.5 + change / (2 * DIFFERENCE))
    by = eviction.mean - eviction.full_mean
    difference: tuple[str, ...] = ("difference: none yet",)
    if not isnan(by):
        difference = (
            f"difference: {by:+.3f} nats per token; + costs more under the budget",
            f"difference: {by:+.3f} nats",
        )
    return [
        Strip(wordings, texts=held_texts(held), held=held),
        loss_strip(
            (
                f"no budget{how}: {full} · cache {full_size}",
                f"no budget{how}: {full_short}",
                f"no budget: {full_short}",
            ),
            eviction.full_loss,
        ),
        loss_strip(
            (
                f"{name}: {mean} · cache {size}",
                f"{name}: {short} · {size}",
                name,
            ),
            eviction.loss,
        ),
        Strip(
            difference,
            differs,
            tuple("" if isnan(each) else f"{each:+.2f}" for each in change.tolist()),
            "difference",
        ),
    ]


def held_texts(held: Floats | None) -> tuple[str, ...]:
    """For each key whether it is held, in words; nothing where the question makes no sense."""
    if held is None:
        return ()
    names = {0.0: "given up", 1.0: "held"}
    return tuple(
        "" if isnan(each) else names.get(each, f"held in {each:.0%} of layers and groups")
        for each in held.tolist()
    )


def step_said(eviction: Eviction, step: int | None, labels: Sequence[str]) -> str:
    """What one step gave up."""
    if step is None:
        return ""
    dropped = eviction.dropped(step)
    if not dropped:
        return f"Step {step} ({quoted(labels[step])}) gave up nothing."
    words = ", ".join(f"{quoted(labels[each])} ({each})" for each in dropped[:4])
    more = f" and {len(dropped) - 4} more" if len(dropped) > 4 else ""
    where = " in some layers or groups" if eviction.budget.policy == "most attended" else ""
    return f"Step {step} ({quoted(labels[step])}) gave up {words}{more}{where}."


def continuation_said(eviction: Eviction) -> str:
    """How far both continuations agree."""
    n_tokens = len(eviction.full_continuation.token_ids)
    if not n_tokens:
        return "The context is full; nothing can follow."
    common = eviction.continuation.n_common(eviction.full_continuation)
    if common == n_tokens:
        return f"The continuations agree for all {counted(n_tokens, 'token')}."
    return f"The continuations agree for {common} of {counted(n_tokens, 'token')}."
