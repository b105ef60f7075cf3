"""From what panels show to tables of numbers: the very arrays of the readings; no Qt."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.answers.ablation import Effects, Intact, divergence, log_probabilities
from engine.answers.alignment import ABSENT
from engine.answers.cell import CellArithmetic
from engine.answers.code_lines import EngineCode
from engine.answers.comparison import Comparison, seen_tokens
from engine.answers.lens import Lens
from engine.answers.residual import Added, Attribution, Stream
from engine.conditions import Conditions
from engine.experiments.records import LeakTrials, SchemeReadings
from engine.formats import Consequence
from engine.loss import LossSummary, bits, probabilities
from engine.reading import CacheCheck, Reading
from engine.readouts import n_carrying
from engine.sampling import Stages
from gui.export.numbers import Column, Table, token_columns, vocabulary_columns
from gui.export.stamp import conditions_said
from gui.words.cache_figures import thrown_between

_NOTHING = float("nan")


def _read(reading: Reading) -> dict[str, Column]:
    """The tokens that the model has read, by position [S]."""
    tokens = reading.document.tokens[reading.n_fallen : reading.cursor]
    return {
        "position": np.arange(len(tokens)),
        **token_columns(reading.session.token_ids, tokens),
    }


def head_tables(reading: Reading) -> tuple[Table, ...]:
    """One head: a row for each query, a column for each key."""
    focus = reading.focus
    keys = [f"on key {key}" for key in range(focus.weights.shape[1])]
    queries = _read(reading)
    carrying = n_carrying(focus.weights)
    return (
        Table(
            "weights",
            {**queries, "keys_that_carry_90_percent": carrying, "weight": focus.weights},
            {"weight": keys},
        ),
        Table(
            "mask",
            {"position": queries["position"], "visible": focus.visible},
            {"visible": keys},
        ),
    )


def heads_tables(reading: Reading) -> tuple[Table, ...]:
    """All heads: their roles, and their thumbnails in the 8 bits in which they are kept.

    A value of a thumbnail is round(255 · √(largest weight in the bin)).
    """
    config, thumbnails = reading.info.config, reading.thumbnails
    layer, head = np.indices((config.n_layer, config.n_head)).reshape(2, -1)
    names = [reading.roles.name(*at) or "mixed" for at in zip(layer, head, strict=True)]
    scores: dict[str, Column] = {
        role: score.ravel() for role, score in reading.roles.scores.items()
    }
    peaks = thumbnails.peaks.copy()
    np.maximum(peaks[..., 0], thumbnails.first, out=peaks[..., 0])
    n_bins = peaks.shape[2]
    at = np.indices(peaks.shape[:3]).reshape(3, -1)
    first = np.arange(n_bins) * thumbnails.bin_size
    rows = {"layer": at[0], "head": at[1], "first_query": first[at[2]]}
    return (
        Table("roles", {"layer": layer, "head": head, "role": names, **scores}),
        Table(
            "thumbnails",
            {**rows, "peak": peaks.reshape(-1, n_bins)},
            {"peak": [f"from key {key} on" for key in first]},
        ),
    )


def candidate_tables(reading: Reading, stages: Stages) -> tuple[Table, ...]:
    """What could follow: the whole vocabulary, from the most to the least probable."""
    order = stages.order
    columns: dict[str, Column] = {
        "rank": np.arange(1, len(order) + 1),
        **vocabulary_columns(order, reading.info.vocabulary, "token"),
        "logit": stages.logits[order],
        "plain_softmax": stages.plain_probs[order],
        "after_temperature": stages.scaled_probs[order],
        "in_top_k": stages.in_top_k[order],
        "in_top_p": stages.in_top_p[order],
        "probability": stages.probs[order],
    }
    return (Table("candidates", columns),)


def loss_tables(reading: Reading, summary: LossSummary) -> tuple[Table, ...]:
    """What each token cost; the first has no loss (nan) and no rank (0)."""
    loss = reading.session.loss
    has_loss = ~np.isnan(loss)
    columns = {
        **_read(reading),
        "nats": loss,
        "bits": bits(loss),
        "probability": probabilities(loss),
        "rank": np.where(has_loss, reading.session.rank + 1, 0),
    }
    whole = {
        "tokens": summary.n_tokens,
        "characters": summary.n_characters,
        "nats_per_token": summary.mean,
        "bits_per_token": summary.bits_per_token,
        "perplexity": summary.perplexity,
        "nats_per_character": summary.nats_per_character,
        "bits_per_character": summary.bits_per_character,
    }
    return Table("tokens", columns), _one_row("text", whole)


def lens_tables(reading: Reading, lens: Lens) -> tuple[Table, ...]:
    """What each depth would answer: a row for each position that was read."""
    vocabulary = reading.info.vocabulary
    depths = ["embedding", *(f"layer {layer}" for layer in range(lens.n_layer))]
    text = vocabulary_columns(lens.top.T.ravel(), vocabulary, "top")["top"]
    by_depth = {
        "top_id": lens.top.T,
        "top": np.array(text, np.str_).reshape(lens.top.T.shape),
        "top_probability": lens.top_probability.T,
        "target_probability": lens.target_probability.T,
        "target_rank": lens.target_rank.T + 1,
    }
    columns = {
        **_read(reading),
        **vocabulary_columns(lens.target, vocabulary, "target"),
        "target_follows": lens.follows,
        **by_depth,
    }
    known = {name: np.asarray(column)[lens.known] for name, column in columns.items()}
    return (Table("lens", known, dict.fromkeys(by_depth, depths)),)


def residual_tables(stream: Stream, shares: Attribution | None) -> tuple[Table, ...]:
    """What each part added: its length, its cosine with the end, its share of the logit.

    Layer and head are −1 where a part has none; what a part has not is nan.
    """
    rows: list[tuple[str, int, int, float, float, float]] = []

    def add(part: str, added: Added, layer: int = -1, head: int = -1, name: str = "") -> None:
        at = tuple(each for each in (layer, head) if each >= 0)
        share = getattr(shares, name or part, None)
        share = _NOTHING if share is None else float(np.asarray(share)[at])
        rows.append((part, layer, head, float(added.lengths[at]), float(added.cosines[at]), share))

    add("token", stream.token)
    if stream.place is not None:
        add("position", stream.place, name="place")
    for layer in range(stream.n_layer):
        for head in range(stream.n_head):
            add("head", stream.heads, layer, head, "heads")
        if stream.bias is not None:
            add("attention bias", stream.bias, layer, name="bias")
        add("attention", stream.attention, layer)
        add("mlp", stream.mlp, layer)
    for layer, (length, cosine) in enumerate(
        zip(stream.residual.lengths[1:], stream.residual.cosines[1:], strict=True)
    ):
        rows.append(("residual after", layer, -1, float(length), float(cosine), _NOTHING))
    if shares is not None and shares.norm_bias is not None:
        rows.append(("final norm bias", -1, -1, _NOTHING, _NOTHING, shares.norm_bias))
    part, layers, heads, *figures = zip(*rows, strict=True)
    columns: dict[str, Column] = {"part": part, "layer": np.array(layers), "head": np.array(heads)}
    names = ("length", "cosine", "share_of_logit")
    columns |= {name: np.array(each) for name, each in zip(names, figures, strict=True)}
    tables = [Table("parts", columns)]
    if shares is not None:
        whole = {
            "token_id": shares.token_id,
            "sum": shares.total,
            "sum_after_cap": shares.bent,
            "logit": shares.logit,
        }
        tables.append(_one_row("logit", whole))
    return tuple(tables)


def cell_tables(reading: Reading, cell: CellArithmetic) -> tuple[Table, ...]:
    """One weight: its numbers, its features, the whole row, and what reached the residual."""
    whole = {
        "layer": cell.layer,
        "head": cell.head,
        "query": cell.query,
        "key": cell.key,
        "dot": cell.dot,
        "scale": cell.scale,
        "scaled": cell.scaled,
        "after_cap": cell.bent,
        "alibi": cell.lowering,
        "score": cell.score,
        "row_maximum": cell.row_maximum,
        "row_sum": cell.row_sum,
        "weight": cell.weight,
        "difference": cell.difference,
        "length_added": cell.length,
        "cosine_with_final": _NOTHING if cell.cosine is None else cell.cosine,
    }
    features: dict[str, Column] = {
        "feature": np.arange(len(cell.q)),
        "q": cell.q,
        "k": cell.k,
        "product": cell.products,
        "mix": cell.mix,
    }
    row: dict[str, Column] = {
        **_read(reading),
        "visible": cell.visible,
        "score": cell.scores,
        "exponential": cell.exponentials,
        "weight": cell.weights,
        "weight_shown": cell.shown,
        "v": cell.values,
    }
    names = [f"feature {feature}" for feature in range(len(cell.q))]
    added: dict[str, Column] = {
        "component": np.arange(len(cell.contribution)),
        "added": cell.contribution,
    }
    return (
        _one_row("cell", whole),
        Table("features", features),
        Table("row", row, {"v": names}),
        Table("residual", added),
    )


def code_tables(code: EngineCode) -> tuple[Table, ...]:
    """Each line of the engine with its shapes; the comparison with torch's fused kernel."""
    lines = list(code.lines())
    columns: dict[str, Column] = {
        "function": [name for name, _line in lines],
        "line": np.array([line.statement.first for _name, line in lines]),
        "text": [line.statement.text for _name, line in lines],
        "shapes": [line.said() for _name, line in lines],
    }
    call = {
        "layer": code.layer,
        "query": code.query,
        "first_query": code.rows.start,
        "queries": len(code.rows),
    }
    tables = [Table("lines", columns), _one_row("call", call)]
    if code.fused is not None:
        fused = code.fused
        whole: dict[str, float | np.float32] = {
            "difference": fused.difference,
            "head": fused.head,
            "position": fused.position,
            "feature": fused.feature,
            "mix": fused.mix,
            "mix_fused": fused.fused,
            "largest_value": fused.largest_value,
            "most": fused.most,
        }
        tables.append(_one_row("fused_kernel", whole))
    return tuple(tables)


