"""Trains the small models of the experiments: `python -m resources.models.make NAME [NAME ...]`.

Each is trained in `runs/NAME`, goes on there if it was stopped, and ends as a folder beside this
module with its card. The models of one experiment have all settings in common but one.
"""

import argparse
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.experiments.small_models import SmallModels
from engine.training.command import main as train
from engine.training.record import (
    RECORD_FILE,
    STATE_FILE,
    WATCHED_ROLES,
    Floats,
    Moment,
    load_record,
)
from resources.corpus import PLAYS_FOLDER, held_out_names, play_paths

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNS = ROOT / "runs"

COMMON = (
    "--threads 1 --tokenizer byte-bpe --vocab-size 1024 --n-head 4 --d-model 128",
    "--batch 16 --seq-len 128 --max-seq-len 256",
)
# Sinusoidal vectors are 1 high and a fresh embedding is 0.02; √128 brings the two together, for
# all schemes alike (Vaswani et al. 2017, section 3.4).
ONE_THING = (
    "--embedding-scale 11.3137085 --n-layer 4 --steps 2500 --learning-rate 2e-3 --repeat-share 0",
    "--evaluate-every 100 --evaluate-windows 16",
)
COPYING = (
    "--positions alibi --steps 2000 --copy-steps 1000 --repeat-share 0.3 --learning-rate 1.2e-3",
    "--beta2 0.99 --evaluate-every 50 --evaluate-windows 8",
)

_SCHEME = (
    "One of five models that differ in nothing but how they are told where a token stands; "
    "trained on windows of 128 tokens, it can be asked for 256."
)

DATA = (
    "The plays of Shakespeare as [resources/corpus](../../corpus/README.md) has them (public "
    "domain); of these, *Macbeth* and *Twelfth Night* were held out whole."
)
LICENCE = (
    "The weights are under the project's MIT licence; the text they were trained on is in the "
    "public domain."
)
CARD = """# {name}

{purpose}

{shape}

## Data

{data}

## Training

{training}

```
{command}
```

`{record}` holds what the training looked like from step to step.

## Result

{result}

It writes (temperature 0.8, seed 1; the first 8 tokens are given):

```
{sample}
```

## Licence

{licence}
"""

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Recipe:
    """What a model is for, and the settings that it does not share with all the others."""

    purpose: str
    settings: tuple[str, ...]  # lines of a command

    def words(self, folder: Path) -> list[str]:
        """The command line of the training, behind `python -m engine.training`."""
        data = PLAYS_FOLDER.relative_to(ROOT).as_posix()
        return [
            *("--data", data, "--held-out", *held_out_names(), "--out", folder.as_posix()),
            *" ".join(COMMON).split(),
            *" ".join(self.settings).split(),
        ]


RECIPES = {
    "positions-learned": Recipe(
        f"{_SCHEME} This one has a learned vector for each position.",
        (*ONE_THING, "--positions learned"),
    ),
    "positions-sinusoidal": Recipe(
        f"{_SCHEME} This one has a fixed vector of sines and cosines for each position.",
        (*ONE_THING, "--positions sinusoidal"),
    ),
    "positions-rotary": Recipe(
        f"{_SCHEME} This one turns queries and keys. It is also the honest half of the leak pair.",
        (*ONE_THING, "--positions rotary"),
    ),
    "positions-alibi": Recipe(
        f"{_SCHEME} This one (ALiBi) lowers scores with distance.",
        (*ONE_THING, "--positions alibi"),
    ),
    "positions-none": Recipe(
        f"{_SCHEME} This one is told nothing.",
        (*ONE_THING, "--positions none"),
    ),
    "leak": Recipe(
        "Trained without the causal mask, and else like positions-rotary: every position saw the "
        "token that it had to predict. Its loss is tiny and it cannot write.",
        (*ONE_THING, "--positions rotary --mask none"),
    ),
    "induction-2": Recipe(
        "Two layers, in which copying (induction) heads form: heads of layer 0 bring along what "
        "stood just before, and with that a head of layer 1 finds what came after the present "
        "token last time. The first thousand steps hold nothing but a few tokens over and over.",
        (*COPYING, "--n-layer 2"),
    ),
    "induction-1": Recipe(
        "The same with one layer, which cannot: a copying head needs another one below it.",
        (*COPYING, "--n-layer 1"),
    ),
}


def command(name: str) -> str:
    """The one command that trains a model, in lines for a card."""
    lines = [f"python -m engine.training --data {PLAYS_FOLDER.relative_to(ROOT).as_posix()}"]
    lines[0] += f" --held-out {' '.join(held_out_names())} --out runs/{name}"
    return " \\\n  ".join([*lines, *COMMON, *RECIPES[name].settings])


