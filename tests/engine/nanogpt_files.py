"""Checkpoints as nanoGPT's training writes them, for tests, and what such a model computes."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

CHARACTERS = "\n !?abcdefé€😀"
N_LAYER, N_HEAD, WIDTH, CONTEXT = 2, 4, 16, 24

Checkpoint = dict[str, Any]
Floats = NDArray[np.float64]


def _norm(*, bias: bool) -> nn.LayerNorm:
    return nn.LayerNorm(WIDTH, bias=bias)


def _layer(*, bias: bool) -> nn.ModuleDict:
    attention = {
        "c_attn": nn.Linear(WIDTH, 3 * WIDTH, bias=bias),
        "c_proj": nn.Linear(WIDTH, WIDTH, bias=bias),
    }
    mlp = {
        "c_fc": nn.Linear(WIDTH, 4 * WIDTH, bias=bias),
        "c_proj": nn.Linear(4 * WIDTH, WIDTH, bias=bias),
    }
    return nn.ModuleDict(
        {
            "ln_1": _norm(bias=bias),
            "attn": nn.ModuleDict(attention),
            "ln_2": _norm(bias=bias),
            "mlp": nn.ModuleDict(mlp),
        }
    )


def parts(vocab_size: int, *, bias: bool) -> nn.ModuleDict:
    """The modules of nanoGPT by their names, with weights wide enough for uneven attention."""
    transformer = {
        "wte": nn.Embedding(vocab_size, WIDTH),
        "wpe": nn.Embedding(CONTEXT, WIDTH),
        "h": nn.ModuleList(_layer(bias=bias) for _ in range(N_LAYER)),
        "ln_f": _norm(bias=bias),
    }
    head = nn.Linear(WIDTH, vocab_size, bias=False)
    transformer["wte"].weight = head.weight
    model = nn.ModuleDict({"transformer": nn.ModuleDict(transformer), "lm_head": head})
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
            parameter.normal_(middle, 0.5, generator=generator)
    return model


def checkpoint(
    vocab_size: int = len(CHARACTERS), *, bias: bool = True, compiled: bool = False
) -> Checkpoint:
    """What nanoGPT hands to torch.save, the optimizer's state after one step included."""
    model = parts(vocab_size, bias=bias)
    weights = model.state_dict()
    if compiled:
        weights = {f"_orig_mod.{name}": tensor for name, tensor in weights.items()}
    copy = parts(vocab_size, bias=bias)
    optimizer = torch.optim.AdamW(copy.parameters(), betas=(0.9, 0.95))
    copy["lm_head"](torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    return {
        "model": weights,
        "optimizer": optimizer.state_dict(),
        "model_args": {
            "n_layer": N_LAYER,
            "n_head": N_HEAD,
            "n_embd": WIDTH,
            "block_size": CONTEXT,
            "bias": bias,
            "vocab_size": vocab_size,
            "dropout": 0.2,
        },
        "iter_num": 250,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "letters", "learning_rate": 1e-3, "compile": compiled},
    }


def meta(characters: str = CHARACTERS) -> dict[str, Any]:
    """What nanoGPT's preparation of a text writes into meta.pkl."""
    return {
        "vocab_size": len(characters),
        "itos": dict(enumerate(characters)),
        "stoi": {character: i for i, character in enumerate(characters)},
    }


def write(folder: Path, saved: object, characters: object = None) -> Path:
    """A folder with ckpt.pt and, if given, meta.pkl; the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(saved, folder / "ckpt.pt")
    if characters is not None:
        (folder / "meta.pkl").write_bytes(pickle.dumps(characters))
    return folder / "ckpt.pt"


def exact_gelu(x: Floats) -> Floats:
    """Each number times the share of a bell curve that lies below it."""
    below: Floats = torch.special.ndtr(torch.from_numpy(x)).numpy()
    return x * below


def tanh_gelu(x: Floats) -> Floats:
    """GPT-2's approximation of it, in the form of a logistic curve."""
    gelu: Floats = x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return gelu


def compute(
    weights: dict[str, Tensor], token_ids: list[int], gelu: Callable[[Floats], Floats] = exact_gelu
) -> tuple[Floats, Floats]:
    """Logits [S, V] and weights [L, H, S, S] in float64, query by query."""
    w = {name: tensor.double().numpy() for name, tensor in weights.items()}

    def linear(name: str, x: Floats) -> Floats:
        y: Floats = np.einsum("oi,ti->to", w[f"{name}.weight"], x) + w.get(f"{name}.bias", 0.0)
        return y

    def norm(name: str, x: Floats) -> Floats:
        scale = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        y: Floats = (x - x.mean(-1, keepdims=True)) / scale * w[f"{name}.weight"]
        return y + w.get(f"{name}.bias", 0.0)

    n, size = len(token_ids), WIDTH // N_HEAD
    x = w["transformer.wte.weight"][token_ids] + w["transformer.wpe.weight"][:n]
    patterns = np.zeros((N_LAYER, N_HEAD, n, n))
    for layer in range(N_LAYER):
        name = f"transformer.h.{layer}"
        joined = linear(f"{name}.attn.c_attn", norm(f"{name}.ln_1", x))
        mixed = np.zeros((n, WIDTH))
        for head in range(N_HEAD):
            own = [slice(p * WIDTH + head * size, p * WIDTH + (head + 1) * size) for p in range(3)]
            q, k, v = (joined[:, columns] for columns in own)
            for query in range(n):
                shares = np.exp(k[: query + 1] @ q[query] / np.sqrt(size))
                shares /= shares.sum()
                patterns[layer, head, query, : query + 1] = shares
                mixed[query, own[0]] = shares @ v[: query + 1]
        x = x + linear(f"{name}.attn.c_proj", mixed)
        inner = gelu(linear(f"{name}.mlp.c_fc", norm(f"{name}.ln_2", x)))
        x = x + linear(f"{name}.mlp.c_proj", inner)
    return norm("transformer.ln_f", x) @ w["lm_head.weight"].T, patterns
