"""What is found on a computer: each kind of store, what is said of each model, hostile folders."""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.architectures import ARCHITECTURES
from engine.architectures._architecture import Settings
from engine.checkpoints.folder import save_checkpoint
from engine.errors import ConfigError, EngineError
from engine.library import (
    Found,
    Looking,
    Note,
    Place,
    added_place,
    model_name,
    search,
    standard_places,
)
from engine.library.families import FAMILIES, ROPE_SCALINGS, check_family, layers_and_heads
from engine.library.gguf_model import VOCABULARIES
from engine.library.walk import Walker
from engine.loading import load
from engine.memory import available_bytes, available_in
from engine.tokenizers import Characters
from engine.tokenizers.gguf_vocabulary import _KINDS
from tests.engine.gguf_files import (
    KINDS,
    LLAMA,
    byte_level,
    llama_weights,
    write_llama,
    write_llama_parts,
)
from tests.engine.hf_files import NAMES, read_golden, write_golden
from tests.engine.library_files import MAIN, put_in_hub, put_in_ollama

ROOT = Path(__file__).parents[3]
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def found_in(*places: Place, **options: Any) -> list[Found]:
    """The models that a search tells of."""
    return [each for each in search(places, **options) if isinstance(each, Found)]


def notes_on(*places: Place, **options: Any) -> list[str]:
    """The sentences about places."""
    return [each.sentence for each in search(places, **options) if isinstance(each, Note)]


def only(folder: Path) -> Found:
    """The one model in an added folder."""
    (found,) = found_in(added_place(folder))
    return found


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """A folder of Hugging Face's kind that can be opened."""
    write_golden(tmp_path / "llama", "llama")
    return tmp_path / "llama"


def change_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text()) | changes
    (folder / CONFIG).write_text(json.dumps(config))


# What is said of a model


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_opens_is_described_as_the_opened_model_is(tmp_path: Path, name: str) -> None:
    """Layers, heads and weights as the engine has them after opening the same folder."""
    write_golden(tmp_path / name, name)
    found = only(tmp_path)
    info = load(tmp_path / name).info
    assert found.reason == ""
    assert (found.n_layer, found.n_head) == (info.config.n_layer, info.config.n_head)
    tied = info.config.vocab_size * info.config.d_model  # which some files hold once more
    assert found.n_parameters in (info.n_parameters, info.n_parameters + tied)
    assert found.needed_bytes("float32") == 4 * found.n_parameters
    assert found.needed_bytes("int8") == found.n_parameters
    assert found.n_bytes == (tmp_path / name / WEIGHTS).stat().st_size
    assert (found.name, found.path) == (name, str(tmp_path / name))
    assert found.architecture == json.loads((tmp_path / name / CONFIG).read_text())["model_type"]


def test_a_folder_of_this_program_is_described_as_the_opened_model_is(
    tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    save_checkpoint(tmp_path / "own", tiny("alibi", vocab_size=258).model, Characters("ab"))
    found = only(tmp_path)
    info = load(tmp_path / "own").info
    assert (found.reason, found.architecture) == ("", "attention-scope")
    assert (found.n_layer, found.n_head) == (info.config.n_layer, info.config.n_head)
    assert found.n_parameters == info.n_parameters


@pytest.mark.parametrize("kind", [KINDS.F32, KINDS.F16, KINDS.Q8_0, KINDS.Q4_1])
def test_a_gguf_file_is_described_as_the_opened_model_is(tmp_path: Path, kind: Any) -> None:
    path = write_llama(tmp_path / "toy.gguf", kind)
    found = only(tmp_path)
    info = load(path).info
    assert (found.reason, found.name, found.architecture) == ("", "toy", "llama")
    assert (found.n_layer, found.n_head) == (info.config.n_layer, info.config.n_head)
    assert found.n_parameters == info.n_parameters
    assert found.n_bytes == path.stat().st_size


def nanogpt(path: Path, **changes: Any) -> Path:
    """A checkpoint as nanoGPT's train.py saves one, with tied weights and an optimizer's state."""
    wte = torch.zeros(5, 8)
    model = {
        "_orig_mod.transformer.wte.weight": wte,
        "_orig_mod.transformer.h.0.attn.bias": torch.ones(1, 1, 16, 16),  # a mask, not learnt
        "_orig_mod.transformer.h.0.attn.c_attn.weight": torch.zeros(24, 8),
        "_orig_mod.lm_head.weight": wte,
    }
    arguments = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 16, "vocab_size": 5}
    checkpoint = {
        "model": model,
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3}]},
        "model_args": arguments | {"bias": False, "dropout": 0.0},
        "iter_num": 3,
        "best_val_loss": torch.tensor(1.5),
        "config": {"out_dir": "out", "compile": True},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(checkpoint | changes, path)
    letters = dict(enumerate("\n abc"))
    meta = {"vocab_size": 5, "itos": letters, "stoi": {each: i for i, each in letters.items()}}
    (path.parent / "meta.pkl").write_bytes(pickle.dumps(meta))
    return path


