"""Folders as Hugging Face's library writes them: what opens, and one sentence for what does not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.architectures import ARCHITECTURES
from engine.checkpoints.folder import save_checkpoint
from engine.errors import CheckpointError, EngineError
from engine.loading import load
from tests.engine.hf_files import read_golden, write_folder, write_golden

WEIGHTS, CONFIG = "model.safetensors", "config.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small Llama that is in order."""
    write_golden(tmp_path / "llama", "llama")
    return tmp_path / "llama"


def _change_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text()) | changes
    (folder / CONFIG).write_text(json.dumps({k: v for k, v in config.items() if v != "leave out"}))


def _logits(folder: Path) -> Tensor:
    with torch.inference_mode():
        return load(folder).model(torch.arange(20))


# What opens


def test_weights_in_several_files_are_one_model(folder: Path) -> None:
    """As the index lists them, or without one all that are there."""
    expected = _logits(folder)
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    halves = {"a-1.safetensors": names[::2], "a-2.safetensors": names[1::2]}
    (folder / WEIGHTS).unlink()
    for file, part in halves.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    assert torch.equal(_logits(folder), expected)
    weight_map = {name: file for file, part in halves.items() for name in part}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": weight_map}))
    save_file({"stray": torch.zeros(1)}, folder / "not-of-the-index.safetensors")
    assert torch.equal(_logits(folder), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_any_float_on_disk_is_float32_in_memory(folder: Path, dtype: torch.dtype) -> None:
    """With exactly the values that the file has."""
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(tensors, folder / WEIGHTS)
    model = load(folder).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert torch.equal(model.embedding.weight, tensors["model.embed_tokens.weight"].float())


def test_a_model_does_not_live_in_its_file(folder: Path) -> None:
    """Someone may overwrite the file while the model runs."""
    tensors = {name: tensor.float() for name, tensor in load_file(folder / WEIGHTS).items()}
    save_file(tensors, folder / WEIGHTS)
    model = load(folder).model
    before = model.embedding.weight.clone()
    size = (folder / WEIGHTS).stat().st_size
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(bytes(size))
    assert torch.equal(model.embedding.weight, before)


def test_names_without_the_base_models_prefix_are_known(tmp_path: Path) -> None:
    """As in the files of GPT-2 itself, which also hold masks."""
    golden, weights = read_golden("gpt2")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    bare["h.0.attn.bias"] = torch.tril(torch.ones(160, 160))
    bare["lm_head.weight"] = weights["transformer.wte.weight"].clone()  # tied: not used
    write_folder(tmp_path / "bare", str(golden["config"]), bare)
    write_folder(tmp_path / "whole", str(golden["config"]), weights)
    assert torch.equal(_logits(tmp_path / "bare"), _logits(tmp_path / "whole"))


def test_older_settings_say_the_same_as_newer_ones(tmp_path: Path) -> None:
    """Rotary positions used to be `rope_theta` and `rope_scaling`."""
    write_golden(tmp_path, "llama_3")
    newer = load(tmp_path).model.config
    rope = json.loads((tmp_path / CONFIG).read_text())["rope_parameters"]
    theta = rope.pop("rope_theta")
    _change_config(tmp_path, rope_parameters="leave out", rope_theta=theta, rope_scaling=rope)
    assert load(tmp_path).model.config == newer
    rope["type"] = rope.pop("rope_type")
    _change_config(tmp_path, rope_scaling=rope)
    assert load(tmp_path).model.config == newer


def test_longrope_sees_no_more_than_its_first_context_under_its_older_name_too(
    tmp_path: Path,
) -> None:
    """Beyond it the angles of all positions would be others, and every row with them."""
    write_golden(tmp_path, "phi3_long")
    newer = load(tmp_path).model.config
    assert newer.max_seq_len == 48  # of 256
    rope = json.loads((tmp_path / CONFIG).read_text())["rope_parameters"]
    theta = rope.pop("rope_theta")
    assert rope.pop("rope_type") == "longrope"
    rope["type"] = "su"
    _change_config(tmp_path, rope_parameters="leave out", rope_theta=theta, rope_scaling=rope)
    assert load(tmp_path).model.config == newer


def test_the_first_gemmas_gelu_means_the_one_by_a_tanh(tmp_path: Path) -> None:
    """As the library takes it, which warns of it; a word that says more is taken as it is."""
    write_golden(tmp_path, "gemma")
    for word, meant in (("gelu", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh"), ("silu",) * 2):
        _change_config(tmp_path, hidden_act=word)
        assert load(tmp_path).model.config.activation == meant


def test_older_settings_of_gemma_3_say_the_same_as_newer_ones(tmp_path: Path) -> None:
    """Its two speeds used to stand beside each other."""
    write_golden(tmp_path, "gemma3")
    newer = load(tmp_path).model.config
    _change_config(
        tmp_path,
        rope_parameters="leave out",
        rope_theta=1000.0,
        rope_local_base_freq=100.0,
        rope_scaling={"rope_type": "linear", "factor": 4.0},
    )
    assert load(tmp_path).model.config == newer


@pytest.mark.parametrize(("sliding", "windows"), [(None, ()), (5, (5, 5)), ("leave out", (4096,))])
def test_no_window_is_told_from_a_window_left_out(
    tmp_path: Path, sliding: object, windows: tuple[int, ...]
) -> None:
    """Mistral's later models say null; where nothing is said, the family's window holds."""
    write_golden(tmp_path, "mistral")
    _change_config(tmp_path, sliding_window=sliding)
    assert load(tmp_path).model.config.windows == (windows * 2)[:2]


def test_a_folder_of_the_cache_is_called_by_its_repository(folder: Path, tmp_path: Path) -> None:
    """Its own name is a number."""
    snapshot = tmp_path / "models--some-one--their-model" / "snapshots" / "0123abc"
    shutil.copytree(folder, snapshot)
    assert load(snapshot).info.name == "some-one/their-model"
    assert load(folder).info.name == "llama"


def test_ids_that_no_token_has_are_shown_as_nothing(folder: Path) -> None:
    """The embedding has 260 rows, the vocabulary 256 tokens; a model may draw any row."""
    loaded = load(folder)
    assert len(loaded.info.vocabulary) == 256
    assert loaded.tokenizer.vocab_size == 260
    assert loaded.tokenizer.decode([97, 258, 98]) == loaded.tokenizer.decode([97, 98])
    with pytest.raises(EngineError, match="token 260 is outside"):
        loaded.tokenizer.token_bytes(260)


# What does not


def _no_weights(folder: Path) -> None:
    (folder / WEIGHTS).unlink()


def _only_a_pickle(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def _index_without_files(folder: Path) -> None:
    index = {"weight_map": {"x": "gone.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


def _index_that_leads_away(folder: Path) -> None:
    index = {"weight_map": {"x": "../llama/model.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


def _index_of_half_a_character(folder: Path) -> None:
    index = {"weight_map": {"x": "\ud800.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


def _empty_index(folder: Path) -> None:
    (folder / f"{WEIGHTS}.index.json").write_text("{}")


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _only_a_sentence_piece(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder / "tokenizer.model")


def _twice(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder / "again.safetensors")
    (folder / WEIGHTS).rename(folder / "once.safetensors")


FILE_DAMAGE: list[tuple[Callable[[Path], None], str]] = [
    (_no_weights, r"llama holds no weights; there should be a model\.safetensors"),
    (_only_a_pickle, r"weights in pytorch_model\.bin only, a pickle, .* save the model again"),
    (_index_without_files, r"gone\.safetensors does not exist"),
    (_index_that_leads_away, r"names '\.\./llama/model\.safetensors', which is no file of this"),
    (_index_of_half_a_character, r"names '\\ud800\.safetensors', which is no file of this"),
    (_empty_index, r"index\.json has no section named 'weight_map'"),
    (_no_tokenizer, r"tokenizer\.json does not exist; it should hold the vocabulary"),
    (_only_a_sentence_piece, r"has its vocabulary in tokenizer\.model only, which is not read"),
    (_twice, r"once\.safetensors holds '.*', and so does again\.safetensors"),
]


@pytest.mark.parametrize(("damage", "sentence"), FILE_DAMAGE)
def test_files_that_are_missing_or_wrong_are_named(
    folder: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    """Files that are missing or wrong are named."""
    damage(folder)
    with pytest.raises(CheckpointError, match=sentence):
        load(folder)


CONFIG_DAMAGE: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "resnet"}, r"family 'resnet', which is not known here; known: gpt2, llama"),
    ({"model_type": 3}, r"family 3, which is not known here"),
    ({"num_attention_heads": 3}, r"n_head = 3 is not divisible by n_kv_head = 2"),
    ({"num_attention_heads": "leave out"}, r"config\.json lacks 'num_attention_heads'"),
    ({"hidden_size": "wide"}, r"hidden_size = 'wide' should be a whole number"),
    ({"hidden_size": 24.5}, r"hidden_size = 24\.5 should be a whole number"),
    ({"hidden_size": 10**400}, r"d_model = 1000+\.\.\.0+ is not possible; 16777216 is the most"),
    ({"head_dim": 10**400}, r"head_dim = 1000+\.\.\.0+ is not possible; 16777216 is the most"),
    ({"rope_theta": 10**400}, r"rope_theta = 1000+\.\.\.0+ should be a number"),
    ({"rms_norm_eps": 10**400}, r"rms_norm_eps = 1000+\.\.\.0+ should be a number"),
    ({"rms_norm_eps": "tiny"}, r"rms_norm_eps = 'tiny' should be a number"),
    ({"hidden_act": "cosine"}, r"hidden_act = 'cosine' is not known here; known: gelu"),
    ({"attention_bias": 1}, r"attention_bias = 1 should be true or false"),
    ({"hidden_act": 5}, r"hidden_act = 5 should be a word"),
    ({"rope_parameters": 5}, r"rope_parameters = 5 should hold settings by name"),
    ({"rope_parameters": {"rope_type": "dynamic"}}, r"rope scaling 'dynamic' is not computed here"),
    ({"rope_parameters": {"rope_type": "longrope"}}, r"config.json lacks 'short_factor'"),
    ({"num_hidden_layers": 10**12}, r"num_hidden_layers = 10{12} is not possible; 1 to 4096"),
    ({"num_hidden_layers": 4000}, r"lacks the tensor 'model\.layers\.3999\.self_attn\.o_proj"),
    ({"num_hidden_layers": 1}, r"holds 'model\.layers\.1\..*', which a model of these settings"),
    ({"vocab_size": 10**15}, r"vocab_size = 10{15} is not possible; 16777216 is the most"),
    ({"max_position_embeddings": 10**15}, r"max_seq_len = 10{15} is not possible"),
    ({"vocab_size": 200}, r"the tokenizer has 256 tokens, the model only 200"),
    ({"intermediate_size": 2**24}, r"has the shape \[44, 24\], which does not give the \[16777216"),
    ({"attention_bias": True}, r"lacks the tensor 'model\.layers\.0\.self_attn\.q_proj\.bias'"),
    ({"tie_word_embeddings": True, "head_dim": 4}, r"does not give the \[32, 24\]"),
    ({"quantization_config": {"quant_method": "gptq"}}, r"weights quantised by 'gptq'"),
]


@pytest.mark.parametrize(("changes", "sentence"), CONFIG_DAMAGE, ids=str)
def test_settings_that_cannot_be_are_told_in_one_sentence(
    folder: Path, changes: dict[str, Any], sentence: str
) -> None:
    """Settings that cannot be are told in one sentence, and nothing is allocated for them."""
    _change_config(folder, **changes)
    with pytest.raises(CheckpointError, match=sentence):
        load(folder)


def _as_integers(tensors: dict[str, Tensor]) -> None:
    tensors["model.norm.weight"] = torch.ones(24, dtype=torch.int8)


def _misshaped_part(tensors: dict[str, Tensor]) -> None:
    tensors["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(16, 23)


def _not_finite(tensors: dict[str, Tensor]) -> None:
    tensors["model.layers.1.mlp.up_proj.weight"][3, 3] = torch.inf


def _one_of_three_not_a_number(tensors: dict[str, Tensor]) -> None:
    tensors["model.layers.1.self_attn.k_proj.weight"][2, 5] = torch.nan


def _unexpected(tensors: dict[str, Tensor]) -> None:
    tensors["model.layers.0.self_attn.q_norm.weight"] = torch.ones(8)


TENSOR_DAMAGE: list[tuple[Callable[[dict[str, Tensor]], None], str]] = [
    (_as_integers, r"'model\.norm\.weight' is stored as int8; only float32, float16 and bfloat16"),
    (_misshaped_part, r"has the shape \[32, 24\] with \[16, 23\] with \[16, 24\], which does not"),
    (_not_finite, r"'model\.layers\.1\.mlp\.up_proj\.weight' holds values that are not finite"),
    (
        _one_of_three_not_a_number,
        r"llama: 'model\.layers\.1\.self_attn\.k_proj\.weight' holds values that are not finite",
    ),
    (_unexpected, r"holds 'model\.layers\.0\.self_attn\.q_norm\.weight', which a model"),
]


@pytest.mark.parametrize(("damage", "sentence"), TENSOR_DAMAGE)
def test_a_wrong_tensor_is_named(
    folder: Path, damage: Callable[[dict[str, Tensor]], None], sentence: str
) -> None:
    """By the name that the file gives it."""
    tensors = load_file(folder / WEIGHTS)
    damage(tensors)
    save_file(tensors, folder / WEIGHTS)
    with pytest.raises(CheckpointError, match=sentence):
        load(folder)


@pytest.mark.parametrize("golden", ["gpt_neox", "phi3", "gpt2"])
def test_joined_matrices_of_a_wrong_shape_are_named(tmp_path: Path, golden: str) -> None:
    """Before anything is taken apart."""
    results, weights = read_golden(golden)
    joined = ("query_key_value.weight", "gate_up_proj.weight", "c_attn.weight")
    name = next(name for name in weights if name.endswith(joined))
    write_folder(tmp_path, str(results["config"]), weights | {name: torch.zeros(5)})
    with pytest.raises(CheckpointError, match=r"has the shape \[5\], which does not give"):
        load(tmp_path)


def test_a_bad_folder_leaves_the_running_model_alone(folder: Path, tmp_path: Path) -> None:
    """Nothing is shared between two models."""
    model = load(folder).model
    before = model(torch.arange(9))
    write_golden(tmp_path / "other", "mistral")
    (tmp_path / "other" / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:3000])
    with pytest.raises(CheckpointError, match="damaged or cut off"):
        load(tmp_path / "other")
    assert torch.equal(model(torch.arange(9)), before)


def test_this_programs_own_folders_still_open(folder: Path) -> None:
    """Its config.json names no family but this program's format."""
    loaded = load(folder)
    own = folder.parent / "own"
    save_checkpoint(own, loaded.model, loaded.tokenizer)
    again = load(own)
    assert again.model.config == loaded.model.config
    with torch.inference_mode():
        assert torch.equal(again.model(torch.arange(9)), loaded.model(torch.arange(9)))


# Damage anywhere


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that examples damage one after the other, repairing it each time."""
    folder = tmp_path_factory.mktemp("victim")
    write_golden(folder, "llama")
    return folder


def _opens_or_says_why(folder: Path, name: str, content: bytes) -> None:
    sound = (folder / name).read_bytes()
    (folder / name).write_bytes(content)
    try:
        model = load(folder).model
        assert np.isfinite(model.embedding.weight.detach().numpy()).all()
    except EngineError as error:
        assert str(error).strip()  # noqa: PT017 - either outcome is right
    finally:
        (folder / name).write_bytes(sound)


MODEST = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, "tokenizer.json"])
@MODEST
@given(data=st.data())
def test_a_file_cut_anywhere_is_an_engine_error_or_a_model(
    victim: Path, name: str, data: st.DataObject
) -> None:
    """Never a crash; what is cut off a safetensors file is always noticed."""
    sound = (victim / name).read_bytes()
    size = data.draw(st.integers(0, min(len(sound) - 1, 4000)))
    _opens_or_says_why(victim, name, sound[:size])


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, "tokenizer.json"])
@MODEST
@given(data=st.data())
def test_flipped_bytes_are_an_engine_error_or_a_model(
    victim: Path, name: str, data: st.DataObject
) -> None:
    """Never a crash, a hang, or memory out of proportion."""
    damaged = bytearray((victim / name).read_bytes())
    places = st.integers(0, min(len(damaged) - 1, 4000))
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        damaged[place] = data.draw(st.integers(0, 255))
    _opens_or_says_why(victim, name, bytes(damaged))


def test_no_two_families_claim_one_name() -> None:
    """The first would win silently."""
    names = [name for each in ARCHITECTURES for name in each.model_types]
    assert len(names) == len(set(names))
