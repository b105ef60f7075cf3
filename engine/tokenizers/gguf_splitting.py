"""How byte-level vocabularies of GGUF files cut a text before they merge its bytes."""

from dataclasses import dataclass

from engine.errors import TokenizerError


@dataclass(frozen=True)
class Splitting:
    """The patterns that cut a text, one after the other: each match is a piece of its own."""

    patterns: tuple[str, ...]
    names: tuple[str, ...]  # in files' tokenizer.ggml.pre
    whole_words: bool = False  # a word that is a token is not merged from its bytes
    begins: bool = False  # texts begin with a token of their own where a file does not say


_GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA_3 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}"
_QWEN_2 = rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}"
_QWEN_35 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}|"
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_CASED = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*|"
    rf"\p{{N}}|{_CASED}"
)
_GPT_4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_CONTRACTION}?|"
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_CONTRACTION}?|\p{{N}}{{1,3}}|{_CASED}"
)

_SPLITTINGS = (
    Splitting(
        (_GPT_2,),
        ("gpt-2", "phi-2", "mpt", "olmo", "exaone4", "jais", "trillion", "granite-docling"),
    ),
    Splitting(
        (r"\p{N}", _GPT_2),
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"),
    ),
    Splitting(
        (_LLAMA_3,),
        ("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
        whole_words=True,
        begins=True,
    ),
    Splitting((_LLAMA_3,), ("dbrx", "smaug-bpe", "chatglm-bpe", "glm4")),
    Splitting(
        (_QWEN_2,),
        ("qwen2", "deepseek-r1-qwen", "kormo", "megrez", "stablelm2", "hunyuan", "grok-2"),
    ),
    Splitting((_QWEN_35,), ("qwen35",)),
    Splitting((_TEKKEN,), ("tekken",), whole_words=True, begins=True),
    Splitting((_GPT_4O,), ("gpt-4o", "llama4")),
)
# Files from before early 2024 do not say how they split; each family had one way.
_UNSAID = {"gpt2": "gpt-2", "llama": "llama-bpe", "qwen2": "qwen2", "qwen3": "qwen2"}


def splitting_of(name: object, architecture: object) -> Splitting:
    """The splitting that a file's `tokenizer.ggml.pre` names; None where it names none.

    Raises:
        TokenizerError: the name is not known.
    """
    if name in (None, "default"):
        name = _UNSAID.get(str(architecture), "gpt-2")
    for splitting in _SPLITTINGS:
        if name in splitting.names:
            return splitting
    known = sorted(name for splitting in _SPLITTINGS for name in splitting.names)
    raise TokenizerError(
        f"its vocabulary splits text in the way {name!r}, which is not known here; "
        f"known: {', '.join(known)}."
    )