def test_a_nanogpt_checkpoint_tells_its_sizes_and_counts_tied_weights_once(tmp_path: Path) -> None:
    path = nanogpt(tmp_path / "out" / "ckpt.pt")
    found = only(tmp_path)
    assert (found.reason, found.name, found.path) == ("", "out", str(path))
    assert (found.n_layer, found.n_head) == (1, 2)
    assert found.n_parameters == 5 * 8 + 24 * 8


def test_a_nanogpt_checkpoint_without_its_vocabulary_says_where_to_put_it(tmp_path: Path) -> None:
    path = nanogpt(tmp_path / "ckpt.pt")
    (tmp_path / "meta.pkl").unlink()
    found = only(tmp_path)
    assert "no meta.pkl" in found.reason
    assert found.n_layer == 1
    with pytest.raises(EngineError, match=r"no meta\.pkl"):
        load(path)


class Program:
    """Pickled, this would run something when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("was-run",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"config": Program()}, "more than the plain values"),
        ({"model_args": {"n_layer": 1}}, "no n_head"),
        ({"model_args": None}, "no 'model_args'"),
    ],
)
def test_a_checkpoint_that_is_not_nanogpts_is_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], reason: str
) -> None:
    """And nothing in it is run."""
    monkeypatch.chdir(tmp_path)
    nanogpt(tmp_path / "ckpt.pt", **changes)
    assert reason in only(tmp_path).reason
    assert not (tmp_path / "was-run").exists()


def test_a_checkpoint_that_is_cut_off_anywhere_is_listed_with_a_reason(tmp_path: Path) -> None:
    whole = nanogpt(tmp_path / "ckpt.pt").read_bytes()
    for n in range(0, len(whole), 97):
        (tmp_path / "ckpt.pt").write_bytes(whole[:n])
        assert "cut off" in only(tmp_path).reason


# The families are those of the engine


def test_the_known_families_are_those_that_the_engine_builds() -> None:
    """Whoever adds one adds its row in `engine.library.families`."""
    assert set(FAMILIES) == {name for each in ARCHITECTURES for name in each.model_types}


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_read_under_the_names_that_the_engine_reads(name: str) -> None:
    config = json.loads(str(read_golden(name)[0]["config"]))
    family = next(each for each in ARCHITECTURES if config["model_type"] in each.model_types)
    ours = family.config_from(Settings(config))
    assert layers_and_heads(config) == (ours.n_layer, ours.n_head)


@pytest.mark.parametrize("kind", [*ROPE_SCALINGS, "su", "dynamic"])
def test_rope_scalings_are_refused_as_the_engine_refuses_them(kind: str) -> None:
    config = json.loads(str(read_golden("llama")[0]["config"]))
    scaling = {"factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_type": kind}
    scaling["short_factor"] = [1.0, 1.0, 1.0, 1.0]
    config |= {"rope_scaling": scaling, "rope_parameters": None}
    family = next(each for each in ARCHITECTURES if "llama" in each.model_types)
    if kind != "dynamic":
        family.config_from(Settings(config))
        check_family(config)
    else:
        with pytest.raises(ConfigError):
            family.config_from(Settings(config))
        with pytest.raises(
            EngineError, match=f"{kind}.*known: default, linear, llama3, yarn, longrope"
        ):
            check_family(config)


def test_the_known_vocabularies_of_gguf_files_are_those_that_are_read() -> None:
    assert set(VOCABULARIES) == set(_KINDS)


# What cannot be opened


def test_an_unknown_family_is_listed_with_the_known_ones(llama: Path) -> None:
    """Its sizes are shown all the same."""
    change_config(llama, model_type="mamba9")
    found = only(llama)
    assert "'mamba9'" in found.reason
    assert all(name in found.reason for name in FAMILIES)
    assert found.architecture == "mamba9"
    assert found.n_layer > 0
    assert found.n_parameters > 0
    assert not found.is_readable


def _only_pickle(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def _cut(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:-1])


def _quantise(folder: Path) -> None:
    change_config(folder, quantization_config={"quant_method": "gptq"})


def _lose_a_part(folder: Path) -> None:
    index = {"weight_map": {"a": "model-00001.safetensors", "b": "model-00002.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    (folder / WEIGHTS).rename(folder / "model-00001.safetensors")


def _as_integers(folder: Path) -> None:
    tensors = load_file(folder / WEIGHTS)
    save_file({name: tensor.to(torch.int8) for name, tensor in tensors.items()}, folder / WEIGHTS)


def _index_leads_out(folder: Path) -> None:
    index = {"weight_map": {"a": "../../secret.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


def _write_tokenizer(folder: Path, text: str) -> None:
    (folder / "tokenizer.json").write_text(text)


def _change_tokenizer(folder: Path, **changes: Any) -> None:
    data = json.loads((folder / "tokenizer.json").read_text())
    _write_tokenizer(folder, json.dumps({**data, **changes}))


def _change_tokenizer_model(folder: Path, **changes: Any) -> None:
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    _change_tokenizer(folder, model={**model, **changes})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: _change_tokenizer_model(folder, type="Unigram"), "kind 'Unigram'"),
        (
            lambda folder: _change_tokenizer_model(folder, end_of_word_suffix="</w>"),
            "marks parts of words",
        ),
        (
            lambda folder: _change_tokenizer(folder, normalizer={"type": "Lowercase"}),
            "rewrites text first ('Lowercase')",
        ),
        (
            lambda folder: _change_tokenizer(folder, pre_tokenizer={"type": "Whitespace"}),
            "not known to keep all of it ('Whitespace')",
        ),
        (
            lambda folder: _change_tokenizer(folder, pre_tokenizer=None),
            "not spelled in bytes",
        ),
        (lambda folder: _write_tokenizer(folder, ""), "tokenizer.json is not JSON"),
        (lambda folder: _write_tokenizer(folder, '{"model": {}}'), "no tokens for them"),
        (_only_pickle, "pytorch_model.bin only, a pickle"),
        (_cut, "model.safetensors is cut off"),
        (_quantise, "quantised by 'gptq'"),
        (_lose_a_part, "model-00002.safetensors is missing"),
        (_as_integers, "stored as I8"),
        (_index_leads_out, "names no files of this folder"),
        (lambda folder: (folder / WEIGHTS).unlink(), "holds no weights"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "holds no vocabulary"),
        (
            lambda folder: (folder / "tokenizer.json").rename(folder / "tokenizer.model"),
            "tokenizer.model only",
        ),
    ],
)
def test_a_folder_that_cannot_be_opened_is_listed_with_one_sentence(
    llama: Path, damage: Callable[[Path], None], reason: str
) -> None:
    """Which is true: the engine refuses it, too."""
    damage(llama)
    found = only(llama)
    assert reason in found.reason
    assert found.reason.endswith(".")
    assert "\n" not in found.reason
    with pytest.raises(EngineError):
        load(llama)


def test_a_vocabulary_is_not_read_for_the_list(llama: Path) -> None:
    """However large or damaged it is; what only the whole file tells is left to the opening."""
    text = (llama / "tokenizer.json").read_text()
    before, after = text.split('"vocab"', 1)
    _write_tokenizer(llama, before + '"vocab"' + after[: len(after) // 2])
    assert only(llama).is_readable
    with pytest.raises(EngineError, match="is not JSON"):
        load(llama)
    data = json.loads(text)
    model = {"vocab": data["model"].pop("vocab"), **data["model"], "type": "Unigram"}
    _write_tokenizer(llama, json.dumps({"pre_tokenizer": data["pre_tokenizer"], "model": model}))
    assert only(llama).is_readable
    with pytest.raises(EngineError, match="kind 'Unigram'"):
        load(llama)


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in LLAMA.items() if key != f"llama.{name}"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"metadata": {**LLAMA, "llama.expert_count": 8}}, "8 experts"),
        ({"metadata": {**LLAMA, "split.count": 2}}, "a model in 2 files"),
        ({"metadata": _without("block_count")}, "lacks 'llama.block_count'"),
        ({"vocabulary": byte_level(pre="odd")}, "'odd'"),
        ({"vocabulary": {"tokenizer.ggml.model": "bert"}}, "'bert'"),
        (
            {"metadata": {**LLAMA, "llama.rope.scaling.type": "odd"}},
            "'odd' is not computed here",
        ),
    ],
)
def test_a_gguf_file_that_cannot_be_opened_is_listed_with_one_sentence(
    tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    """Which is true: the engine refuses it, too."""
    path = write_llama(tmp_path / "toy.gguf", **options)
    found = only(tmp_path)
    assert reason in found.reason
    assert str(tmp_path) not in found.reason  # the path has a place of its own
    with pytest.raises(EngineError):
        load(path)


def test_a_gguf_file_of_a_quantisation_that_is_not_read_is_listed_with_the_reason(
    tmp_path: Path,
) -> None:
    """The number of a quantisation that nobody has, in the place of float32's."""
    path = write_llama(tmp_path / "toy.gguf")
    content = path.read_bytes()
    name = b"token_embd.weight"
    at = content.index(name) + len(name) + 4 + 2 * 8
    path.write_bytes(content[:at] + (99).to_bytes(4, "little") + content[at + 4 :])
    assert "'token_embd.weight' is stored as number 99" in only(tmp_path).reason


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.999])
def test_a_gguf_file_that_is_cut_off_is_listed_with_the_reason(
    tmp_path: Path, fraction: float
) -> None:
    path = write_llama(tmp_path / "toy.gguf")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * fraction)])
    assert only(tmp_path).reason