def format_tables(reading: Reading, consequence: Consequence | None) -> tuple[Table, ...]:
    """How the weights are held, and how far the predictions are from float32's if compared."""
    held = reading.info.held
    columns: dict[str, Column] = {
        "number_format": [held.number_format],
        "arithmetic": [held.how],
        "device": [held.device],
        "weights": np.array([reading.info.n_parameters]),
        "bytes": np.array([held.n_bytes]),
        "bytes_in_float32": np.array([4 * reading.info.n_parameters]),
    }
    tables = [Table("held", columns)]
    if consequence is not None:
        known: dict[str, Column] = {
            "tokens": np.array([consequence.n_tokens]),
            "difference": np.array([consequence.difference]),
            "position": np.array([consequence.position]),
            **vocabulary_columns(
                np.array([consequence.token_id]), reading.info.vocabulary, "token"
            ),
            "probability": np.array([consequence.probability]),
            "probability_in_float32": np.array([consequence.in_float32]),
            "top_tokens_changed": np.array([consequence.n_top_changed]),
            "nats_per_token": np.array([consequence.loss]),
            "nats_per_token_in_float32": np.array([consequence.loss_in_float32]),
        }
        tables.append(Table("against_float32", known))
    return tuple(tables)


def time_tables(reading: Reading) -> tuple[Table, ...]:
    """Where the text stands, and how its next token is drawn."""
    sampling = reading.sampling
    whole = {
        "tokens_shown": reading.cursor,
        "tokens": len(reading.document),
        "prompt": reading.document.n_prompt,
        "generated": len(reading.document) - reading.document.n_prompt,
        "seen_by_the_model": reading.n_tokens,
        "context": reading.info.config.max_seq_len,
        "fallen_out": reading.n_fallen,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
    }
    return (_one_row("time", whole),)