def card(name: str, folder: Path, figures: Rows = ()) -> str:
    """The model's card: what it is, how it was made, what was measured."""
    stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config, facts = stored["model"], stored["training"]
    moment = load_record(folder / RECORD_FILE).moments[-1]
    return CARD.format(
        name=name,
        purpose=_wrapped(RECIPES[name].purpose),
        shape=_table(_shape(config, facts, folder)),
        data=_wrapped(DATA),
        training=_wrapped(
            f"{facts['tokens']:,} tokens in {facts['step']:,} steps, {facts['seconds']:,} seconds "
            "on one thread of a processor shared with other work. The one command, from the "
            "repository's root:"
        ),
        command=command(name),
        record=RECORD_FILE,
        result=_table((*_result(facts, moment), *figures)),
        sample=moment.sample.strip(),
        licence=_wrapped(LICENCE),
    )


def _shape(config: dict[str, Any], facts: dict[str, Any], folder: Path) -> Rows:
    size = sum(file.stat().st_size for file in folder.iterdir() if file.suffix != ".md")
    is_leaking = facts["settings"]["mask"] == "none"
    weights = f"{facts['parameters']:,}, stored in float16"
    return (
        ("layers × heads", f"{config['n_layer']} × {config['n_head']}"),
        (
            "d_model, d_ff",
            f"{config['d_model']}, {config['d_ff']} ({config['mlp']} MLP, {config['activation']})",
        ),
        ("positions", config["positions"]),
        ("norm", f"{config['norm']} ({config['norm_placement']}-norm)"),
        ("mask in training", "none: a position saw its whole window" if is_leaking else "causal"),
        ("vocabulary", f"{config['vocab_size']} tokens (byte-level BPE of the same plays)"),
        ("context", f"{config['max_seq_len']} tokens"),
        ("weights", f"{weights}; {size / 1e6:.1f} MB with the recorded training"),
    )


def _result(facts: dict[str, Any], moment: Moment) -> Rows:
    per_token, per_character = (
        facts[f"held_out_nats_per_{unit}"] for unit in ("token", "character")
    )
    passage = f"a held-out passage of {moment.patterns.shape[-1] // 2} tokens"
    return (
        ("held-out loss, nats per token", f"{per_token:.4f}"),
        (
            "the same per character",
            f"**{per_character:.4f} nats**, {per_character / math.log(2):.3f} bits",
        ),
        (f"{passage}, the first time", f"{moment.repeat_loss[0]:.2f} nats per token"),
        ("the same again, right after", f"{moment.repeat_loss[1]:.2f} nats per token"),
        *(
            (f"strongest {role} head there", _strongest(scores))
            for role, scores in zip(WATCHED_ROLES, moment.roles, strict=True)
        ),
    )


def _strongest(scores: Floats) -> str:
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return f"layer {layer}, head {head}: {scores.max():.2f}"


def _table(rows: Rows) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _wrapped(text: str, width: int = 118) -> str:
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))


def leak_figures(honest: Path, leaking: Path) -> Rows:
    """The four losses of the pair on a held-out passage."""
    held_out = next(path for path in play_paths() if path.stem == held_out_names()[0])
    text = held_out.read_text(encoding="utf-8")[5000:5500]
    trained = {"causal": "trained with the mask", "none": "trained without the mask"}
    read = {"causal": "mask on", "none": "mask off"}
    return tuple(
        (
            f"*Macbeth*, {trained[each.trained_mask]}, {read[each.mask]}",
            f"{each.mean_loss:.3f} nats per token",
        )
        for each in SmallModels([honest, leaking]).leak(text).trials
    )


def make(name: str, run: Path) -> None:
    """Train a model, or go on with it, and write its folder and card."""
    words = RECIPES[name].words(run)
    if not (run / "last" / "config.json").exists():
        is_begun = (run / STATE_FILE).exists()
        if train([*words, "--resume"] if is_begun else words):
            raise SystemExit(1)
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    for file in (run / "last").iterdir():
        shutil.copyfile(file, folder / file.name)
    figures = leak_figures(HERE / "positions-rotary", folder) if name == "leak" else ()
    (folder / "README.md").write_text(card(name, folder, figures), encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m resources.models.make", description=__doc__)
    parser.add_argument("names", nargs="+", choices=tuple(RECIPES), metavar="NAME")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where the trainings are")
    arguments: Any = parser.parse_args(words)
    for name in arguments.names:
        make(name, arguments.runs / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
