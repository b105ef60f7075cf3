"""This program's own folder of a model: what is saved loads, and damage is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoints.folder import load_checkpoint, save_checkpoint
from engine.config import ModelConfig
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.tokenizers import Characters

TOKENIZER = Characters(list("abc "))


def _model(**changes: object) -> Transformer:
    sizes: dict[str, object] = {"n_layer": 2, "n_head": 2, "d_model": 8, "max_seq_len": 16}
    sizes["vocab_size"] = TOKENIZER.vocab_size
    model = Transformer(ModelConfig.from_dict(sizes | changes))
    model.init_weights(torch.Generator().manual_seed(3))
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small model that is in order."""
    save_checkpoint(tmp_path / "model", _model(), TOKENIZER)
    return tmp_path / "model"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("positions", ["learned", "rotary", "sinusoidal", "alibi", "none"])
def test_a_saved_model_loads_and_computes_the_same(
    tmp_path: Path,
    positions: str,
    tied: bool,  # noqa: FBT001
) -> None:
    """A saved model loads and computes the same."""
    model = _model(positions=positions, tied_output=tied)
    save_checkpoint(tmp_path, model, TOKENIZER, facts={"step": 7})
    loaded = load_checkpoint(tmp_path)
    token_ids = torch.tensor([0, 1, 2, 3])
    assert loaded.model.config == model.config
    assert torch.equal(loaded.model(token_ids), model(token_ids))
    assert loaded.tokenizer.encode("cab") == [2, 0, 1]
    assert loaded.facts == {"step": 7}


def test_half_precision_on_disk_is_full_precision_in_memory(tmp_path: Path) -> None:
    """Half precision on disk is full precision in memory."""
    model = _model()
    save_checkpoint(tmp_path, model, TOKENIZER, "float16")
    on_disk = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in on_disk.values()} == {torch.float16}
    loaded = load_checkpoint(tmp_path).model.state_dict()
    for name, tensor in model.state_dict().items():
        assert loaded[name].dtype == torch.float32
        assert torch.equal(loaded[name], tensor.to(torch.float16).float())


def test_a_tied_output_is_stored_once(tmp_path: Path) -> None:
    """A tied output is stored once."""
    save_checkpoint(tmp_path / "tied", _model(tied_output=True), TOKENIZER)
    save_checkpoint(tmp_path / "untied", _model(tied_output=False), TOKENIZER)
    shape = (TOKENIZER.vocab_size, 8)
    count = {
        name: sum(
            tuple(tensor.shape) == shape
            for tensor in load_file(tmp_path / name / "model.safetensors").values()
        )
        for name in ("tied", "untied")
    }
    assert count == {"tied": 1, "untied": 2}


def test_saving_again_replaces_the_model_and_leaves_no_scraps(folder: Path) -> None:
    """Saving again replaces the model and leaves no scraps."""
    other = _model(positions="rotary")
    save_checkpoint(folder, other, TOKENIZER)
    assert load_checkpoint(folder).model.config.positions == "rotary"
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder that cannot be written is named."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match=r"file.* cannot be written"):
        save_checkpoint(tmp_path / "file", _model(), TOKENIZER)


def _lacking(tensors: dict[str, Tensor]) -> None:
    del tensors["blocks.1.mlp.up.weight"]


def _unexpected(tensors: dict[str, Tensor]) -> None:
    tensors["blocks.9.extra"] = torch.zeros(1)


def _misshaped(tensors: dict[str, Tensor]) -> None:
    tensors["embedding.weight"] = torch.zeros(3, 4)


def _not_finite(tensors: dict[str, Tensor]) -> None:
    tensors["embedding.weight"][5, 5] = torch.nan


def _infinite(tensors: dict[str, Tensor]) -> None:
    tensors["embedding.weight"][0, 0] = -torch.inf


def _infinite_as_stored(tensors: dict[str, Tensor]) -> None:
    tensors["embedding.weight"] = tensors["embedding.weight"].to(torch.float8_e4m3fn)
    tensors["embedding.weight"].view(torch.uint8)[3, 2] = 0x7F  # its one way to be no number


TENSOR_DAMAGE: list[tuple[Callable[[dict[str, Tensor]], None], str]] = [
    (_lacking, r"lacks the tensor 'blocks\.1\.mlp\.up\.weight'"),
    (_unexpected, r"holds 'blocks\.9\.extra', which the configured model has no place for"),
    (_misshaped, r"'embedding\.weight' has the shape \[3, 4\]; .* asks for \[260, 8\]"),
    (_not_finite, r"'embedding\.weight' holds values that are not finite"),
    (_infinite, r"'embedding\.weight' holds values that are not finite"),
    (_infinite_as_stored, r"'embedding\.weight' holds values that are not finite"),
]


@pytest.mark.parametrize(("damage", "sentence"), TENSOR_DAMAGE)
def test_a_wrong_tensor_is_named(
    folder: Path, damage: Callable[[dict[str, Tensor]], None], sentence: str
) -> None:
    """A wrong tensor is named."""
    tensors = load_file(folder / "model.safetensors")
    damage(tensors)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=sentence):
        load_checkpoint(folder)


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_a_cut_off_weight_file_is_named(folder: Path, size: int) -> None:
    """A cut off weight file is named."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged or cut off"):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    """A missing file is named."""
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} does not exist"):
        load_checkpoint(folder)


CONFIG_DAMAGE: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "is not JSON"),
    "a list": ("[]", "names no family of models"),
    "another program's": ('{"architectures": []}', "names no family of models"),
    "a later version": ('{"format": "attention-scope", "version": 99}', "version 99"),
    "no model": ('{"format": "attention-scope", "version": 1}', "no section named 'model'"),
}


@pytest.mark.parametrize(("content", "sentence"), CONFIG_DAMAGE.values(), ids=CONFIG_DAMAGE)
def test_a_damaged_configuration_is_named(folder: Path, content: str, sentence: str) -> None:
    """A damaged configuration is named."""
    (folder / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=sentence):
        load_checkpoint(folder)


def test_impossible_sizes_are_told_in_the_configurations_words(folder: Path) -> None:
    """Impossible sizes are told in the configuration's words."""
    path = folder / "config.json"
    stored = json.loads(path.read_text())
    stored["model"]["n_head"] = 3
    stored["model"]["n_kv_head"] = 2
    path.write_text(json.dumps(stored))
    with pytest.raises(CheckpointError, match="n_head = 3 is not divisible by n_kv_head = 2"):
        load_checkpoint(folder)


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    """A tokenizer of another model is refused."""
    Characters(list("abcdefgh")).save(folder)
    with pytest.raises(CheckpointError, match="264 tokens, the model only 260"):
        load_checkpoint(folder)
