"""Memory is counted before a model is read, and "automatic" takes what there is room for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import engine.architectures
from engine import matrices
from engine.errors import CheckpointError
from engine.formats import FORMATS, FormatChoice, FormatName, Held
from engine.loading import Loaded, load
from engine.model import Transformer
from engine.sizes import bytes_said
from engine.weight_room import WeightRoom, held_bytes, peak_bytes

BY_PRECISION: tuple[FormatName, ...] = ("float32", "float16", "bfloat16", "int8")
ways = pytest.mark.parametrize("packs", [True, False], ids=["as here", "without fbgemm"])
ties = pytest.mark.parametrize("tied", [True, False], ids=["tied", "not tied"])


@pytest.fixture
def deep(make_folder: Callable[..., Path]) -> Path:
    """One whose layers take more than its table, so that it is fullest when all is read."""
    return make_folder(d_model=64, n_layer=6, n_kv_head=4)


def on_meta(loaded: Loaded) -> Transformer:
    """The shapes of a model."""
    with torch.device("meta"):
        return Transformer(loaded.model.config)


def there_are(monkeypatch: pytest.MonkeyPatch, n_bytes: int | None) -> None:
    """So many bytes of memory."""
    monkeypatch.setattr(engine.architectures, "available_bytes", lambda: n_bytes)


def without_fbgemm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that lacks it."""
    monkeypatch.setattr(matrices, "has_packed", lambda _format: False)


@ways
@ties
@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal", "alibi"])
def test_what_is_counted_is_what_is_held(
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    positions: str,
    tied: bool,  # noqa: FBT001
    packs: bool,  # noqa: FBT001
) -> None:
    """To the byte, in every format, from shapes alone."""
    if not packs:
        without_fbgemm(monkeypatch)
    folder = make_folder(positions, tied_output=tied, mlp_bias=True)
    shapes = on_meta(load(folder))
    for name in FORMATS:
        assert held_bytes(shapes, name) == load(folder, FormatChoice(name)).info.held.n_bytes


def test_the_fullest_moment_is_counted_by_hand(tiny: Callable[..., Any]) -> None:
    """With a large table that is read first, and with one that is read last.

    A large matrix may be at hand while all others are read that have no more numbers together.
    """
    sizes = {"d_model": 16, "n_layer": 1, "n_kv_head": 4, "vocab_size": 1000, "d_ff": 32}
    model = tiny("alibi", tied_output=True, mlp="plain", **sizes).model
    table, joined, down = 1000 * 16, 3 * 16 * 16, 32 * 16
    slopes, norm = 4 * 4, 4 * 2 * 16
    by_then = held_bytes(model, "bfloat16", "cuda") - norm  # at the last matrix
    assert peak_bytes(model, "bfloat16", "cuda") == by_then + 2 * 4 * (table + down)
    scales, biases = 4 * (1000 + 48), 4 * 48
    by_then = slopes + table + norm + joined + scales + biases  # at the largest but the table
    assert peak_bytes(model, "int8", "cuda") == by_then + 3 * 4 * (table + joined)
    model = tiny("alibi", tied_output=False, mlp="plain", **sizes).model
    total = held_bytes(model, "int8", "cuda")
    assert peak_bytes(model, "int8", "cuda") == total + 3 * 4 * (table + joined)
    # The embedding stays float32; beside both there are only matrices of 16 and 32, and norms.
    assert 0 < total - (4 * table + table + 4 * 1000) < 8000


@pytest.mark.parametrize("at", range(4))
def test_automatic_takes_the_most_exact_format_that_fits(
    deep: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Just enough memory is enough; a byte less, and the next one is taken, with the reason."""
    without_fbgemm(monkeypatch)
    shapes = on_meta(load(deep))
    needed = {name: peak_bytes(shapes, name) for name in BY_PRECISION}
    assert needed["float16"] == needed["bfloat16"]
    name = BY_PRECISION[at]
    expected = "float16" if name == "bfloat16" else name  # as large, and more exact
    there_are(monkeypatch, needed[name])
    held = load(deep, FormatChoice("automatic")).info.held
    assert held.number_format == expected
    assert held.is_for_room == (expected != "float32")
    if expected == "float32":
        assert "nothing is gained" in held.reason
    else:
        wanted, there = (bytes_said(n) for n in (needed["float32"], needed[name]))
        assert held.reason == (
            f"automatic: the most exact that fits; float32 needs about {wanted} of memory, "
            f"and {there} are available"
        )
    assert held.how == ("" if expected == "float32" else "widened to float32 for each product")


def test_bfloat16_is_taken_where_the_second_table_of_float16_has_no_room(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of fbgemm cannot be looked up in, so that a tied table is held twice."""
    monkeypatch.setattr(matrices, "has_packed", lambda name: name == "float16")
    folder = make_folder(d_model=64, n_layer=6, n_kv_head=4)
    shapes = on_meta(load(folder))
    assert peak_bytes(shapes, "float16") > peak_bytes(shapes, "bfloat16")
    there_are(monkeypatch, peak_bytes(shapes, "bfloat16"))
    assert load(folder, FormatChoice("automatic")).info.held.number_format == "bfloat16"


def test_automatic_refuses_before_reading_what_fits_in_no_format(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what the smallest needs and what there is; a chosen one names the way out."""
    least = peak_bytes(on_meta(load(deep)), "int8")
    there_are(monkeypatch, least - 1)
    told: list[float] = []
    figures = re.escape(
        f"{deep} needs about {bytes_said(least)} of memory even as int8, and "
        f"{bytes_said(least - 1)} are available; choose a smaller model."
    )
    with pytest.raises(CheckpointError, match=f"^{figures}$"):
        load(deep, FormatChoice("automatic"), told=told.append)
    with pytest.raises(CheckpointError, match=r"as float16, .*; no number format is small enough"):
        load(deep, FormatChoice("float16"), told=told.append)
    assert told == []
    there_are(monkeypatch, least)
    way_out = re.escape(f"; as int8 it would need {bytes_said(least)}.")
    with pytest.raises(CheckpointError, match=f"{way_out}$"):
        load(deep, FormatChoice("float32"), told=told.append)
    assert told == []


def test_where_nobody_can_tell_what_there_is_nothing_is_refused(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for another device, whose memory is its own."""
    there_are(monkeypatch, None)
    assert load(deep, FormatChoice("automatic")).info.held.number_format == "float32"
    room = WeightRoom.of(load(deep).model, "cuda", 1)
    held = Held("float32", "cuda")
    assert room.settle(held, FormatChoice("float32", "cuda"), 1, deep) is held


def test_gibibytes_are_told_where_there_are_some() -> None:
    """As the models are that do not fit."""
    needed: dict[FormatName, int] = {
        "float32": 32_100_000_000,
        "bfloat16": 16_100_000_000,
        "float16": 16_100_000_000,
        "int8": 8_200_000_000,
    }
    room = WeightRoom(needed, 12_340_000_000)
    held = room.settle(Held("float32"), FormatChoice("automatic"), 8_000_000_000, Path("big"))
    assert held.number_format == "int8"
    assert held.reason.endswith(
        "float32 needs about 29.9 GiB of memory, and 11.5 GiB are available"
    )
    with pytest.raises(CheckpointError, match=r"^big needs about 15 GiB .* as int8 it would need"):
        room.settle(Held("float16"), FormatChoice("float16"), 8_000_000_000, Path("big"))