def pass_tables(reading: Reading) -> tuple[Table, ...]:
    """Every pass so far: what it computed, kept and threw away, what the cache held, how long.

    And what each layer of the cache holds now.
    """
    stats = reading.stats
    thrown = [0, *(thrown_between(*pair) for pair in pairwise(stats))]
    columns: dict[str, Column] = {
        "pass": np.arange(1, len(stats) + 1),
        "tokens": np.array([each.n_tokens for each in stats], np.int64),
        "rows_computed": np.array([each.n_computed for each in stats], np.int64),
        "rows_kept": np.array([each.n_kept for each in stats], np.int64),
        "rows_thrown_away": np.array(thrown[: len(stats)], np.int64),
        "seconds": np.array([each.seconds for each in stats], np.float64),
        "cache_bytes": np.array([each.cache_bytes for each in stats], np.int64),
        "cache_on": np.array([each.cached for each in stats], np.bool_),
        "window": np.array([each.window for each in stats], np.int64),
        "first_positions": np.array([each.sinks for each in stats], np.int64),
        "reason": [each.reason for each in stats],
    }
    held = np.array(reading.cache_layer_bytes, np.int64)
    layers: dict[str, Column] = {"layer": np.arange(len(held)), "bytes_held": held}
    return Table("passes", columns), Table("layers", layers)


