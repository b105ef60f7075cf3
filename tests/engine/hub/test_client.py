"""Fetching models from a server that stands in this process and answers as Hugging Face's does."""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from engine.errors import CancelledError, DownloadError
from engine.hub import (
    Choice,
    Client,
    Offer,
    Progress,
    Repository,
    download,
    free_bytes,
    lacking_bytes,
    read_repository,
)
from engine.hub.cache import usual_cache
from engine.library import Found, Place, search
from engine.loading import load
from tests.engine.gguf_files import KINDS, write_llama
from tests.engine.hf_files import write_golden
from tests.engine.hub_server import COMMIT, PIECE, HubServer, Remote, digest_of, serving

ROOT = Path(__file__).parents[3]
NAME = "owner/toy-llama"
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A server that holds nothing yet."""
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a llama in Hugging Face's layout, which can be opened."""
    path = tmp_path_factory.mktemp("llama")
    write_golden(path, "llama")
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A GGUF file that can be opened."""
    path = tmp_path_factory.mktemp("gguf") / "toy.gguf"
    write_llama(path, KINDS.Q8_0)
    return path.read_bytes()


@pytest.fixture
def toy(hub: HubServer, folder: dict[str, bytes]) -> Remote:
    """A repository of that llama, with what else such repositories hold."""
    return hub.put(
        NAME,
        {
            **folder,
            "README.md": b"# toy",
            "pytorch_model.bin": b"a pickle",
            "training_args.pt": b"another",
            "onnx/model.onnx": b"onnx",
            "onnx/model.safetensors": b"elsewhere",
        },
    )


def look_up(hub: HubServer, text: str = NAME, revision: str = "") -> Offer:
    """What a user who writes that is offered."""
    return Client(hub.address).look_up(read_repository(text, revision, hub.address))


def fetch(hub: HubServer, root: Path, offer: Offer | None = None, **options: Any) -> Path:
    """Fetch the first choice of an offer, of the toy's if none is given."""
    offer = offer or look_up(hub)
    options = {"pauses": (0, 0, 0), **options}
    return download(Client(hub.address), offer, offer.choices[offer.usual], root, **options)


def refused(hub: HubServer, text: str = NAME, revision: str = "") -> str:
    """The sentence that is told instead of an offer."""
    with pytest.raises(DownloadError) as told:
        look_up(hub, text, revision)
    return is_sentence(str(told.value))


def is_sentence(text: str) -> str:
    """See that an error is fit to be shown."""
    assert "\n" not in text
    assert text.endswith((".", "?"))
    return text


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


# What a user writes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("owner/name", Repository("owner/name")),
        ("  Owner_1/na.me-2  ", Repository("Owner_1/na.me-2")),
        ("gpt2", Repository("gpt2")),
        ("https://huggingface.co/owner/name", Repository("owner/name")),
        ("https://huggingface.co/owner/name/?library=x#top", Repository("owner/name")),
        ("huggingface.co/owner/name", Repository("owner/name")),
        ("hf.co/owner/name", Repository("owner/name")),
        ("https://huggingface.co/gpt2", Repository("gpt2")),
        ("https://huggingface.co/gpt2/tree/dev", Repository("gpt2", "dev")),
        ("https://huggingface.co/owner/name/tree/v1.0", Repository("owner/name", "v1.0")),
        (
            "https://huggingface.co/owner/name/tree/refs%2Fpr%2F3",
            Repository("owner/name", "refs/pr/3"),
        ),
        ("https://huggingface.co/owner/name/tree/refs/pr/3", Repository("owner/name", "refs/pr/3")),
        (
            "https://huggingface.co/owner/name/blob/main/Q8/toy.gguf",
            Repository("owner/name", "main", "Q8/toy.gguf"),
        ),
        (
            "https://huggingface.co/owner/name/resolve/main/toy%20a.gguf?download=true",
            Repository("owner/name", "main", "toy a.gguf"),
        ),
    ],
)
def test_a_name_or_the_address_of_a_page_is_understood(text: str, expected: Repository) -> None:
    assert read_repository(text) == expected


def test_a_revision_that_is_written_wins_over_that_of_the_address() -> None:
    text = "https://huggingface.co/owner/name/tree/dev"
    assert read_repository(text, " v2 ").revision == "v2"


