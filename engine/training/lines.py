"""A training told as lines of JSON, for a program that watches it; without torch.

Each line is an object with an "event":

- "stage": a `sentence` on what is done before the first step;
- "began": whether it `is_new`, the `step` that it goes on from, the `vocab_size`, and the
  watched text as `token_ids` and `tokens` (hexadecimal bytes);
- "steps": the `losses` since the last such line, and where it stands now: `step`, `tokens`,
  `tokens_per_second`, `seconds_left`;
- "moment": a look at the model, as `engine.training.record` has it;
- "saved", "paused", "resumed", "stopped": at which `step`;
- "finished": the whole held-out text's `per_token` and `per_character`, in nats;
- "failed": a `sentence`.

`follow` makes of them the record that the training itself keeps.
"""

import base64
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.training.record import Floats, HeldOutLoss, Moment, Progress, TrainingRecord

Event = dict[str, Any]


def to_line(event: str, **facts: Any) -> str:  # noqa: ANN401 - what JSON can say
    """One event as one line, without its end."""
    return json.dumps({"event": event, **facts}, allow_nan=False)


def from_line(line: str) -> Event | None:
    """The event of a line; None where it is none, such as a library's own word."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def began_facts(record: TrainingRecord) -> Event:
    """What "began" says of the watched text."""
    return {"token_ids": record.token_ids, "tokens": [token.hex() for token in record.tokens]}


def steps_facts(losses: Sequence[float], progress: Progress) -> Event:
    """What "steps" says: the losses of some steps, the last of which came to `progress`."""
    return {
        "losses": list(losses),
        "step": progress.step,
        "tokens": progress.tokens,
        "tokens_per_second": progress.tokens_per_second,
        "seconds_left": progress.seconds_left,
    }


def moment_facts(moment: Moment) -> Event:
    """What "moment" says; patterns in float16, as on disk."""
    roles = [
        None if math.isnan(score) else score for score in moment.roles.ravel().tolist()
    ]  # JSON knows no NaN
    patterns = moment.patterns.astype("<f2")
    return {
        "step": moment.step,
        "tokens": moment.tokens,
        "per_token": moment.held_out.per_token,
        "per_character": moment.held_out.per_character,
        "repeat_loss": moment.repeat_loss,
        "sample": moment.sample,
        "roles": roles,
        "shape": patterns.shape,
        "patterns": base64.b64encode(patterns.tobytes()).decode("ascii"),
    }


def follow(record: TrainingRecord | None, event: Event) -> TrainingRecord | None:
    """The record after one more event; None until "began" was heard.

    A training that goes on from a step lets go of what was known beyond it.
    """
    kind = event["event"]
    if kind == "began":
        if record is not None and not event["is_new"]:
            return record.until(event["step"])
        tokens = tuple(bytes.fromhex(token) for token in event["tokens"])
        return TrainingRecord(tuple(event["token_ids"]), tokens)
    if record is None:
        return None
    if kind == "steps":
        return record.with_losses(event["losses"])
    if kind == "moment":
        return record.with_moment(_moment(event))
    return record


def _moment(event: Event) -> Moment:
    n_layer, n_head, *_square = shape = tuple(event["shape"])
    first, second = event["repeat_loss"]
    roles = [math.nan if score is None else score for score in event["roles"]]
    return Moment(
        step=event["step"],
        tokens=event["tokens"],
        held_out=HeldOutLoss(per_token=event["per_token"], per_character=event["per_character"]),
        roles=np.array(roles, np.float32).reshape(-1, n_layer, n_head),
        patterns=_floats(event["patterns"]).reshape(shape),
        repeat_loss=(first, second),
        sample=event["sample"],
    )


def _floats(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), "<f2").astype(np.float32)