def comparison_tables(comparison: Comparison) -> tuple[Table, ...]:
    """Both runs along their slots; nan where there is no weight, no difference or no token."""
    slots = np.arange(len(comparison))
    keys = [f"on slot {slot}" for slot in slots]
    there = [
        (places != ABSENT)[:, None] & (places != ABSENT)
        for places in (comparison.alignment.a, comparison.alignment.b)
    ]
    squares = {
        "weight_a": np.where(there[0], comparison.weights_a, np.float32(_NOTHING)),
        "weight_b": np.where(there[1], comparison.weights_b, np.float32(_NOTHING)),
        "difference": np.where(comparison.exists, comparison.difference, np.float32(_NOTHING)),
    }
    axis: dict[str, Column] = {"slot": slots}
    losses = comparison.losses
    for name, reading, places in (
        ("a", comparison.a, comparison.alignment.a),
        ("b", comparison.b, comparison.alignment.b),
    ):
        tokens, ids = seen_tokens(reading), reading.session.token_ids
        axis[f"position_{name}"] = places
        axis |= token_columns(
            [ABSENT if at == ABSENT else int(ids[at]) for at in places.tolist()],
            [b"" if at == ABSENT else tokens[at] for at in places.tolist()],
            f"token_{name}",
        )
    cost: dict[str, Column] = {
        "run": ["a", "b"],
        "tokens": np.array([each.n_tokens for each in losses]),
        "nats_per_token": np.array([each.mean for each in losses]),
        "bits_per_token": np.array([each.bits_per_token for each in losses]),
        "bits_per_character": np.array([each.bits_per_character for each in losses]),
    }
    tables = [Table("slots", axis), Table("loss", cost)]
    for name, square in squares.items():
        tables.append(Table(name, {"slot": slots, name: square}, {name: keys}))
    following = comparison.next_tokens
    if following is not None:
        columns: dict[str, Column] = {
            "id_a": following.id_a,
            "id_b": following.id_b,
            "token": [token.decode("utf-8", "backslashreplace") for token in following.tokens],
            "token_hex": [token.hex() for token in following.tokens],
            "probability_a": following.prob_a,
            "probability_b": following.prob_b,
            "difference": following.difference,
        }
        tables.append(Table("next_token", columns))
    return tuple(tables)


def mask_tables(losses: dict[Conditions, float]) -> tuple[Table, ...]:
    """The mean losses that the text had, each under its mask."""
    columns: dict[str, Column] = {
        "conditions": [conditions_said(each) for each in losses],
        "nats_per_token": np.array(list(losses.values()), np.float64),
    }
    return (Table("mean_loss", columns),)


def switched_table(reading: Reading) -> Table:
    """Every head, and whether it is off."""
    config, off = reading.info.config, reading.conditions.heads_off
    layer, head = np.indices((config.n_layer, config.n_head)).reshape(2, -1)
    is_off = [at in off for at in zip(layer.tolist(), head.tolist(), strict=True)]
    return Table("switches", {"layer": layer, "head": head, "off": np.array(is_off)})


def intact_tables(reading: Reading, intact: Intact) -> tuple[Table, ...]:
    """The text with all heads on beside the text as it is shown; p by the plain softmax."""
    stages = reading.stages
    if stages is None:
        return ()
    on, now = log_probabilities(intact.logits), log_probabilities(stages.logits)
    order = np.argsort(-on, kind="stable")
    candidates: dict[str, Column] = {
        **vocabulary_columns(order, reading.info.vocabulary, "token"),
        "logit_all_on": intact.logits[order],
        "logit_now": stages.logits[order],
        "probability_all_on": np.exp(on)[order],
        "probability_now": np.exp(now)[order],
    }
    losses: dict[str, Column] = {
        **_read(reading),
        "nats_all_on": intact.loss,
        "nats_now": reading.session.loss,
    }
    whole = {"position": intact.position, "divergence_nats": divergence(on, now)}
    return (
        Table("candidates", candidates),
        Table("tokens", losses),
        _one_row("moved", whole),
    )


def effect_tables(effects: Effects) -> tuple[Table, ...]:
    """What each head does: the measured ones, those that move the answer most first."""
    heads = effects.ranked("answer")
    layer, head = (np.array([at[axis] for at in heads], np.int64) for axis in (0, 1))
    shown, at = effects.shown, (layer, head)
    columns: dict[str, Column] = {
        "layer": layer,
        "head": head,
        "divergence_nats": effects.divergence[at],
        "nats_per_token": effects.loss[at],
        "change_of_nats_per_token": effects.scores("loss")[at],
        "logit": effects.logit[at],
        "change_of_logit": effects.logit[at] - shown.logit,
        "probability": effects.probability[at],
        "change_of_probability": effects.probability[at] - shown.probability,
        "top_token_id": effects.top[at],
    }
    whole = {
        "position": effects.position,
        "token_id": effects.token_id,
        "off_by": effects.off_by,
        "heads_measured": effects.n_measured,
        "heads": effects.n_heads,
        "nats_per_token": shown.loss,
        "logit": shown.logit,
        "probability": shown.probability,
        "top_token_id": shown.top,
    }
    return Table("heads", columns), _one_row("shown", whole)