def test_addresses_of_the_endpoint_are_understood() -> None:
    """And of no third server."""
    text = "http://localhost:8080/owner/name"
    assert read_repository(text, endpoint="http://localhost:8080").name == "owner/name"
    with pytest.raises(DownloadError, match="is no address of huggingface"):
        read_repository(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "owner/",
        "owner/name/more",
        "owner/na me",
        "../../etc",
        "owner/..",
        "owner/a--b",
        "owner/-a",
        "owner/näme",
        "owner/" + "a" * 97,
        "https://huggingface.co",
        "https://huggingface.co/datasets/owner/name",
        "https://example.com/owner/name",
        "ftp://huggingface.co/owner/name",
        "https://[half",
        "a\nb",
        "x" * 10_000,
    ],
)
def test_what_is_no_name_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(DownloadError) as told:
        read_repository(text)
    assert len(is_sentence(str(told.value))) < 300


@pytest.mark.parametrize("revision", ["a b", "../x", "a..b", "-x", "/x", "x" * 201, "a\nb"])
def test_what_is_no_revision_is_refused_in_a_sentence(revision: str) -> None:
    with pytest.raises(DownloadError, match="is no revision; write the name of a branch") as told:
        read_repository("owner/name", revision)
    assert len(is_sentence(str(told.value))) < 300


# What is offered


def test_an_offer_names_the_commit_and_the_files_without_a_pickle(
    hub: HubServer, toy: Remote
) -> None:
    """Those that are needed, at the sizes and with the checksums that they have."""
    offer = look_up(hub)
    assert (offer.repository, offer.revision, offer.commit) == (NAME, "main", COMMIT)
    (choice,) = offer.choices
    assert choice.title == "safetensors (1 file of weights)"
    assert choice.opens == ""
    assert {file.name for file in choice.files} == {CONFIG, "tokenizer.json", WEIGHTS}
    for file in choice.files:
        assert file.n_bytes == len(toy.files[file.name])
        assert file.digest == digest_of(file.name, toy.files[file.name])
    assert choice.n_bytes == sum(len(toy.files[file.name]) for file in choice.files)


def test_a_branch_is_pinned_to_the_commit_that_it_is_at(hub: HubServer, toy: Remote) -> None:
    toy.commits = {"main": COMMIT, "refs/pr/1": "a" * 40}
    offer = look_up(hub, revision="refs/pr/1")
    assert (offer.revision, offer.commit) == ("refs/pr/1", "a" * 40)
    assert look_up(hub, revision="a" * 40).commit == "a" * 40


def test_of_weights_in_several_files_those_of_the_index_are_taken(
    hub: HubServer, folder: dict[str, bytes]
) -> None:
    """Not what lies beside them."""
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = {"weight_map": {"a": names[0], "b": names[1], "c": names[0]}}
    files = {**folder, INDEX: json.dumps(index).encode(), "consolidated.safetensors": b"twice"}
    del files[WEIGHTS]
    hub.put(NAME, {**files, names[0]: b"one", names[1]: b"two"})
    (choice,) = look_up(hub).choices
    assert choice.title == "safetensors (2 files of weights)"
    taken = {file.name for file in choice.files}
    assert taken == {CONFIG, "tokenizer.json", INDEX, *names}


@pytest.mark.parametrize(
    "listed", ["pytorch_model.bin", "gone.safetensors", "onnx/model.safetensors"]
)
def test_an_index_cannot_bring_in_a_pickle_or_what_is_elsewhere(
    hub: HubServer, toy: Remote, listed: str
) -> None:
    toy.files[INDEX] = json.dumps({"weight_map": {"a": listed}}).encode()
    assert f"names {listed}; it should name the safetensors files beside it" in refused(hub)


