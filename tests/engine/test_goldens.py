"""The same files give what the `transformers` library gives: logits, and every head's weights.

Every family's toy model goes through the reader of folders, as a model of a user would.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engine import architectures
from engine.architectures import ARCHITECTURES
from engine.attention import QUERY_BLOCK
from engine.loading import load
from engine.run import Run
from tests.engine.hf_files import NAMES, Arrays, read_golden, write_golden

Loaded = tuple[Run, Arrays]


@pytest.fixture(scope="module", params=NAMES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """A toy model with the library's weights, and what the library computed with them."""
    folder = tmp_path_factory.mktemp("model")
    golden = write_golden(folder, request.param)
    run = Run(load(folder).model)
    run.read(golden["token_ids"].tolist())
    return run, golden


def _all_patterns(run: Run) -> NDArray[np.float32]:
    return np.array(
        [
            [run.pattern(run.session, layer, head) for head in range(run.config.n_head)]
            for layer in range(run.config.n_layer)
        ]
    )


def _check(run: Run, golden: Arrays, n_tokens: int) -> None:
    """The first tokens' logits and weights; later tokens change neither."""
    n_stored = golden["logits"].shape[1]
    logits = np.array([run.logits(run.session, at)[:n_stored] for at in range(n_tokens)])
    np.testing.assert_allclose(logits, golden["logits"][:n_tokens], atol=1e-4, rtol=0)
    expected = golden["attentions"][:, :, :n_tokens, :n_tokens]
    np.testing.assert_allclose(_all_patterns(run), expected, atol=1e-5, rtol=0)


def test_every_family_has_a_file_and_a_row_and_a_golden() -> None:
    """A family that is not listed would never be found, one without references not be proven."""
    folder = Path(architectures.__file__).parent
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    rows = {each.config_from.__module__.rpartition(".")[2] for each in ARCHITECTURES}
    assert rows == files
    assert len(rows) == len(ARCHITECTURES)
    proven = {json.loads(str(read_golden(name)[0]["config"]))["model_type"] for name in NAMES}
    assert proven == {name for each in ARCHITECTURES for name in each.model_types}


def test_one_golden_text_is_longer_than_a_block_of_queries() -> None:
    """Otherwise the way blocks are cut would go unproven."""
    assert len(read_golden("gpt2_long")[0]["token_ids"]) > QUERY_BLOCK


def test_one_prefill_gives_the_reference_logits_and_weights(loaded: Loaded) -> None:
    """All positions of a text read in one pass; every weight of every head of every layer."""
    run, golden = loaded
    _check(run, golden, len(golden["token_ids"]))


def test_a_bare_forward_pass_gives_the_reference_logits(loaded: Loaded) -> None:
    """Without cache, record or run, and with a batch axis in front."""
    run, golden = loaded
    logits = run.model(torch.from_numpy(golden["token_ids"])[None])[0].numpy()
    n_stored = golden["logits"].shape[1]
    np.testing.assert_allclose(logits[:, :n_stored], golden["logits"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("n_tokens", [1, 7, 8, 9])
def test_a_short_text_gives_the_same_as_the_reference(loaded: Loaded, n_tokens: int) -> None:
    """Shorter than a layer's window of 8, as long, and longer; the whole text is much longer."""
    run, golden = loaded
    short = Run(run.model)
    short.read(golden["token_ids"][:n_tokens].tolist())
    _check(short, golden, n_tokens)


def test_token_by_token_gives_the_same_as_the_reference(loaded: Loaded) -> None:
    """Through the KV cache, one token at a time after a short prefill."""
    run, golden = loaded
    stepped = Run(run.model)
    token_ids = golden["token_ids"].tolist()
    for n_tokens in range(3, len(token_ids) + 1):
        stepped.read(token_ids[:n_tokens])
    assert stepped.stats[-1].n_computed == 1
    _check(stepped, golden, len(token_ids))


def test_the_mask_that_is_shown_is_the_reference_mask(loaded: Loaded) -> None:
    """What a layer's own window hides is told from what merely has no weight."""
    run, golden = loaded
    n_tokens = len(golden["token_ids"])
    for layer, heads in enumerate(golden["attentions"]):
        visible = run.visible(layer, n_tokens)
        assert not heads[:, ~visible].any()
        assert (heads.max(axis=0) > 0)[visible].mean() > 0.9


def test_the_loss_is_the_cross_entropy_of_the_reference_logits(loaded: Loaded) -> None:
    """And the rank counts the tokens that the reference finds more probable."""
    run, golden = loaded
    vocab_size, target = run.config.vocab_size, golden["token_ids"][1:]
    logits = golden["logits"][:-1].astype(np.float64)
    if logits.shape[1] < vocab_size:  # of a long text not all are stored
        rows = [run.logits(run.session, at)[logits.shape[1] :] for at in range(len(target))]
        logits = np.concatenate((logits, rows), axis=1)
    chosen = logits[np.arange(len(target)), target]
    top = logits.max(axis=-1)
    expected = np.log(np.exp(logits - top[:, None]).sum(axis=-1)) + top - chosen
    np.testing.assert_allclose(run.session.loss[1:], expected, atol=2e-4, rtol=0)
    np.testing.assert_array_equal(run.session.rank[1:], (logits > chosen[:, None]).sum(axis=-1))
