"""How a run stands, in words."""

import math
from typing import Any

from gui.library.pace import duration_text
from gui.training.run import TrainingRun
from gui.words.names import plain


def row_words(run: TrainingRun) -> str:
    """A run's row in the list."""
    if run.phase == "recorded":
        return run.title
    share = f" {run.step / run.steps:.0%}" if run.phase not in {"finished", "starting"} else ""
    return f"{run.title} ({run.phase}{share})"


def state_words(run: TrainingRun) -> str:
    """One line on how far a run is and how it goes on."""
    if run.phase == "recorded":
        return f"A recorded training of {run.steps:,} steps."
    parts = [f"{run.phase.capitalize()}: step {run.step:,} of {run.steps:,}"]
    if run.phase == "running" and not math.isnan(run.tokens_per_second):
        parts.append(f"{run.tokens_per_second:,.0f} tokens per second")
        parts.append(f"{duration_text(run.seconds_left)} left")
    if run.phase in {"paused", "stopped"}:
        parts.append("saved; it can go on")
    line = " · ".join(parts)
    return f"{line}. {run.sentence}".strip() if run.sentence else f"{line}."


def about_words(run: TrainingRun) -> str:
    """What is trained on what."""
    if run.about is None:
        return " · ".join(_recorded(run.model))
    plan = run.about.plan
    weights = f"{run.n_parameters:,} weights" if run.n_parameters else ""
    tokens = "characters" if plan.tokenizer == "characters" else "byte-level BPE"
    parts = [
        run.about.data_title,
        tokens,
        f"{_count(plan.n_layer, 'layer')} × {_count(plan.n_head, 'head')}",
        f"width {plan.d_model}",
        f"context {plan.context}",
        f"positions {plan.positions}",
        f"mask {plan.mask}",
        f"seed {plan.seed}",
        weights,
    ]
    return " · ".join(filter(None, parts))


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _recorded(model: dict[str, Any]) -> list[str]:
    """The same of a model that was trained elsewhere, as far as its folder says it."""
    named = {
        "layers": model.get("n_layer"),
        "heads": model.get("n_head"),
        "width": model.get("d_model"),
        "context": model.get("max_seq_len"),
        "vocabulary": model.get("vocab_size"),
        "positions": model.get("positions"),
    }
    return [plain(f"{name} {value}") for name, value in named.items() if value is not None]