def test_what_else_has_a_config_json_is_no_model(tmp_path: Path) -> None:
    """Web projects, editors and broken files have one, too."""
    for name, content in {"a": "{}", "b": "[1]", "c": "no JSON", "d": '{"model_type": 3}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / CONFIG).write_text(content)
    assert found_in(added_place(tmp_path)) == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_flipped_byte_anywhere_in_a_header_makes_nothing_raise(
    tmp_path: Path, data: st.DataObject
) -> None:
    """Nor hang: each of the three kinds is described or given a reason."""
    folder = tmp_path / "fuzz"
    if not folder.exists():
        write_golden(folder, "llama")
        write_llama(folder / "toy.gguf")
        nanogpt(folder / "ckpt.pt")
    name = data.draw(st.sampled_from([CONFIG, WEIGHTS, "toy.gguf", "ckpt.pt"]))
    whole = (folder / name).read_bytes()
    at = data.draw(st.integers(0, min(len(whole), 20_000) - 1))
    flipped = bytearray(whole)
    flipped[at] ^= data.draw(st.integers(1, 255))
    try:
        (folder / name).write_bytes(flipped)
        assert len(found_in(added_place(folder))) >= 2
    finally:
        (folder / name).write_bytes(whole)


# Hugging Face's cache


def test_the_cache_is_read_as_its_own_library_reads_it(tmp_path: Path, llama: Path) -> None:
    """The same repositories and revisions, with data sets left out."""
    hub = tmp_path / "hub"
    put_in_hub(hub, "owner/one-model", llama)
    put_in_hub(hub, "owner/one-model", llama, "b" * 40)
    put_in_hub(hub, "gpt2", llama)
    data = put_in_hub(hub, "owner/texts", llama)
    data.parents[1].rename(hub / "datasets--owner--texts")
    (hub / ".locks").mkdir()
    (hub / "version.txt").write_text("1")
    expected = {
        (repository.repo_id, str(revision.snapshot_path))
        for repository in huggingface_hub.scan_cache_dir(hub).repos
        for revision in repository.revisions
        if repository.repo_type == "model"
    }
    found = found_in(Place("cache", hub, "hub"))
    assert {(each.name.split(" @ ")[0], each.path) for each in found} == expected
    assert [each.name for each in found] == [
        "gpt2",
        "owner/one-model",
        "owner/one-model @ bbbbbbb",
    ]
    assert not any(each.reason for each in found)
    assert load(Path(found[1].path)).info.n_parameters == found[1].n_parameters


def test_a_broken_download_is_listed_with_the_reason_and_hides_no_other_revision(
    tmp_path: Path, llama: Path
) -> None:
    """Where the library's own scan leaves the whole repository out."""
    hub = tmp_path / "hub"
    snapshot = put_in_hub(hub, "owner/model", llama)
    broken = put_in_hub(hub, "owner/model", llama, "b" * 40)
    (broken / WEIGHTS).unlink()
    (broken / WEIGHTS).symlink_to("../../blobs/incomplete")
    assert not huggingface_hub.scan_cache_dir(hub).repos
    whole, cut = found_in(Place("cache", hub, "hub"))
    assert (whole.path, whole.reason) == (str(snapshot), "")
    assert (cut.path, cut.reason) == (
        str(broken),
        "It holds no weights; there should be a model.safetensors.",
    )


def test_gguf_files_of_the_cache_are_listed_once_under_the_names_of_their_repository(
    tmp_path: Path, llama: Path
) -> None:
    """In folders, too; a config.json beside them makes them no folder to open."""
    files = tmp_path / "files"
    (files / "Q8").mkdir(parents=True)
    write_llama(files / "Q8" / "toy.gguf", KINDS.Q8_0)
    shutil.copy(llama / CONFIG, files / CONFIG)
    hub = tmp_path / "hub"
    put_in_hub(hub, "owner/toy-GGUF", files)
    put_in_hub(hub, "owner/toy-GGUF", files, "b" * 40)  # the same blob
    (found,) = found_in(Place("cache", hub, "hub"))
    assert (found.name, found.reason) == ("owner/toy-GGUF: toy", "")
    assert found.path == str(
        hub / "models--owner--toy-GGUF" / "snapshots" / MAIN / "Q8" / "toy.gguf"
    )


def test_a_repository_of_the_cache_that_is_no_language_model_says_so(tmp_path: Path) -> None:
    files = tmp_path / "files"
    (files / "unet").mkdir(parents=True)
    (files / "unet" / CONFIG).write_text('{"_class_name": "UNet"}')
    (files / "model_index.json").write_text("{}")
    put_in_hub(tmp_path / "hub", "owner/pictures", files)
    (found,) = found_in(Place("cache", tmp_path / "hub", "hub"))
    assert found.name == "owner/pictures"
    assert "neither a config.json" in found.reason


def test_the_cache_is_looked_for_where_its_own_library_keeps_it(tmp_path: Path) -> None:
    """Whatever the environment says, compared in processes of its own."""
    variables = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")
    cases = [{}, *({name: str(tmp_path / name)} for name in variables)]
    cases.append({"HF_HOME": "~/there", "XDG_CACHE_HOME": "/elsewhere"})
    code = (
        "import importlib, json, os, sys\n"
        "import huggingface_hub.constants as constants\n"
        "for case in json.loads(sys.argv[1]):\n"
        f"    for name in {variables!r}: os.environ.pop(name, None)\n"
        "    os.environ.update(case)\n"
        "    print(importlib.reload(constants).HF_HUB_CACHE)\n"
    )
    environment = {key: value for key, value in os.environ.items() if key not in variables}
    environment["HOME"] = str(tmp_path)
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code, json.dumps(cases)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    ours = [standard_places(case, tmp_path)[0] for case in cases]
    assert [str(place.path) for place in ours] == done.stdout.split()
    assert {place.kind for place in ours} == {"hub"}


# Other stores


def test_ollamas_models_are_listed_as_ollama_calls_them(tmp_path: Path) -> None:
    """What its manifests point to; the blobs have no names."""
    store = tmp_path / "models"
    contents = [
        write_llama(tmp_path / f"{i}.gguf", weights=llama_weights(seed=i)).read_bytes()
        for i in range(3)
    ]
    blob = put_in_ollama(store, "library/toy:latest", contents[0])
    put_in_ollama(store, "somebody/toy:1b", contents[1])
    put_in_ollama(store, "team/toy:2b", contents[2], host="hf.co")
    found = {each.name: each for each in found_in(Place("Ollama", store, "ollama"))}
    assert set(found) == {"toy:latest", "somebody/toy:1b", "hf.co/team/toy:2b"}
    assert found["toy:latest"].path == str(blob)
    assert found["toy:latest"].reason == ""
    assert load(blob).info.n_parameters == found["toy:latest"].n_parameters


@pytest.mark.parametrize(
    "digest", ["sha256:../../../etc/passwd", "sha256:", "md5:" + "0" * 64, 7, None]
)
def test_a_manifest_leads_nowhere_outside_of_ollamas_store(tmp_path: Path, digest: Any) -> None:
    put_in_ollama(tmp_path, "library/toy:latest", b"GGUF", digest=digest)
    assert found_in(Place("Ollama", tmp_path, "ollama")) == []


def test_a_model_that_ollama_has_lost_is_listed_with_the_reason(tmp_path: Path) -> None:
    put_in_ollama(tmp_path, "library/toy:latest", b"GGUF").unlink()
    (found,) = found_in(Place("Ollama", tmp_path, "ollama"))
    assert "cannot be read: No such file" in found.reason


def test_the_stores_of_other_programs_are_looked_for_where_they_keep_them(tmp_path: Path) -> None:
    """As their documentation says, without and with the variables that move them."""
    usual = {place.path for place in standard_places({}, tmp_path, "linux")}
    assert usual >= {
        tmp_path / ".lmstudio" / "models",
        tmp_path / ".cache" / "lm-studio" / "models",
        tmp_path / ".cache" / "llama.cpp",
        tmp_path / ".ollama" / "models",
    }
    moved = {"LLAMA_CACHE": "/a", "OLLAMA_MODELS": "/b"}
    assert {place.path for place in standard_places(moved, tmp_path)} >= {Path("/a"), Path("/b")}
    on_a_mac = {place.path for place in standard_places({}, tmp_path, "darwin")}
    assert tmp_path / "Library" / "Caches" / "llama.cpp" in on_a_mac
    on_windows = standard_places({"LOCALAPPDATA": "/local"}, tmp_path, "win32")
    assert Path("/local/llama.cpp") in {place.path for place in on_windows}


def test_models_in_folders_of_folders_are_found(tmp_path: Path, llama: Path) -> None:
    """As LM Studio lays them out; a model in several files is one."""
    store = tmp_path / "models"
    home = store / "owner" / "toy-GGUF"
    home.mkdir(parents=True)
    write_llama(home / "toy.Q8_0.gguf", KINDS.Q8_0)
    whole = write_llama_parts(home / "big.gguf")
    first, *others = write_llama_parts(home / "half.gguf")
    first.unlink()
    shutil.copytree(llama, store / "owner" / "safe")
    found = {each.name: each for each in found_in(Place("LM Studio", store))}
    assert {name: each.is_readable for name, each in found.items()} == {
        "toy.Q8_0": True,
        "big": True,
        "half": False,
        "safe": True,
    }
    assert found["big"].path == str(whole[0])
    assert found["big"].n_bytes == sum(path.stat().st_size for path in whole)
    assert found["big"].n_parameters == found["toy.Q8_0"].n_parameters
    assert (found["big"].n_layer, found["big"].n_head) == (2, 4)
    assert f"one of 3 files of one model, and {first.name} is missing" in found["half"].reason
    assert found["half"].path == str(others[0])


def test_gguf_files_of_installed_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the list of files that each package left when it was installed."""
    site = tmp_path / "site"
    (site / "llm_toy").mkdir(parents=True)
    path = write_llama(site / "llm_toy" / "toy, small.gguf")
    info = site / "llm_toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-toy\nVersion: 1.0\n")
    (info / "RECORD").write_text(
        'llm_toy/__init__.py,,\n"llm_toy/toy, small.gguf",sha256=x,1\nllm_toy/gone.gguf,,\n'
    )
    monkeypatch.syspath_prepend(str(site))
    found = {each.name: each for each in found_in(Place("packages", site, "packages"))}
    assert (found["toy, small"].path, found["toy, small"].reason) == (str(path), "")
    assert "cannot be read" in found["gone"].reason


def test_what_two_places_hold_is_listed_once_where_it_is_found_first(
    tmp_path: Path, llama: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(llama)
    (found,) = found_in(Place("first", llama), added_place(tmp_path))
    assert found.place == "first"


# Places that are not as they should be


def test_a_store_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    """Nobody has all these programs."""
    places = standard_places({}, tmp_path / "nobody", "linux")
    told = [
        each
        for each in search([place for place in places if place.kind != "packages"])
        if not isinstance(each, Looking)
    ]
    assert told == []


def test_an_added_folder_that_is_gone_or_no_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, why in (("gone", "No such file or directory"), ("file", "Not a directory")):
        (sentence,) = notes_on(added_place(tmp_path / name))
        assert str(tmp_path / name) in sentence
        assert sentence.endswith(f"{why}.")


def test_links_that_lead_in_circles_end(tmp_path: Path, llama: Path) -> None:
    """Into itself, into the one above, and to each other."""
    (llama / "self").symlink_to(llama)
    (llama / "above").symlink_to(tmp_path)
    (llama / "ping").symlink_to(llama / "pong")
    (llama / "pong").symlink_to(llama / "ping")
    (llama / "ping.gguf").symlink_to(llama / "ping.gguf")
    assert [each.name for each in found_in(added_place(tmp_path))] == ["llama"]


def test_pipes_and_devices_are_not_opened(tmp_path: Path, llama: Path) -> None:
    """They would never answer."""
    for name in (CONFIG, "pipe.gguf", "ckpt.pt"):
        (tmp_path / "pipes").mkdir(exist_ok=True)
        os.mkfifo(tmp_path / "pipes" / name)
    (tmp_path / "pipes" / "device.gguf").symlink_to("/dev/zero")
    hub = tmp_path / "hub"
    put_in_hub(hub, "owner/model", llama)
    (hub / "models--owner--model" / "refs" / "main").unlink()
    os.mkfifo(hub / "models--owner--model" / "refs" / "main")
    store = tmp_path / "ollama" / "manifests" / "host" / "space" / "model"
    store.mkdir(parents=True)
    os.mkfifo(store / "latest")
    places = [
        added_place(tmp_path / "pipes"),
        Place("cache", hub, "hub"),
        Place("Ollama", tmp_path / "ollama", "ollama"),
    ]
    assert [each.name for each in found_in(*places)] == ["owner/model"]


def test_a_folder_that_may_not_be_read_hides_no_other(
    tmp_path: Path, llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be allowed everything, so the refusal is made."""
    (tmp_path / "closed").mkdir()
    scandir = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) == tmp_path / "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert [each.path for each in found_in(added_place(tmp_path))] == [str(llama)]
    assert "Permission denied" in notes_on(added_place(tmp_path / "closed"))[0]


