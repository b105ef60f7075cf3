"""Whether a training can begin on some texts, said before anything starts; without torch."""

import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import TrainingError
from engine.sizes import bytes_said
from engine.tokenizers import ByteBpe
from engine.training.data import Texts, read_texts
from engine.training.plan import TrainingPlan, memory_bytes

# Bytes of memory that a byte of text takes, measured on 5 to 15 MB of English.
_BYTES_PER_BYTE = {"characters": 20, "byte-bpe": 250}
_FEW_CHARACTERS = 50_000  # held out; of so few a vocabulary is quickly made, to see if they do
_PART = 2**18  # characters looked at in one go
_LONGEST_RUN = 20_000  # of letters, figures, marks or white space
# What byte-level BPE never cuts between: white space, or letters, figures or marks in one word.
_BLANK = re.compile(rf"\s{{{_LONGEST_RUN}}}")
_RUN = re.compile(
    "|".join(rf"{kind}{{{_LONGEST_RUN}}}" for kind in (r"[^\W\d_]", r"\d", r"[^\w\s]"))
)
_CONTROL = re.compile("[\x01-\x08\x0e-\x1f\x7f]")
_CONTROL_SHARE = 0.01  # a stray one is found in any old text
_N_BYTES = 256  # tokens for single bytes, beside the characters


@dataclass(frozen=True)
class TextFacts:
    """What is known of the texts of a training."""

    n_characters: int  # to learn from
    n_held_out: int  # characters
    vocab_size: int  # at most


def check_texts(
    plan: TrainingPlan,
    paths: Sequence[Path],
    held_out: Sequence[str],
    held_out_share: float,
    available: int | None,
) -> TextFacts:
    """See that files are text, long enough, and fit into `available` bytes with the model.

    `paths`, `held_out` and `held_out_share` are those of `engine.training.data.read_texts`.

    Raises:
        TrainingError: they cannot be trained on, in one sentence that names them.
    """
    name = str(paths[0] if len(paths) == 1 else paths[0].parent)
    n_bytes = sum(map(_n_bytes, paths))
    _check_memory(plan, name, n_bytes, plan.vocab_size, available)
    texts = read_texts(paths, held_out, held_out_share)
    whole = (*texts.training, *texts.held_out)
    if any("\0" in text for text in whole):
        raise TrainingError(f"{name} is not text: there are zero bytes in it; choose a text file.")
    if not any(text.strip() for text in whole):
        raise TrainingError(f"{name} holds nothing but white space; choose one with words in it.")
    n_control = sum(len(_CONTROL.findall(part)) for part in _parts(whole))
    if n_control > _CONTROL_SHARE * sum(map(len, whole)):
        raise TrainingError(
            f"{name} is not text: {n_control:,} of its characters are control characters; choose "
            "a text file."
        )
    if plan.tokenizer == "byte-bpe":
        _check_runs(name, whole)
    facts = TextFacts(
        n_characters=sum(map(len, texts.training)),
        n_held_out=sum(map(len, texts.held_out)),
        vocab_size=plan.vocab_size,
    )
    if plan.tokenizer == "characters":
        facts = TextFacts(
            facts.n_characters, facts.n_held_out, len(_distinct(texts.training)) + _N_BYTES
        )
        _check_memory(plan, name, n_bytes, facts.vocab_size, available)
    _check_length(plan, name, texts, facts)
    return facts


def _check_runs(name: str, texts: Sequence[str]) -> None:
    """See that there are words: making a vocabulary of one endless word takes for ever."""
    if any(map(_has_endless_run, _parts(texts, overlap=_LONGEST_RUN))):
        raise TrainingError(
            f"{name} has more than {_LONGEST_RUN:,} letters without a space or a mark between "
            "them, of which byte-level BPE makes no vocabulary in reasonable time; choose "
            "characters as tokens."
        )


def _has_endless_run(part: str) -> bool:
    words = (word for word in part.split() if len(word) >= _LONGEST_RUN)  # hardly any text has any
    return any(map(_RUN.search, words)) or _BLANK.search(part) is not None


def _distinct(texts: Sequence[str]) -> set[str]:
    """All characters."""
    found: set[str] = set()
    for part in _parts(texts):
        found |= set(part)
    return found


def _parts(texts: Sequence[str], overlap: int = 0) -> Iterator[str]:
    """A part of a text at a time: a window beside this must get its turn."""
    for text in texts:
        for at in range(0, len(text), _PART):
            yield text[at : at + _PART + overlap]


def _n_bytes(path: Path) -> int:
    try:
        found = path.stat()
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist; choose a text file.") from None
    except (OSError, ValueError) as error:  # ValueError: what no path can hold
        why = getattr(error, "strerror", None) or error
        raise TrainingError(f"{path} cannot be read: {why}.") from error
    if stat.S_ISDIR(found.st_mode):
        raise TrainingError(f"{path} is a folder; choose one text file.")
    if not stat.S_ISREG(found.st_mode):
        raise TrainingError(f"{path} is no file on a disk; choose a text file.")
    if not found.st_size:
        raise TrainingError(f"{path} is empty; choose a file with text in it.")
    return found.st_size


def _check_memory(
    plan: TrainingPlan, name: str, n_bytes: int, vocab_size: int, available: int | None
) -> None:
    if available is None:  # nobody knows
        return
    of_text = _BYTES_PER_BYTE[plan.tokenizer] * n_bytes
    of_model = memory_bytes(plan.config(vocab_size))
    free = f"only {bytes_said(available)} of memory are free"
    if of_model > available:
        raise TrainingError(
            f"training a model of these sizes takes about {bytes_said(of_model)}, and {free}; "
            "make width, layers, context or vocabulary smaller."
        )
    if of_text + of_model > available:
        kind = "characters" if plan.tokenizer == "characters" else "byte-level BPE"
        most = max(0, available - of_model) // _BYTES_PER_BYTE[plan.tokenizer]
        raise TrainingError(
            f"{name} has {bytes_said(n_bytes)}, which take about {bytes_said(of_text)} while they "
            f"become {kind}, and {free}; choose a text of at most {bytes_said(most)}."
        )


def _check_length(plan: TrainingPlan, name: str, texts: Texts, facts: TextFacts) -> None:
    """See that both sides have more tokens than the longest window."""
    sides = {
        "to learn from": (texts.training, facts.n_characters),
        "held out to judge by": (texts.held_out, facts.n_held_out),
    }
    longest = plan.settings.longest
    tokens = {side: n_characters for side, (_texts, n_characters) in sides.items()}
    if plan.tokenizer == "byte-bpe" and min(tokens.values()) < _FEW_CHARACTERS:
        tokenizer = ByteBpe.train(texts.training, plan.vocab_size)
        tokens = {
            side: sum(len(tokenizer.encode(text[:_FEW_CHARACTERS])) for text in each)
            for side, (each, _n_characters) in sides.items()
        }
    for side, n_tokens in tokens.items():
        if n_tokens <= longest:
            raise TrainingError(
                f"{name} is too short: it has {n_tokens:,} tokens {side}, and a context of "
                f"{longest} needs more than {longest}; choose a longer text or a smaller context."
            )
