"""Matrices in smaller formats, against float32 within what their rounding allows."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine import loading, matrices
from engine.answers import format_pass
from engine.answers.cell import CellArithmetic
from engine.answers.lens import Lens
from engine.answers.residual import Stream
from engine.attention import Recorder
from engine.conditions import Conditions
from engine.errors import CancelledError, EngineError
from engine.formats import FORMATS, FormatChoice, FormatName, Held
from engine.kv_cache import KVCache
from engine.loading import load
from engine.matrices import Matrix, PackedHalf, PackedInt8, has_packed
from engine.model import Transformer
from engine.reading import CacheCheck, Look
from engine.readouts import Checks
from engine.run import Run
from engine.scope import Scope

TEXT = "the cat sat on the mat"
SMALLER: tuple[FormatName, ...] = FORMATS[1:]
# Rounding to nearest is off by at most half of the last bit: 8 bits of precision, 11 bits.
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}

KINDS: dict[str, tuple[FormatName, Callable[..., Any]]] = {
    f"{name} widened": (name, partial(Matrix, number_format=name)) for name in SMALLER
}
if has_packed("float16"):
    KINDS["float16 packed"] = "float16", PackedHalf
    KINDS["float16 to be packed"] = "float16", partial(PackedHalf, later=True)
if has_packed("int8"):
    KINDS["int8 packed"] = "int8", PackedInt8

every_kind = pytest.mark.parametrize("kind", KINDS)
every_format = pytest.mark.parametrize("number_format", SMALLER)
ways = pytest.mark.parametrize("packs", [True, False], ids=["as here", "without fbgemm"])


def normal(*shape: int, seed: int = 1) -> Tensor:
    """Normal numbers, the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rounding(weight: Tensor, number_format: FormatName) -> Tensor:
    """By how much each effective weight may be off [N, K]."""
    if number_format == "int8":  # half a step; the row's largest is 127 steps
        return weight.abs().amax(dim=1, keepdim=True).expand_as(weight) / 254 * 1.0001
    return weight.abs() * ROUNDING[number_format]


# One matrix


@every_kind
def test_effective_weights_are_the_given_ones_rounded(kind: str) -> None:
    """To the precision of the format, and rows are those of the whole."""
    number_format, make = KINDS[kind]
    weight = normal(40, 64)
    matrix = make(weight, None)
    assert ((matrix.weight - weight).abs() <= rounding(weight, number_format)).all()
    assert matrix.weight.dtype == torch.float32
    assert torch.equal(matrix.rows(7), matrix.weight[7])
    which = torch.tensor([[3, 1], [3, 39]])
    assert torch.equal(matrix.rows(which), matrix.weight[which])


@every_kind
@pytest.mark.parametrize("shape", [(64,), (1, 64), (5, 64), (2, 3, 64)], ids=str)
def test_a_product_is_that_of_the_effective_weights(kind: str, shape: tuple[int, ...]) -> None:
    """Activations are not rounded as the weights are: what is left is float32's own error."""
    _format, make = KINDS[kind]
    weight, bias, x = normal(40, 64), normal(40), normal(*shape, seed=2)
    x[..., 5] *= 100  # as some features of real models stand out
    matrix = make(weight, bias)
    y = matrix(x)
    assert y.dtype == torch.float32
    assert y.shape == (*shape[:-1], 40)
    effective = matrix.weight.double()
    exact = x.double() @ effective.T + bias
    # Each of 64 sums may round once; the slack is relative to what is summed.
    size = x.double().abs() @ effective.abs().T + bias.abs()
    most = 64 * 2.0**-24 * size
    if kind == "int8 packed":  # half a unit of the finest of three parts, each feature
        unit = x.double().abs().amax(dim=-1, keepdim=True) / (63 * 126**2)
        most = most + unit / 2 * effective.abs().sum(dim=1)
    assert ((y - exact).abs() <= most).all()


