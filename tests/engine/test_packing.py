"""Float16 matrices that are packed while their model is used."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine import matrices
from engine.cancelling import never
from engine.errors import CancelledError
from engine.formats import FormatChoice
from engine.loading import load
from engine.matrices import PackedHalf, has_packed, unpacked
from engine.packing import Packing
from engine.scope import Scope

HALF = FormatChoice("float16")
TEXT = "the cat sat on the mat"


def test_a_model_whose_matrices_wait_has_the_same_weights_and_logits(
    make_folder: Callable[..., Path],
) -> None:
    """To the bit, and but for the order of sums; it says that it holds as much."""
    folder = make_folder(mlp_bias=True)
    packed, waiting = load(folder, HALF), load(folder, HALF, packs_later=True)
    assert not unpacked(packed.model)
    assert bool(unpacked(waiting.model)) == has_packed("float16")
    assert packed.info.held == waiting.info.held
    token_ids = torch.tensor(packed.tokenizer.encode(TEXT))
    with torch.inference_mode():
        expected, found = packed.model(token_ids), waiting.model(token_ids)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        matrices.pack(waiting.model)
        assert not unpacked(waiting.model)
        assert torch.equal(waiting.model(token_ids), expected)
    for name, module in packed.model.named_modules():
        if isinstance(module, PackedHalf):
            other = waiting.model.get_submodule(name)
            assert torch.equal(torch.as_tensor(other.weight), module.weight)


def test_a_tied_table_is_held_once_until_its_product_is_packed(
    make_folder: Callable[..., Path],
) -> None:
    """The rows to look up and those to multiply with are the same memory."""
    model = load(make_folder(tied_output=True), HALF, packs_later=True).model
    rows = model.get_submodule("embedding.table").get_buffer("stored")
    if has_packed("float16"):
        product = model.get_submodule("embedding.product")
        assert isinstance(product, PackedHalf)
        assert product._waiting is not None
        assert product._waiting.data_ptr() == rows.data_ptr()


def test_packing_may_be_given_up_between_two_matrices(make_folder: Callable[..., Path]) -> None:
    """The model goes on as it was, and can be packed to its end later."""
    model = load(make_folder(n_layer=3), HALF, packs_later=True).model
    n_all = len(unpacked(model))
    asked = threading.Semaphore(2)
    if n_all:
        with pytest.raises(CancelledError):
            matrices.pack(model, lambda: not asked.acquire(blocking=False))
        assert len(unpacked(model)) == n_all - 2
    matrices.pack(model, never)
    assert not unpacked(model)


def test_a_scope_answers_while_its_model_is_packed(make_folder: Callable[..., Path]) -> None:
    """With the same numbers before, meanwhile and afterwards."""
    folder = make_folder(n_layer=3, max_seq_len=128)
    expected = Scope(load(folder, HALF)).edit(TEXT).session.loss[1:]
    scope = Scope(load(folder, HALF, packs_later=True))
    scope.pack_meanwhile()
    for length in range(1, len(TEXT) + 1):
        reading = scope.edit(TEXT[:length])
    torch.testing.assert_close(
        torch.tensor(reading.session.loss[1:]), torch.tensor(expected), atol=1e-5, rtol=1e-5
    )
    scope.close()
    assert not any(thread.name == "packing" for thread in threading.enumerate())


def test_costs_are_measured_on_a_model_that_is_packed(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked; the times are those of all passes that follow."""
    monkeypatch.setattr("engine.scope._PIECE", 1e6)
    loaded = load(make_folder(), HALF, packs_later=True)
    scope = Scope(loaded)
    reading = scope.edit(TEXT)
    scope.pack_meanwhile()
    next(iter(scope.with_and_without(reading, 1)))
    assert not unpacked(loaded.model)
    scope.close()


def test_packing_that_is_stopped_leaves_the_rest_as_it_is(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one at hand is finished: it cannot be left half-way."""
    if not has_packed("float16"):
        return
    begun, go_on = threading.Event(), threading.Event()
    pack = PackedHalf.pack

    def wait(matrix: PackedHalf) -> None:
        begun.set()
        assert go_on.wait(10)
        pack(matrix)

    model = load(make_folder(n_layer=3), HALF, packs_later=True).model
    n_all = len(unpacked(model))
    monkeypatch.setattr(PackedHalf, "pack", wait)
    packing = Packing(model)
    assert begun.wait(10)
    threading.Timer(0.02, go_on.set).start()
    packing.stop()
    assert len(unpacked(model)) == n_all - 1
