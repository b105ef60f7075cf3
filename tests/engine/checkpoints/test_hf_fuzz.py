"""Whatever stands in the files of a folder, it opens or says in one sentence why it does not.

`test_hf_folder` cuts files and flips their bytes, which mostly ends at the JSON. Here the JSON is
in order and says anything: other kinds, absurd sizes, other structures, steps within steps.
"""

import copy
import json
import struct
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.checkpoints.hf_folder import INDEX_FILE
from engine.errors import EngineError
from engine.library.folder_model import describe_folder
from engine.loading import load
from tests.engine.hf_files import read_golden, write_golden
from tests.engine.tokenizers.test_hugging_face_tokenizers import KINDS, POST_PROCESSORS

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
FAMILIES = ("gpt2", "gpt_neo", "gpt_neox", "llama_yarn", "phi3_long", "gemma3")
MOST_BYTES = 8_000_000  # a toy's weights and what opening takes beside them
LONGEST_SENTENCE = 700

_SIZES = st.sampled_from([0, -1, 1, 3, 2**24, 2**31, 2**63, 10**30, 10**400, -(10**30)])
_NUMBERS = _SIZES | st.sampled_from([0.5, -0.0, 1e-320, 1e308, float("nan"), float("inf")])
_WORDS = st.sampled_from(["", "x", "Sequence", "Split", "ByteLevel", "yarn", "\ud800", "\0", ".."])
# What other programs write in one place, in all others.
_STEPS = st.sampled_from(
    [
        {"type": "Sequence"},
        {"type": "Sequence", "processors": [3]},
        {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        {"type": "Sequence", "pretokenizers": [{}]},
        {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False},
        {"type": "Replace", "pattern": {"String": " "}},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a"}}]},
        {"rope_type": "longrope", "short_factor": ["a"]},
        {"rope_type": "linear", "factor": -1},
        {"full_attention": {"rope_type": "llama3"}},
    ]
)
_ANY_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _WORDS | _STEPS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=6,
)

MODEST = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in JSON; of long lists, some."""
    yield at
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for n, (key, each) in enumerate(inner):
        if n < 40:
            yield from _places(each, (*at, key))


def _with(value: Any, at: tuple[Any, ...], instead: Any) -> Any:
    """JSON with something else in one place; "leave out" takes it away."""
    if not at:
        return instead
    value = copy.copy(value)
    if len(at) == 1 and instead == "leave out":
        del value[at[0]]
    else:
        value[at[0]] = _with(value[at[0]], at[1:], instead)
    return value


@st.composite
def _damaged(draw: Any, sound: Any) -> Any:
    """JSON with one to three places changed."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.sampled_from(list(_places(sound))))
        sound = _with(sound, at, draw(st.just("leave out") | _ANY_JSON))
    return sound


def _check(folder: Path) -> None:
    """It opens, reads and gives back a text, or one sentence says why not; neither takes long.

    Whoever only lists it is not stopped by it.
    """
    describe_folder(folder, tuple(sorted(path.name for path in folder.iterdir())))
    began = time.process_time()
    tracemalloc.start()
    try:
        loaded = load(folder)
        text = "to be <s>\ud800 ▁\0"
        token_ids = loaded.tokenizer.encode(text)
        assert loaded.tokenizer.decode(token_ids)
        with torch.no_grad():
            loaded.model(torch.tensor([*loaded.info.prefix_ids, *token_ids[:8]]))
    except EngineError as error:
        said = str(error).replace(str(folder), "")
        assert "\n" not in said
        assert said.endswith(".")
        assert len(said) < LONGEST_SENTENCE
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < MOST_BYTES
    assert time.process_time() - began < 5