def check_tables(reading: Reading, check: CacheCheck | None) -> tuple[Table, ...]:
    """What was measured; nan where nothing was."""
    measured = reading.checks
    known = check if check is not None and check.n_tokens == reading.n_tokens else None
    whole = {
        "row_sum_error": measured.row_sum_error,
        "masked_weight": measured.masked_weight,
        "all_finite": measured.all_finite,
        "cached_minus_full_logits": known.logits if known else _NOTHING,
        "cached_minus_full_weights": known.weights if known else _NOTHING,
    }
    return (_one_row("checks", whole),)


def prompt_tables(reading: Reading) -> tuple[Table, ...]:
    """The text as tokens; those that have fallen out of the context have no loss."""
    document, cursor, n_prefix = reading.document, reading.cursor, reading.n_prefix
    loss = np.full(cursor, np.nan, np.float32)
    loss[reading.n_fallen :] = reading.session.loss
    index = np.arange(cursor)
    columns: dict[str, Column] = {
        "index": index,
        **token_columns(document.token_ids[:cursor], document.tokens[:cursor]),
        "before_the_text": (index >= reading.n_fallen) & (index < reading.n_fallen + n_prefix),
        "generated": document.generated[:cursor],
        "fallen_out": index < reading.n_fallen,
        "nats": loss,
    }
    return (Table("tokens", columns),)


def _one_row(name: str, values: Mapping[str, float | np.float32 | str]) -> Table:
    columns: dict[str, NDArray[np.generic]] = {
        each: np.array([value]) for each, value in values.items()
    }
    return Table(name, columns)


def leak_tables(trials: LeakTrials) -> tuple[Table, ...]:
    """The losses of all tokens under each trial, and what each trial came to."""
    named = [f"trained_{each.trained_mask}_mask_{each.mask}" for each in trials.trials]
    losses: dict[str, Column] = {
        "position": np.arange(len(trials.tokens)),
        "token": [token.decode("utf-8", "backslashreplace") for token in trials.tokens],
        **{f"nats_{name}": each.loss for name, each in zip(named, trials.trials, strict=True)},
    }
    came_to: dict[str, Column] = {
        "trained_mask": [each.trained_mask for each in trials.trials],
        "mask": [each.mask for each in trials.trials],
        "nats_per_token": np.array([each.mean_loss for each in trials.trials]),
        "layer": np.array([each.head[0] for each in trials.trials]),
        "head": np.array([each.head[1] for each in trials.trials]),
        "weight_on_answer": np.array([each.answer_weight for each in trials.trials]),
        "continuation": [each.continuation for each in trials.trials],
    }
    return Table("tokens", losses), Table("trials", came_to)


def scheme_tables(readings: SchemeReadings) -> tuple[Table, ...]:
    """A row for each token, and one for each scheme."""
    each = readings.readings
    names = [reading.positions for reading in each]
    tokens: dict[str, Column] = {
        "position": np.arange(len(readings.tokens)),
        "token": [token.decode("utf-8", "backslashreplace") for token in readings.tokens],
        "changed_token": [
            token.decode("utf-8", "backslashreplace") for token in readings.changed_tokens
        ],
        "nats": np.stack([reading.loss for reading in each], axis=1),
        "changed_nats": np.stack([reading.changed_loss for reading in each], axis=1),
    }
    moved = np.stack([reading.moved for reading in each])
    schemes: dict[str, Column] = {
        "positions": names,
        "nats_per_token": np.array([reading.mean_loss for reading in each]),
        "changed_nats_per_token": np.array([reading.changed_mean_loss for reading in each]),
        "probability_change": np.array([reading.probability_change for reading in each]),
        "moved": moved,
    }
    depths = ["embedding", *(f"layer {layer}" for layer in range(moved.shape[1] - 1))]
    return (
        Table("tokens", tokens, {"nats": names, "changed_nats": names}),
        Table("schemes", schemes, {"moved": depths}),
    )