def test_a_repository_of_gguf_files_offers_each_of_them(hub: HubServer, gguf: bytes) -> None:
    """The smallest first; what was pointed at, or one of eight bits, to begin with."""
    files = {
        "toy-f16.gguf": gguf + bytes(300),
        "Q4/toy-q4_k_m.gguf": gguf,
        "toy-Q8_0.gguf": gguf + bytes(100),
        "mmproj-toy.gguf": b"x",
        "more/big-00001-of-00002.gguf": gguf + bytes(400),
        "more/big-00002-of-00002.gguf": b"x",
        "lacking-00002-of-00002.gguf": b"x",
        CONFIG: b"{}",
    }
    hub.put("owner/toy-GGUF", files)
    offer = look_up(hub, "owner/toy-GGUF")
    names = ["Q4/toy-q4_k_m.gguf", "toy-Q8_0.gguf", "toy-f16.gguf"]
    assert [choice.title for choice in offer.choices[:3]] == names
    assert [[file.name for file in choice.files] for choice in offer.choices[:3]] == [
        [n] for n in names
    ]
    (parts,) = offer.choices[3:]
    assert parts.title == "more/big.gguf (2 files)"
    assert [file.name for file in parts.files] == [
        f"more/big-0000{n}-of-00002.gguf" for n in (1, 2)
    ]
    assert parts.n_bytes == len(gguf) + 401
    assert parts.opens == parts.files[0].name
    assert offer.choices[offer.usual].title == "toy-Q8_0.gguf"
    pointed = look_up(hub, f"{hub.address}/owner/toy-GGUF/blob/main/toy-f16.gguf")
    assert pointed.choices[pointed.usual].title == "toy-f16.gguf"
    part = look_up(hub, f"{hub.address}/owner/toy-GGUF/blob/main/{parts.files[1].name}")
    assert part.choices[part.usual] == parts


def test_a_repository_with_both_offers_both(hub: HubServer, toy: Remote, gguf: bytes) -> None:
    toy.files["toy.gguf"] = gguf
    offer = look_up(hub)
    assert [choice.opens for choice in offer.choices] == ["", "toy.gguf"]
    assert offer.usual == 0


# What is refused before anything is fetched


def without_weights(toy: Remote) -> None:
    del toy.files[WEIGHTS]


def family(toy: Remote) -> None:
    toy.files[CONFIG] = b'{"model_type": "mamba"}'


def quantised(toy: Remote) -> None:
    settings = json.loads(toy.files[CONFIG]) | {"quantization_config": {"quant_method": "gptq"}}
    toy.files[CONFIG] = json.dumps(settings).encode()


def no_vocabulary(toy: Remote) -> None:
    del toy.files["tokenizer.json"]


def no_config(toy: Remote) -> None:
    del toy.files[CONFIG]


def bad_config(toy: Remote) -> None:
    toy.files[CONFIG] = b"{"


def some_parts(toy: Remote) -> None:
    toy.files = {f"m-0000{n}-of-00003.gguf": b"x" for n in (1, 2)}


def nothing(toy: Remote) -> None:
    toy.files = {"README.md": b"# empty"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (without_weights, "Its weights are in pytorch_model.bin only, a pickle, which may run"),
        (family, "The family 'mamba' is not known here; known: gpt2, llama"),
        (quantised, "Its weights are quantised by 'gptq'"),
        (no_vocabulary, "It holds no vocabulary; there should be a tokenizer.json"),
        (no_config, "It holds no config.json"),
        (bad_config, "config.json of owner/toy-llama is not JSON"),
        (
            some_parts,
            "several GGUF files that belong together (m-00001-of-00003.gguf, …), and not all",
        ),
        (nothing, "It holds neither safetensors nor GGUF files"),
    ],
)
def test_what_could_not_be_opened_is_refused_with_the_reason(
    hub: HubServer, toy: Remote, change: Callable[[Remote], None], sentence: str
) -> None:
    """And no weights were asked for."""
    change(toy)
    assert sentence in refused(hub)
    assert not [each for each in hub.requests if "/large/" in each.path]


@pytest.mark.parametrize(
    ("refusal", "sentence"),
    [
        ((401, "GatedRepo"), "is gated: accept its conditions on http://127.0.0.1"),
        ((403, "GatedRepo"), "is gated: accept its conditions on http://127.0.0.1"),
        ((401, "RepoNotFound"), "has no repository owner/toy-llama, or it is private"),
        ((401, ""), "has no repository owner/toy-llama, or it is private"),
        ((403, ""), "does not let you have owner/toy-llama (403)"),
        ((404, ""), "has no repository owner/toy-llama, or it is private"),
        ((429, ""), "has been asked too often (429)"),
        ((400, ""), "could not answer (400)"),
        ((503, ""), "could not answer (503); try again later"),
    ],
)
@pytest.mark.usefixtures("toy")
def test_a_refusal_of_the_server_is_one_sentence(
    hub: HubServer, refusal: tuple[int, str], sentence: str
) -> None:
    hub.refusal = refusal
    assert sentence in refused(hub)