def _put(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize("family", FAMILIES)
@MODEST
@given(data=st.data())
def test_any_settings(
    tmp_path_factory: pytest.TempPathFactory, family: str, data: st.DataObject
) -> None:
    """Of any kind and size; nothing is allocated because a number says so."""
    folder = _folder(tmp_path_factory, family)
    sound = json.loads(str(read_golden(family)[0]["config"]))
    _put(folder, CONFIG, data.draw(_damaged(sound)))
    _check(folder)
    _put(folder, CONFIG, sound)


_FOLDERS: dict[str, Path] = {}


def _folder(factory: pytest.TempPathFactory, family: str) -> Path:
    """A sound folder of a family, written once."""
    if family not in _FOLDERS:
        _FOLDERS[family] = factory.mktemp(family)
        write_golden(_FOLDERS[family], family)
        load(_FOLDERS[family])  # so that later ones import nothing more
    return _FOLDERS[family]


@pytest.mark.parametrize("kind", KINDS)
@MODEST
@given(data=st.data())
def test_any_vocabulary(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    """Steps of any kind, ids of any number, tokens of any type."""
    folder = _folder(tmp_path_factory, "llama")
    sound = {**KINDS[kind], "post_processor": POST_PROCESSORS["as Llama 3 has it"][0]}
    if kind == "byte level":
        sound["model"]["vocab"] = dict(list(sound["model"]["vocab"].items())[:260])
    _put(folder, TOKENIZER, data.draw(_damaged(sound)))
    _check(folder)


@pytest.mark.parametrize(
    ("step", "inner"),
    [
        ("pre_tokenizer", "pretokenizers"),
        ("normalizer", "normalizers"),
        ("post_processor", "processors"),
    ],
)
@pytest.mark.parametrize("depth", [20, 150, 300, 450, 480])
def test_steps_within_steps(
    tmp_path_factory: pytest.TempPathFactory, step: str, inner: str, depth: int
) -> None:
    """However deep: the interpreter's own limit is no crash."""
    folder = _folder(tmp_path_factory, "llama")
    nested: Any = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    text = json.dumps({**KINDS["byte level"], step: "here"})
    opening, closing = f'{{"type": "Sequence", "{inner}": [', "]}"
    nested = opening * depth + json.dumps(nested) + closing * depth
    (folder / TOKENIZER).write_text(text.replace('"here"', nested), encoding="utf-8")
    _check(folder)


def _in_two_files(folder: Path) -> Any:
    """The weights in two files, and the index that says so."""
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    return {
        "metadata": {"total_size": 1},
        "weight_map": {name: file for file, part in parts.items() for name in part},
    }


@MODEST
@given(data=st.data())
@example(data=None).via("a list in place of a name")
def test_any_index(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject | None) -> None:
    """Files that are none, names that lead elsewhere, other things than names."""
    folder = _folder(tmp_path_factory, "mistral")
    sound = _in_two_files(folder)
    if data is None:
        damaged = _with(sound, ("weight_map", "lm_head.weight"), ["a.safetensors"])
    else:
        damaged = data.draw(_damaged(sound))
    _put(folder, INDEX_FILE, damaged)
    _check(folder)


@MODEST
@given(data=st.data())
def test_any_header_of_weights(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Shapes, kinds and places that the bytes behind them cannot be."""
    folder = _folder(tmp_path_factory, "qwen3")
    sound = (folder / WEIGHTS).read_bytes()
    (length,) = struct.unpack_from("<Q", sound)
    header = json.loads(sound[8 : 8 + length])
    damaged = json.dumps(data.draw(_damaged(header))).encode()
    told = data.draw(st.just(len(damaged)) | st.sampled_from([0, 2**20, 2**40, 2**63]))
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", told) + damaged + sound[8 + length :])
    _check(folder)
    (folder / WEIGHTS).write_bytes(sound)


def test_json_cut_at_every_byte(tmp_path: Path) -> None:
    """Of the settings and of the index: no shorter file passes for the whole one."""
    write_golden(tmp_path, "llama")
    _put(tmp_path, INDEX_FILE, _in_two_files(tmp_path))
    load(tmp_path)
    for name in (CONFIG, INDEX_FILE):
        sound = (tmp_path / name).read_bytes().rstrip()
        for cut in range(len(sound)):
            (tmp_path / name).write_bytes(sound[:cut])
            with pytest.raises(EngineError) as caught:
                load(tmp_path)
            assert "\n" not in str(caught.value)
        (tmp_path / name).write_bytes(sound)


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", "tokenizer_config.json"])
@MODEST
@given(data=st.data())
def test_any_older_vocabulary(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    """vocab.json, merges.txt, and what tokenizer_config.json says of them."""
    folder = _folder(tmp_path_factory, "gpt2")
    model = KINDS["byte level"]["model"]
    vocab = dict(list(model["vocab"].items())[:256])
    (folder / TOKENIZER).unlink(missing_ok=True)
    facts = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "Ġ"}
    for file, value in (("vocab.json", vocab), ("tokenizer_config.json", facts)):
        _put(folder, file, data.draw(_damaged(value)) if file == name else value)
    lines = data.draw(st.text(max_size=40)) if name == "merges.txt" else "#version: 0.2\n"
    (folder / "merges.txt").write_text(lines, encoding="utf-8", errors="surrogatepass")
    _check(folder)
