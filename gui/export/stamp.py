"""What was read and how: what an exported picture or table must say to be repeated. No Qt."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import engine
from engine.conditions import Conditions
from engine.reading import Reading
from engine.sampling import Sampling
from engine.tokenizers.utf8 import to_text

VERSION = engine.__version__
PROGRAM = f"Attention Scope {VERSION}"

Fact = str | int | float | bool


@dataclass(frozen=True)
class Stamp:
    """Names and values, in the order in which they are written; and the same in one line."""

    facts: Mapping[str, Fact]
    captions: tuple[str, ...]  # without the text that was read, in fewer and fewer letters
    text: str  # that was read, on one line

    def texts(self) -> dict[str, str]:
        """The facts as one printable line each."""
        return {name: one_line(value) for name, value in self.facts.items()}

    def description(self) -> str:
        """All facts as lines of text."""
        return "\n".join(f"{name}: {value}" for name, value in self.texts().items())


def stamp_of(reading: Reading, panel: str) -> Stamp:
    """The stamp of what the panel with this title shows of a reading."""
    info, sampling, focus = reading.info, reading.sampling, reading.focus
    text = to_text(b"".join(reading.document.spelled[: reading.cursor]))
    facts: dict[str, Fact] = {
        "program": PROGRAM,
        "panel": panel,
        "model": info.name,
        "number_format": info.held.title,
        "text": text,
        "tokens_before_text": reading.document.n_prefix,
        "tokens": reading.n_tokens,
        "tokens_fallen_out": reading.n_fallen,
        "layer": focus.layer,
        "head": focus.head,
        "query": reading.position,
        "conditions": conditions_said(reading.conditions),
        "kv_cache": reading.use_cache,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
    }
    name, said = one_line(info.name), conditions_said(reading.conditions)
    drawn = f"temperature {sampling.temperature:g}{_narrowed(sampling)}"
    captions = (
        f"{name} · {said} · {drawn}, seed {sampling.seed} · {PROGRAM}",
        f"{name} · {said} · T {sampling.temperature:g}, seed {sampling.seed} · v{VERSION}",
        f"{name} · {said} · seed {sampling.seed} · v{VERSION}",
    )
    return Stamp(facts, captions, one_line(text))


def conditions_said(conditions: Conditions) -> str:
    """The mask, the heads that are off, and whether positions are supplied, in words."""
    said = {"causal": "causal mask", "none": "no mask"}.get(conditions.mask, "")
    if not said:
        first = f"first {conditions.sinks} + " if conditions.sinks else ""
        said = f"{first}window of {conditions.window}"
    if conditions.heads_off:
        off = ", ".join(f"L{layer} H{head}" for layer, head in sorted(conditions.heads_off))
        by = " by their mean" if conditions.off_by == "mean" else ""
        said += f", off{by}: {off}"
    return said if conditions.positions else f"{said}, no positions"


def _narrowed(sampling: Sampling) -> str:
    top_k = f", top_k {sampling.top_k}" if sampling.top_k else ""
    return f"{top_k}, top_p {sampling.top_p:g}" if sampling.top_p < 1 else top_k


def one_line(value: Fact) -> str:
    """A value on one line: in a text, what cannot be printed is escaped as JSON does it."""
    if not isinstance(value, str):
        return json.dumps(value)
    shown = (c if c.isprintable() and c != "\\" else json.dumps(c)[1:-1] for c in value)
    return "".join(shown)