@pytest.mark.usefixtures("toy")
def test_a_name_or_a_revision_that_is_not_there_is_one_sentence(hub: HubServer) -> None:
    assert "has no repository owner/nobody, or it is private" in refused(hub, "owner/nobody")
    assert refused(hub, revision="v9") == "owner/toy-llama has no revision 'v9'."


@pytest.mark.parametrize("answer", [b"<html>Log in to our wireless network</html>", b"{}", b"[]"])
def test_an_answer_of_somebody_else_is_one_sentence(hub: HubServer, answer: bytes) -> None:
    hub.answer = answer
    assert "answers as no such server does" in refused(hub)


def test_offline_is_one_sentence() -> None:
    """Nobody listens on the port of a server that has gone."""
    with serving() as hub:
        address = hub.address
    with pytest.raises(DownloadError) as told:
        Client(address).look_up(Repository(NAME))
    text = is_sentence(str(told.value))
    assert text.startswith(f"{address.removeprefix('http://')} cannot be reached (")
    assert "Errno" not in text
    assert "is this computer online?" in text


@pytest.mark.usefixtures("toy")
def test_being_told_to_stay_offline_is_one_sentence(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert refused(hub).startswith("HF_HUB_OFFLINE tells this program to stay off the network")
    assert hub.requests == []


@pytest.mark.parametrize("endpoint", ["nonsense", "ftp://127.0.0.1", "http://"])
def test_an_endpoint_that_is_none_is_one_sentence(endpoint: str) -> None:
    with pytest.raises(DownloadError) as told:
        Client(endpoint).look_up(Repository(NAME))
    is_sentence(str(told.value))


@pytest.mark.parametrize(
    "changes",
    [
        {"rfilename": "../../../.bashrc"},
        {"rfilename": "/etc/passwd"},
        {"rfilename": "a\\..\\b.gguf"},
        {"rfilename": "C:x.gguf"},
        {"rfilename": ""},
        {"size": -1},
        {"size": None},
        {"size": "12"},
        {"lfs": None, "blobId": "../../x"},
        {"lfs": None, "blobId": None},
    ],
)
def test_a_list_that_would_lead_out_of_the_cache_is_refused(
    hub: HubServer, toy: Remote, changes: dict[str, Any]
) -> None:
    toy.files = {"toy.txt": b"x"}
    hub.changes = changes
    assert "which is not fetched" in refused(hub)


# Fetching


def test_what_was_fetched_opens_and_is_where_every_program_looks(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """Hugging Face's library finds its own layout, and our search finds the model."""
    root = tmp_path / "hub"
    path = fetch(hub, root)
    assert files_below(path) == {CONFIG, "tokenizer.json", WEIGHTS}
    for name in (CONFIG, "tokenizer.json", WEIGHTS):
        assert (path / name).read_bytes() == toy.files[name]
        theirs = huggingface_hub.try_to_load_from_cache(NAME, name, cache_dir=root)
        assert theirs == str(path / name)
    scan = huggingface_hub.scan_cache_dir(root)
    assert not scan.warnings
    (repository,) = scan.repos
    assert repository.repo_id == NAME
    ((revision),) = repository.revisions
    assert (revision.commit_hash, revision.refs) == (COMMIT, frozenset({"main"}))
    (found,) = (f for f in search([Place("cache", root, "hub")]) if isinstance(f, Found))
    assert (found.name, found.path, found.reason) == (NAME, str(path), "")
    assert load(path).info.n_parameters == found.n_parameters


def test_one_gguf_file_is_fetched_alone(hub: HubServer, gguf: bytes, tmp_path: Path) -> None:
    hub.put(NAME, {"Q8/toy.gguf": gguf, "other.gguf": gguf + b"x", CONFIG: b"{}"})
    offer = look_up(hub, f"{hub.address}/{NAME}/blob/main/Q8/toy.gguf")
    path = fetch(hub, tmp_path, offer)
    assert path.parts[-2:] == ("Q8", "toy.gguf")
    assert path.read_bytes() == gguf
    assert load(path).model.config.n_layer == 2
    assert hub.transfers("other.gguf") == []


def test_nothing_but_the_files_is_asked_for(hub: HubServer, toy: Remote, tmp_path: Path) -> None:
    """Neither pickles nor counters nor lists of programs, and no other server."""
    fetch(hub, tmp_path)
    paths = {each.path for each in hub.requests}
    wanted = {f"/{NAME}/resolve/{COMMIT}/{n}" for n in (CONFIG, "tokenizer.json", WEIGHTS)}
    large = f"/large/{digest_of(WEIGHTS, toy.files[WEIGHTS])}"
    assert paths == {f"/api/models/{NAME}/revision/main", *wanted, large}


@pytest.mark.usefixtures("toy")
def test_the_users_token_is_sent(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a gated repository opens to whoever may have it; to no second server."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    fetch(hub, tmp_path)
    tokens = {"/large/" in each.path: each.headers.get("authorization") for each in hub.requests}
    assert tokens == {False: "Bearer hf_secret", True: None}


def test_files_come_from_the_pinned_commit_although_the_branch_has_moved(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    offer = look_up(hub)
    toy.commits = {"main": "b" * 40, "before": COMMIT}
    path = fetch(hub, tmp_path, offer)
    assert path.name == COMMIT
    assert not [each for each in hub.requests if "b" * 40 in each.path]


@pytest.mark.usefixtures("toy")
def test_a_commit_that_was_asked_for_by_its_name_moves_no_branch(
    hub: HubServer, tmp_path: Path
) -> None:
    path = fetch(hub, tmp_path, look_up(hub, revision=COMMIT))
    assert not (path.parents[1] / "refs").exists()


@pytest.mark.usefixtures("toy")
def test_progress_counts_the_bytes_of_all_files(hub: HubServer, tmp_path: Path) -> None:
    heard: list[Progress] = []
    offer = look_up(hub)
    fetch(hub, tmp_path, offer, told=heard.append)
    n_total = offer.choices[0].n_bytes
    done = [each.n_done for each in heard]
    assert done == sorted(done)
    assert done[-1] == n_total
    assert {each.n_total for each in heard} == {n_total}
    assert [name for name, _ in itertools.groupby(each.file for each in heard)] == [
        file.name for file in offer.choices[0].files
    ]


@pytest.mark.usefixtures("toy")
def test_what_is_there_is_not_fetched_again(hub: HubServer, tmp_path: Path) -> None:
    first = fetch(hub, tmp_path)
    hub.requests.clear()
    offer = look_up(hub)
    assert lacking_bytes(offer, offer.choices[0], tmp_path) == 0
    assert fetch(hub, tmp_path, offer) == first
    assert not hub.transfers(WEIGHTS)


def test_what_another_program_fetched_is_taken_over(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """Hugging Face's library itself."""
    huggingface_hub.hf_hub_download(
        NAME, WEIGHTS, cache_dir=tmp_path, endpoint=hub.address, revision=COMMIT
    )
    hub.requests.clear()
    path = fetch(hub, tmp_path)
    assert not hub.transfers(WEIGHTS)
    assert (path / WEIGHTS).read_bytes() == toy.files[WEIGHTS]


def test_files_without_symbolic_links_are_named_as_well(
    hub: HubServer, toy: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows; and once more, without hard links either."""

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    linked = fetch(hub, tmp_path / "one")
    assert (linked / WEIGHTS).stat().st_nlink == 2
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    copied = fetch(hub, tmp_path / "two")
    for path in (linked, copied):
        assert not (path / WEIGHTS).is_symlink()
        assert (path / WEIGHTS).read_bytes() == toy.files[WEIGHTS]


# Stopping and going on


def stop_after(hub: HubServer, n_pieces: int, n_bytes: int) -> dict[str, Any]:
    """Options that give a download up once so many bytes are there, of so many pieces."""
    hub.gate = gate = threading.Semaphore(n_pieces)
    stop = threading.Event()

    def told(progress: Progress) -> None:
        if progress.n_done >= n_bytes:
            stop.set()
            gate.release(10_000)

    return {"told": told, "cancelled": stop.is_set}


def test_stopping_keeps_what_came_and_the_next_call_goes_on_from_there(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """Over a new start: nothing is remembered but what is on the disk."""
    offer = look_up(hub)
    small = [file.n_bytes for file in offer.choices[0].files if file.name != WEIGHTS]
    n_pieces = sum(ceil(n_bytes / PIECE) for n_bytes in small) + 5
    with pytest.raises(CancelledError):
        fetch(hub, tmp_path, offer, **stop_after(hub, n_pieces, sum(small) + 5 * PIECE))
    lacking = lacking_bytes(offer, offer.choices[0], tmp_path)
    assert 0 < lacking <= len(toy.files[WEIGHTS]) - 5 * PIECE
    assert not [f for f in search([Place("cache", tmp_path, "hub")]) if isinstance(f, Found)]
    path = fetch(hub, tmp_path, offer)
    assert hub.transfers(WEIGHTS) == [None, len(toy.files[WEIGHTS]) - lacking]
    assert (path / WEIGHTS).read_bytes() == toy.files[WEIGHTS]
    assert not list(tmp_path.rglob("*.incomplete"))


@pytest.mark.usefixtures("toy")
def test_being_stopped_before_it_began_asks_for_nothing(hub: HubServer, tmp_path: Path) -> None:
    offer = look_up(hub)
    hub.requests.clear()
    with pytest.raises(CancelledError):
        fetch(hub, tmp_path, offer, cancelled=lambda: True)
    assert hub.requests == []


def test_a_connection_that_breaks_is_taken_up_again(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """As often as something came in between."""
    n_total = len(toy.files[WEIGHTS])
    hub.put(NAME, {name: toy.files[name] for name in (CONFIG, "tokenizer.json", WEIGHTS)})
    offer = look_up(hub)
    hub.breaks_after = [10**9, 10**9, 3000, 2000, 1000, 1000, 1000, 1000]
    path = fetch(hub, tmp_path, offer)
    starts = [0 if start is None else start for start in hub.transfers(WEIGHTS)]
    assert starts == sorted(set(starts))
    assert len(starts) == 7
    assert starts[-1] <= 9000 < n_total
    assert (path / WEIGHTS).read_bytes() == toy.files[WEIGHTS]


def test_a_connection_that_stays_broken_is_one_sentence_and_costs_nothing(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    offer = look_up(hub)
    hub.breaks_after = [10**9, 10**9, 3000, 0, 0, 0, 0]
    with pytest.raises(DownloadError) as told:
        fetch(hub, tmp_path, offer)
    text = is_sentence(str(told.value))
    kept = offer.choices[0].n_bytes - lacking_bytes(offer, offer.choices[0], tmp_path)
    assert f"broke off after {kept:,} of {offer.choices[0].n_bytes:,} bytes" in text
    assert "what came is kept, and another try goes on from there" in text
    hub.breaks_after = []
    assert (fetch(hub, tmp_path, offer) / WEIGHTS).read_bytes() == toy.files[WEIGHTS]
    assert hub.transfers(WEIGHTS)[-1] is not None


@pytest.mark.usefixtures("toy")
def test_a_server_that_is_gone_is_said_at_once(hub: HubServer, tmp_path: Path) -> None:
    offer = look_up(hub)
    with serving() as other:
        address = other.address
    with pytest.raises(DownloadError, match="cannot be reached"):
        download(Client(address), offer, offer.choices[0], tmp_path, pauses=(1000,))


def test_a_server_that_sends_no_parts_sends_all_again(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    hub.sends_parts = False
    offer = look_up(hub)
    hub.breaks_after = [10**9, 10**9, 3000]
    path = fetch(hub, tmp_path, offer)
    assert (path / WEIGHTS).read_bytes() == toy.files[WEIGHTS]


def test_a_file_that_came_damaged_is_thrown_away(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """And fetched from its beginning by the next call."""
    hub.is_damaged = True
    with pytest.raises(DownloadError, match="its checksum differs") as told:
        fetch(hub, tmp_path)
    is_sentence(str(told.value))
    assert not list(tmp_path.rglob("*.incomplete"))
    hub.is_damaged = False
    assert (fetch(hub, tmp_path) / WEIGHTS).read_bytes() == toy.files[WEIGHTS]
    assert hub.transfers(WEIGHTS) == [None, None]


def test_what_was_kept_is_checked_with_the_rest(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """Bytes of the right number that are not the file's."""
    offer = look_up(hub)
    blobs = tmp_path / "models--owner--toy-llama" / "blobs"
    blobs.mkdir(parents=True)
    partial = blobs / f"{digest_of(WEIGHTS, toy.files[WEIGHTS])}.incomplete"
    partial.write_bytes(bytes(4000))
    with pytest.raises(DownloadError, match="its checksum differs"):
        fetch(hub, tmp_path, offer)
    assert hub.transfers(WEIGHTS) == [4000]
    partial.write_bytes(bytes(len(toy.files[WEIGHTS]) + 1))  # more than it can have
    assert (fetch(hub, tmp_path, offer) / WEIGHTS).read_bytes() == toy.files[WEIGHTS]


def test_a_server_that_sends_more_than_it_lists_is_stopped(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    offer = look_up(hub)
    toy.files[CONFIG] += bytes(50)
    n_listed = next(file.n_bytes for file in offer.choices[0].files if file.name == CONFIG)
    with pytest.raises(DownloadError, match=f"sends more than the {n_listed:,} bytes of config"):
        fetch(hub, tmp_path, offer)


# The disk


@pytest.mark.usefixtures("toy")
def test_too_little_room_is_said_with_the_figures_before_anything_is_fetched(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = look_up(hub)
    hub.requests.clear()
    monkeypatch.setattr("engine.hub.transfer.free_bytes", lambda _root: 70_000_000)
    big = Choice("big", tuple(file for file in offer.choices[0].files))
    assert big.n_bytes < 70_000_000 - 67_108_864  # it would fit
    monkeypatch.setattr("engine.hub.transfer.free_bytes", lambda _root: 67_108_864)
    with pytest.raises(DownloadError) as told:
        fetch(hub, tmp_path, offer)
    text = is_sentence(str(told.value))
    assert f"{big.n_bytes:,} bytes are still to come" in text
    assert "has room for only 67,108,864" in text
    assert hub.requests == []


def test_free_room_is_that_of_the_disk_although_the_folder_is_not_there(tmp_path: Path) -> None:
    status = os.statvfs(tmp_path)
    free = free_bytes(tmp_path / "not" / "there")
    assert free is not None
    assert abs(free - status.f_bavail * status.f_frsize) < 2**30  # others write meanwhile


def test_a_disk_that_fills_up_or_refuses_is_one_sentence(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    if not Path("/dev/full").exists():
        pytest.fail("this test needs /dev/full")
    offer = look_up(hub)
    blobs = tmp_path / "models--owner--toy-llama" / "blobs"
    blobs.mkdir(parents=True)
    digest = digest_of(CONFIG, toy.files[CONFIG])
    (blobs / f"{digest}.incomplete").symlink_to("/dev/full")
    with pytest.raises(DownloadError, match=r"is full .* make room, and another try") as told:
        fetch(hub, tmp_path, offer)
    is_sentence(str(told.value))
    file = tmp_path / "file"
    file.write_bytes(b"in the way")
    with pytest.raises(DownloadError, match="cannot be written") as told:
        fetch(hub, file, offer)
    is_sentence(str(told.value))


def test_a_file_that_another_program_is_fetching_is_left_to_it(
    hub: HubServer, toy: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the lock that Hugging Face's library takes."""
    monkeypatch.setattr("engine.hub.transfer._LOCK_SECONDS", 0.05)
    offer = look_up(hub)
    name = f"{digest_of(CONFIG, toy.files[CONFIG])}.lock"
    lock = tmp_path / ".locks" / "models--owner--toy-llama" / name
    lock.parent.mkdir(parents=True)
    with (
        huggingface_hub.utils.WeakFileLock(lock),
        pytest.raises(DownloadError, match="Another program is fetching the same file"),
    ):
        fetch(hub, tmp_path, offer)
    fetch(hub, tmp_path, offer)


# The process


def test_the_endpoint_setting_and_the_usual_cache_are_those_of_the_environment(
    hub: HubServer, toy: Remote, tmp_path: Path
) -> None:
    """In a process that is told nothing else."""
    code = (
        "from engine.hub import *\n"
        "client = Client()\n"
        f"offer = client.look_up(read_repository({NAME!r}))\n"
        "print(download(client, offer, offer.choices[0]))\n"
    )
    told = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = tmp_path / "home" / "hub" / "models--owner--toy-llama" / "snapshots" / COMMIT
    assert done.stdout.split() == [str(expected)]
    assert not done.stderr
    assert (expected / WEIGHTS).read_bytes() == toy.files[WEIGHTS]


def test_the_usual_cache_is_the_one_that_is_searched() -> None:
    assert str(usual_cache()) == huggingface_hub.constants.HF_HUB_CACHE
