"""What may be seen to predict a token, in strips and sentences; decides no number."""

from collections.abc import Sequence
from math import exp, isnan

import numpy as np
from numpy.typing import NDArray

from engine.windows.visibility import Prediction, Visibility
from gui.widgets.candidate_text import percent, token_label
from gui.widgets.lettering import quoted
from gui.widgets.sight import Sight
from gui.widgets.strip_table import Strip
from gui.widgets.verdict import GLYPHS, verdict_of
from gui.words.window_strips import loss_strip


def state_title(number: int | None) -> str:
    """What a state is called."""
    return "Training" if number is None else f"Predict token {number}"


def too_short(number: int, n_tokens: int) -> str:
    """Why a token cannot be predicted yet."""
    has = f"{n_tokens} token{'' if n_tokens == 1 else 's'}"
    return f"The text has {has}; token {number} needs {number - 1} before it. Type some more."


# One token


def prediction_strips(
    visibility: Visibility,
    prediction: Prediction,
    weights: NDArray[np.float32] | None,
    at: tuple[int, int],
) -> list[Strip]:
    """What may be seen, what the token costs, and where a head looks to predict it."""
    number, n_tokens = prediction.number, visibility.n_tokens
    texts = [_sight_said(share) for share in prediction.seen.tolist()]
    sight = Sight.of(visibility.conditions, n_tokens, prediction.query)
    said = _seen_said(prediction, n_tokens)
    wordings = (f"predict token {number}: {said}", f"token {number}: {said}", f"token {number}")
    strips = [Strip(wordings, texts=texts, held=prediction.seen.astype(np.float64), sight=sight)]
    if number <= n_tokens:
        loss = np.full(n_tokens, np.nan, np.float32)
        loss[number - 1] = prediction.loss
        cost = f"{prediction.loss:.2f} nats"
        strips.append(loss_strip((f"what token {number} costs: {cost}", cost), loss))
    if weights is not None:
        layer, head = at
        looks = f"where token {number - 1} looks"
        words = f"layer {layer}, head {head}: {looks}, to predict what follows"
        short = f"L{layer} H{head}: {looks}"
        fill = np.where(prediction.seen > 0, weights, np.nan)
        texts = ["" if isnan(each) else f"{each:.2f}" for each in fill.tolist()]
        strips.append(Strip((words, short, f"L{layer} H{head}"), fill, texts, "weights"))
    return strips


def _sight_said(share: float) -> str:
    if share in {0, 1}:
        return "may be seen" if share else "hidden"
    return f"may be seen in {share:.0%} of the layers"


def _seen_said(prediction: Prediction, n_tokens: int) -> str:
    """Which tokens the query may see, counted from 1."""
    n_before = prediction.number - 1
    seen = prediction.seen > 0
    if seen[n_before:].any():
        return f"all {n_tokens} can be seen, it and what follows among them"
    before = int(seen[:n_before].sum())
    if before < n_before:
        return f"{before} of tokens 1 to {n_before} can be seen, nothing after"
    return f"tokens 1 to {n_before} can be seen, nothing after"


def guess_said(
    prediction: Prediction, labels: Sequence[str], vocabulary: Sequence[bytes]
) -> tuple[str, ...]:
    """What the model expects there, and what it makes of the token that stands there."""
    number = prediction.number
    tops = [
        f"{quoted(token_label(vocabulary, token_id))} {percent(share)}"
        for token_id, share in prediction.top
    ]
    if isnan(prediction.loss):
        there = f"Token {number} is not written yet."
    else:
        share = percent(exp(-prediction.loss))
        name = quoted(labels[number - 1])
        there = f"{name} stands there: {share}, {prediction.loss:.2f} nats."
    return (
        f"The model expects {', '.join(tops)} as token {number}, at position {number - 1}. {there}",
        f"The model expects {', '.join(tops)} as token {number}. {there}",
        f"Expected: {', '.join(tops)}. {there}",
        f"Expected: {tops[0]}. {there}",
        there,
    )


def alone_said(prediction: Prediction) -> tuple[str, ...]:
    """Whether what stands after a token made a difference to its prediction."""
    number, glyph = prediction.number, GLYPHS[verdict_of(not prediction.is_apart)]
    n_before = prediction.number - 1
    if prediction.is_apart:
        said = (
            f"{glyph} A pass over tokens 1 to {n_before} alone predicts something else: logits "
            f"differ by up to {prediction.apart:.2g}. What stands from token {number} on was used."
        )
        return said, f"{glyph} Tokens 1 to {n_before} alone: {prediction.apart:.2g} apart."
    said = (
        f"{glyph} A pass over tokens 1 to {n_before} alone predicts the same: no logit differs by "
        f"more than {prediction.apart:.1e}. Nothing from token {number} on was used."
    )
    return said, f"{glyph} Tokens 1 to {n_before} alone give the same, to {prediction.apart:.1e}."


# Training


def training_strips(visibility: Visibility) -> list[Strip]:
    """The losses of all positions, and the mask that all of them are under."""
    n_more = visibility.n_tokens - 1
    sight = Sight.of(visibility.conditions, visibility.n_tokens, None)
    each = "each token from those before it"
    if not visibility.conditions.append_only:
        each = "each token from all of them, itself included"
    many = f"{n_more:,} prediction{'' if n_more == 1 else 's'}"
    wordings = (f"training: {many} in one pass, {each}", f"{many} in one pass", "training")
    nothing = np.full(visibility.n_tokens, np.nan)
    counts = ["", *(f"{count:,}" for count in visibility.n_seen[1:].tolist())]
    words = ("how many tokens each is predicted from", "predicted from so many", "from so many")
    return [loss_strip(wordings, visibility.loss, sight=sight), Strip(words, nothing, counts)]


def training_said(visibility: Visibility) -> tuple[str, ...]:
    """What all positions together are for."""
    if isnan(visibility.mean):
        return ("One token has none before it: there is nothing to predict yet.",)
    n_more, mean = visibility.n_tokens - 1, f"{visibility.mean:.3f} nats per token"
    if visibility.conditions.append_only:
        how = "every position predicts the token after it, under one mask"
    else:
        how = "every position predicts the token after it, which it may see: the answer leaks"
    return (
        f"In one pass {how}. Training lowers the mean of these {n_more:,} losses, {mean}.",
        f"Training lowers the mean of {n_more:,} losses, {mean}.",
        f"{mean}.",
    )


def all_alone_said(visibility: Visibility) -> tuple[str, ...]:
    """The same as `alone_said` of every token that was tried."""
    tried = visibility.predictions
    if not tried:
        return ("",)
    names = " and ".join(str(each.number) for each in tried)
    which = f"token {names}" if len(tried) == 1 else f"tokens {names}"
    apart = max(each.apart for each in tried)
    is_apart = any(each.is_apart for each in tried)
    glyph = GLYPHS[verdict_of(not is_apart)]
    if is_apart:
        said = (
            f"{glyph} Passes over what stands before {which} alone predict something else: logits "
            f"differ by up to {apart:.2g}. What stands after was used."
        )
        return said, f"{glyph} {which}: {apart:.2g} apart."
    said = (
        f"{glyph} Passes over what stands before {which} alone predict the same: no logit differs "
        f"by more than {apart:.1e}."
    )
    return said, f"{glyph} {which}: the same, to {apart:.1e}."