@every_kind
def test_a_product_is_off_by_no_more_than_the_weights_are(kind: str) -> None:
    """Against float32, |x| · rounding summed over the row."""
    number_format, make = KINDS[kind]
    weight, x = normal(40, 64), normal(5, 64, seed=2)
    apart = (make(weight, None)(x) - x @ weight.T).abs()
    most = x.abs() @ rounding(weight, number_format).T + 1e-4
    assert (apart <= most).all()
    assert apart.max() > 0


@every_kind
def test_a_row_depends_on_no_other_row(kind: str) -> None:
    """Which is what lets a pass append: a large row beside it changes nothing."""
    _format, make = KINDS[kind]
    matrix, x = make(normal(40, 64), None), normal(6, 64, seed=2)
    x[0] *= 1000
    together = matrix(x)
    for row in range(6):
        alone, size = matrix(x[row : row + 1])[0], float(x[row].abs().max())
        torch.testing.assert_close(alone, together[row], rtol=0, atol=2e-6 * 64 * size)


@every_kind
def test_rows_of_zeros_stay_zeros(kind: str) -> None:
    """Of weights and of x: no scale is 0."""
    _format, make = KINDS[kind]
    weight, x = normal(8, 64), normal(2, 64, seed=2)
    weight[3] = 0
    x[1] = 0
    y = make(weight, None)(x)
    assert torch.isfinite(y).all()
    assert (y[:, 3] == 0).all()
    assert (y[1] == 0).all()


@every_kind
def test_what_is_not_finite_is_not_hidden(kind: str) -> None:
    """The checks on screen must see it."""
    _format, make = KINDS[kind]
    x = normal(2, 64)
    x[1, 3] = torch.nan
    assert not torch.isfinite(make(normal(8, 64), None)(x)[1]).any()


def test_what_a_file_holds_in_bfloat16_is_held_exactly() -> None:
    """So choosing bfloat16 for it costs nothing."""
    weight = normal(8, 64).bfloat16().float()
    assert torch.equal(Matrix(weight, None, "bfloat16").weight, weight)


# Whole models


def without_fbgemm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that lacks it."""
    monkeypatch.setattr(matrices, "has_packed", lambda _format: False)


def rounded_twin(folder: Path, model: Transformer) -> Transformer:
    """The float32 model of the folder, its matrices replaced by another one's effective ones."""
    twin = load(folder).model
    for name, module in twin.named_modules():
        if isinstance(module, nn.Linear) or (name == "embedding" and twin.config.tied_output):
            module.weight.data = model.get_submodule(name).weight.clone()
    return twin


SHAPES: dict[str, dict[str, Any]] = {
    "tied, plain": {},
    "own output, gated": {"tied_output": False, "mlp": "gated"},
    "post-norm": {"norm_placement": "post"},
}