def test_a_huge_tree_is_looked_at_in_part_and_that_is_said(tmp_path: Path, llama: Path) -> None:
    """The shallow part: whoever adds a folder means what lies near its top."""
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for i in range(50):
        (deep / str(i)).touch()

    def small(is_cancelled: Callable[[], bool]) -> Walker:
        return Walker(is_cancelled, most_entries=20)

    place = added_place(tmp_path)
    assert [each.path for each in found_in(place, make_walker=small)] == [str(llama)]
    (sentence,) = notes_on(place, make_walker=small)
    assert "more than 20 files" in sentence


def test_a_tree_that_is_nested_without_end_is_looked_at_in_part_and_that_is_said(
    tmp_path: Path,
) -> None:
    deep = tmp_path.joinpath(*"abcdefghijklmnopq")
    deep.mkdir(parents=True)
    write_llama(deep / "too-deep.gguf")
    assert found_in(added_place(tmp_path)) == []
    assert "nested too deeply" in notes_on(added_place(tmp_path))[0]


def test_a_search_stops_when_it_is_told_to(tmp_path: Path, llama: Path) -> None:
    """Nothing more is found after that."""
    shutil.copytree(llama, tmp_path / "another")
    told: list[object] = []
    for each in search([added_place(tmp_path)], lambda: any(isinstance(e, Found) for e in told)):
        told.append(each)  # noqa: PERF402 - the search asks for what was told while it goes on
    assert sum(isinstance(each, Found) for each in told) == 1