@ways
@every_format
@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_in_a_format_is_the_float32_model_with_rounded_weights(
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    number_format: FormatName,
    packs: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Logits agree as two orders of summing do; against the unrounded model they do not."""
    if not packs:
        without_fbgemm(monkeypatch)
    folder = make_folder(**SHAPES[shape])
    loaded = load(folder, FormatChoice(number_format))
    assert loaded.info.held.number_format == number_format
    token_ids = torch.tensor(loaded.tokenizer.encode(TEXT))
    with torch.inference_mode():
        logits = loaded.model(token_ids)
        twin = rounded_twin(folder, loaded.model)(token_ids)
        exact = load(folder).model(token_ids)
    torch.testing.assert_close(logits, twin, atol=1e-4, rtol=1e-4)
    assert not torch.equal(logits, exact)


@ways
@every_format
@pytest.mark.parametrize("positions", ["rotary", "learned", "alibi"])
def test_what_is_shown_holds_in_every_format(
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    positions: str,
    number_format: FormatName,
    packs: bool,  # noqa: FBT001
) -> None:
    """Rows sum to 1, cached = full pass, and the arithmetic of cell, lens and residual agrees."""
    if not packs:
        without_fbgemm(monkeypatch)
    loaded = load(make_folder(positions), FormatChoice(number_format))
    scope = Scope(loaded)
    for length in range(1, len(TEXT) + 1):
        reading = scope.edit(TEXT[:length])
    assert reading.checks.row_sum_error <= Checks.TOLERANCE
    assert reading.checks.all_finite
    check = scope.check_cache()
    assert check is not None
    assert max(check.logits, check.weights) <= CacheCheck.TOLERANCE
    lens = scope.lens(reading)
    assert lens is not None
    assert lens.difference <= Lens.TOLERANCE
    stream, attribution = scope.residual(reading, 3) or (None, None)
    assert stream is not None
    assert attribution is not None
    assert stream.difference <= Stream.TOLERANCE
    assert attribution.difference <= Stream.TOLERANCE
    for head in range(reading.info.config.n_head):
        reading = scope.look(Look(1, head, 12))
        cell = scope.cell(reading)
        assert cell is not None
        assert cell.difference <= CellArithmetic.TOLERANCE
        # What the head adds, through the very module that the pass used.
        mix = torch.zeros(reading.info.config.n_head, reading.info.config.head_dim)
        mix[head] = torch.from_numpy(cell.mix)
        output = loaded.model.attention(1).output
        with torch.inference_mode():
            added = output(mix.view(1, -1))[0] - output(torch.zeros(1, mix.numel()))[0]
        np.testing.assert_allclose(cell.contribution, added.numpy(), atol=1e-5)


@ways
def test_smaller_formats_take_less_and_a_tied_pair_is_held_once(
    make_folder: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    packs: bool,  # noqa: FBT001
) -> None:
    """By the count of bytes; fbgemm's order cannot be looked up in, and takes a second copy."""
    if not packs:
        without_fbgemm(monkeypatch)
    folder = make_folder(d_model=64, n_head=4, n_kv_head=4, n_layer=1, mlp_bias=False)
    model = load(folder).model
    table = model.config.vocab_size * 64
    in_matrices = table + sum(
        module.weight.numel() for module in model.modules() if isinstance(module, nn.Linear)
    )
    rest = 4 * (model.held.n_bytes // 4 - in_matrices)
    for number_format, width in (("bfloat16", 2), ("float16", 2), ("int8", 1)):
        held = load(folder, FormatChoice(number_format)).info.held  # type: ignore[arg-type]
        copies = 2 if held.how == "packed" else 1
        scales = 0
        if number_format == "int8":
            scales = 4 * sum(
                module.weight.shape[0]
                for module in model.modules()
                if isinstance(module, nn.Linear)
            )
            scales += 4 * copies * model.config.vocab_size
        expected = width * (in_matrices + (copies - 1) * table) + rest + scales
        assert held.n_bytes == expected, number_format


def test_loading_stops_between_two_parts_when_it_is_not_wanted(
    make_folder: Callable[..., Path],
) -> None:
    with pytest.raises(CancelledError):
        load(make_folder(), FormatChoice("bfloat16"), lambda: True)


# What is chosen


def test_a_small_model_stays_in_float32_by_itself(make_folder: Callable[..., Path]) -> None:
    """And says why."""
    held = load(make_folder(), FormatChoice("automatic")).info.held
    assert held.number_format == "float32"
    assert "nothing is gained" in held.reason


@pytest.mark.parametrize(
    ("speed", "expected"), [(1.8, "float16"), (1.0, "float16"), (0.9, "float32")]
)
def test_a_large_model_goes_by_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, speed: float, expected: str
) -> None:
    """float16 where it is not slower here, for it takes half the room; the figure is told."""
    monkeypatch.setattr(matrices, "has_packed", lambda _format: True)
    monkeypatch.setattr(matrices, "speed_of_packed_half", lambda: speed)
    held = matrices.decide(FormatChoice("automatic"), matrices.MANY_WEIGHTS)
    assert held.number_format == expected
    assert f"{max(speed, 1 / speed):.1f} ×" in held.reason


@pytest.mark.parametrize(("more", "n_tried"), [(0, 1), (1, 0)])
def test_what_decides_on_a_large_model_is_measured_while_its_vocabulary_is_read(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, more: int, n_tried: int
) -> None:
    """On a thread of its own, and for none that has fewer bytes than half its weights."""
    if not has_packed("float16"):
        n_tried = 0
    folder = make_folder()
    n_bytes = sum(each.stat().st_size for each in folder.iterdir())
    monkeypatch.setattr(loading, "MANY_WEIGHTS", 2 * (n_bytes + more))
    threads: list[threading.Thread] = []
    tell = threads.append
    monkeypatch.setattr(loading, "speed_of_packed_half", lambda: tell(threading.current_thread()))
    load(folder, FormatChoice("float32"))
    assert not threads
    load(folder, FormatChoice("automatic"))
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    assert len(threads) == n_tried
    assert threading.current_thread() not in threads


def test_two_who_ask_how_fast_float16_is_hear_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured once; the second waits for the first."""
    tried: list[str] = []
    gate = threading.Event()

    @cache
    def measure() -> float:
        assert gate.wait(10)
        tried.append("once")
        return 1.5

    monkeypatch.setattr(matrices, "_speed_of_packed_half", measure)
    with ThreadPoolExecutor(2) as both:
        answers = [both.submit(matrices.speed_of_packed_half) for _ in range(2)]
        gate.set()
    assert [answer.result() for answer in answers] == [1.5, 1.5]
    assert tried == ["once"]


def test_a_machine_without_fast_float16_keeps_large_models_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_fbgemm(monkeypatch)
    held = matrices.decide(FormatChoice("automatic"), matrices.MANY_WEIGHTS)
    assert (held.number_format, held.how) == ("float32", "")
    assert "no faster arithmetic" in held.reason


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused_in_one_sentence(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, device: Any
) -> None:
    """It names the device and what always works."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(EngineError, match=f"no '{device}' device here.*'cpu' always works") as told:
        load(make_folder(), FormatChoice("float32", device))
    assert str(told.value).count(". ") == 0
    assert matrices.or_processor(FormatChoice("int8", device)) == FormatChoice("int8", "cpu")


class OnDevice(Recorder):
    """A recorder that only looks at where a pass computes."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def keep_qkv(self, _layer: int, *parts: Tensor) -> None:
        """q, k and v."""
        self.seen.update(part.device.type for part in parts)

    def keep_weights(self, _layer: int, _rows: slice, weights: Tensor) -> None:
        """Of a block."""
        self.seen.add(weights.device.type)

    def keep_mlp(self, _layer: int, mlp: Tensor) -> None:
        """Of a layer."""
        self.seen.add(mlp.device.type)

    def keep_residual(self, _depth: int, residual: Tensor) -> None:
        """At any depth."""
        self.seen.add(residual.device.type)


@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal", "alibi"])
def test_a_pass_computes_where_its_model_is(
    tiny: Callable[..., Run], positions: str, number_format: FormatName
) -> None:
    """On torch's device without memory, which as any other refuses to mix with the processor."""
    device: Any = "meta"
    model = tiny(positions, tied_output=positions == "alibi").model
    matrices.prepare(model, Held(number_format, device))
    assert {part.device.type for part in (*model.parameters(), *model.buffers())} == {"meta"}
    kv_cache = KVCache(model.config, device=model.device)
    recorder = OnDevice()
    with torch.inference_mode():
        for n_new in (5, 1):
            hidden = model.hidden(torch.zeros(n_new, dtype=torch.int64), kv_cache, record=recorder)
        logits = model.logits(torch.zeros(1, model.config.d_model))
    assert recorder.seen == {hidden.device.type, logits.device.type} == {"meta"}


# The consequence


def probabilities(model: Transformer, token_ids: list[int]) -> np.ndarray:
    """Of every next token [T, V], in float64."""
    with torch.inference_mode():
        logits = model(torch.tensor(token_ids)).double().numpy()
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@every_format
def test_the_consequence_is_the_largest_difference_of_a_probability(
    make_folder: Callable[..., Path], number_format: FormatName
) -> None:
    """Found once more in float64 from the logits of both models."""
    folder = make_folder()
    loaded = load(folder, FormatChoice(number_format))
    token_ids = loaded.tokenizer.encode(TEXT)
    held = probabilities(loaded.model, token_ids)
    exact = probabilities(load(folder).model, token_ids)
    scope = Scope(loaded)
    found = scope.consequence(scope.edit(TEXT))
    assert found is not None
    assert found.n_tokens == len(TEXT)
    apart = np.abs(held - exact)
    assert found.difference == pytest.approx(apart.max(), abs=1e-6)
    assert apart[found.position, found.token_id] == pytest.approx(apart.max(), abs=1e-6)
    assert found.probability == pytest.approx(held[found.position, found.token_id], abs=1e-6)
    assert found.in_float32 == pytest.approx(exact[found.position, found.token_id], abs=1e-6)
    assert found.n_top_changed == (held.argmax(axis=1) != exact.argmax(axis=1)).sum()
    rows = np.arange(len(token_ids) - 1)
    for loss, probs in ((found.loss, held), (found.loss_in_float32, exact)):
        assert loss == pytest.approx(-np.log(probs[rows, token_ids[1:]]).mean(), abs=1e-5)


def test_the_consequence_is_asked_under_the_conditions_in_force(
    make_folder: Callable[..., Path],
) -> None:
    """Without the mask both models see everything, in a text longer than a block of rows."""
    folder = make_folder(max_seq_len=96)
    loaded = load(folder, FormatChoice("bfloat16"))
    scope = Scope(loaded)
    scope.edit(TEXT * 4)
    reading = scope.set_conditions(Conditions(mask="none"))
    found = scope.consequence(reading)
    assert found is not None
    token_ids = torch.tensor(loaded.tokenizer.encode(TEXT * 4))
    with torch.inference_mode():
        both = [
            torch.softmax(model(token_ids, None, Conditions(mask="none")), dim=-1)
            for model in (loaded.model, load(folder).model)
        ]
    assert found.difference == pytest.approx(float((both[0] - both[1]).abs().max()), abs=1e-6)


def test_there_is_none_for_float32_itself_nor_for_an_empty_text(
    make_folder: Callable[..., Path],
) -> None:
    folder = make_folder()
    scope = Scope(load(folder))
    assert scope.consequence(scope.edit(TEXT)) is None
    scope = Scope(load(folder, FormatChoice("int8")))
    assert scope.consequence(scope.edit("")) is None


def test_float32_weights_are_read_once_until_they_are_forgotten(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counting_load(path: Path, **more: Any) -> Any:
        read.append(path)
        return load(path, **more)

    monkeypatch.setattr(format_pass, "load", counting_load)
    scope = Scope(load(make_folder(), FormatChoice("int8")))
    scope.consequence(scope.edit(TEXT))
    scope.consequence(scope.edit("another text"))
    assert len(read) == 1
    scope.forget_float32()
    scope.consequence(scope.edit(TEXT))
    assert len(read) == 2


def test_without_memory_for_it_nothing_is_read_and_the_figures_are_said(
    make_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope(load(make_folder(), FormatChoice("int8")))
    reading = scope.edit(TEXT)
    monkeypatch.setattr(format_pass, "available_bytes", lambda: 10)
    with pytest.raises(EngineError, match=r"Not compared with float32: .* 10 B are free"):
        scope.consequence(reading)


def test_a_comparison_is_given_up_when_it_is_not_wanted(
    make_folder: Callable[..., Path],
) -> None:
    scope = Scope(load(make_folder(), FormatChoice("int8")))
    reading = scope.edit(TEXT)
    with pytest.raises(CancelledError):
        scope.consequence(reading, lambda: True)


def test_a_run_on_a_smaller_format_reuses_its_cache(make_folder: Callable[..., Path]) -> None:
    """An edit in the middle leaves what a fresh run of the text has."""
    loaded = load(make_folder(), FormatChoice("int8"))
    run, fresh = Run(loaded.model), Run(loaded.model)
    run.read(loaded.tokenizer.encode(TEXT))
    edited = loaded.tokenizer.encode("the cat ran on the mat")
    run.read(edited)
    assert run.stats[-1].n_kept == len("the cat ")
    session = fresh.read(edited)
    np.testing.assert_allclose(
        run.logits(run.session, len(edited) - 1),
        fresh.logits(session, len(edited) - 1),
        atol=CacheCheck.TOLERANCE,
    )