def test_a_header_that_promises_billions_costs_neither_time_nor_memory(tmp_path: Path) -> None:
    """A file with a hole of 100 GB, whose one list promises a text in each eight bytes."""
    name = b"tokenizer.ggml.tokens"
    with (tmp_path / "hole.gguf").open("wb") as file:
        file.write(b"GGUF" + (3).to_bytes(4, "little") + (0).to_bytes(8, "little"))
        file.write((1).to_bytes(8, "little") + len(name).to_bytes(8, "little") + name)
        file.write((9).to_bytes(4, "little") + (8).to_bytes(4, "little"))
        file.write((12 * 10**9).to_bytes(8, "little"))
        file.truncate(100 * 10**9)
    with (tmp_path / "hole.safetensors").open("wb") as file:
        file.write((90 * 10**9).to_bytes(8, "little"))
        file.truncate(100 * 10**9)
    (tmp_path / CONFIG).write_text('{"model_type": "gpt2"}')
    _write_tokenizer(tmp_path, '{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"vocab": {}}}')
    began = time.perf_counter()
    gguf, folder = sorted(found_in(added_place(tmp_path)), key=lambda each: each.name)
    assert time.perf_counter() - began < 5
    assert "damaged" in gguf.reason
    assert "damaged" in folder.reason


@pytest.mark.parametrize("side", [10**4000, -1, 1.5, True, "7", None])
def test_an_absurd_size_in_a_header_is_damage(llama: Path, side: Any) -> None:
    """Nothing is multiplied that would take a year."""
    entry = {"dtype": "F32", "shape": [side] * 3, "data_offsets": [0, 4]}
    header = json.dumps({"w": entry}).encode()
    (llama / WEIGHTS).write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert "damaged" in only(llama).reason


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/models/toy", "toy"),
        ("/models/toy.Q8_0.gguf", "toy.Q8_0"),
        ("/runs/shakespeare/ckpt.pt", "shakespeare"),
        ("/hub/models--gpt2/snapshots/abc", "gpt2"),
        ("/hub/models--a--b/snapshots/abc/Q8/toy.gguf", "a/b: toy"),
        ("/hub/models--a--b/blobs/abc", "a/b"),
        ("/.ollama/models/blobs/sha256-0123456789abcdef", "Ollama sha256-0123456…"),
    ],
)
def test_a_path_alone_gives_a_name_to_read(path: str, name: str) -> None:
    """For a list of models that were opened before."""
    assert model_name(Path(path)) == name


# Memory, and what a search loads


def test_memory_is_what_linux_calls_available() -> None:
    meminfo = "MemTotal:  16314472 kB\nMemFree:  100 kB\nMemAvailable:    9000000 kB\n"
    assert available_in(meminfo) == 9_000_000 * 1024
    assert available_in("MemTotal: 5 kB\nMemAvailable: many kB\n") is None


def test_memory_is_known_here_and_less_than_there_is() -> None:
    """The system's own count of pages is the most it can be."""
    available = available_bytes()
    assert available is not None
    assert 0 < available <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_search_loads_neither_torch_nor_qt(tmp_path: Path) -> None:
    """In a fresh process, over one model of each kind."""
    write_golden(tmp_path / "llama", "llama")
    write_llama(tmp_path / "toy.gguf", KINDS.Q8_0)
    nanogpt(tmp_path / "out" / "ckpt.pt")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from engine.library import Found, added_place, search\n"
        "found = [e for e in search([added_place(Path(sys.argv[1]))]) if isinstance(e, Found)]\n"
        "print(*(each.is_readable for each in found), {'torch', 'PySide6'} & set(sys.modules))\n"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[0] == "True True True set()"
