"""The engine's own lines with their shapes, and torch's fused kernel as a second opinion."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

import engine.answers.code_pass
import engine.attention
from engine.answers.code_lines import EngineCode, Fused
from engine.answers.code_pass import read_code
from engine.answers.fused import fused_mix, only_fused
from engine.attention import QUERY_BLOCK, attend
from engine.conditions import Conditions
from engine.errors import CancelledError, EngineError
from engine.loading import Loaded
from engine.reading import Look, ModelInfo
from engine.run import Run
from engine.scope import Scope
from engine.session import Session
from engine.tokenizers import Characters

Doubles = NDArray[np.float64]

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi")
CONDITIONS = (
    Conditions(),
    Conditions(mask="window", window=3, sinks=1),
    Conditions(mask="none"),
    Conditions(heads_off=frozenset({(1, 1), (0, 2)})),
    Conditions(positions=False),
)


def code_of(run: Run, session: Session, layer: int = 1, position: int = -1) -> EngineCode:
    """What the scope asks for."""
    position = len(session) - 1 if position < 0 else position
    return read_code(run.model, session, run.conditions, layer, position)


def mixes(run: Run, session: Session, layer: int, window: int = 0) -> Doubles:
    """A layer's mixes [H, S, D] from its recorded q, k and v, cell by cell in float64."""
    config, conditions = run.config, run.conditions
    q, k, v = (each(layer).astype(np.float64) for each in (session.q, session.k, session.v))
    shared = config.n_head // config.n_kv_head
    mix = np.zeros_like(q)
    for head in range(config.n_head):
        for query in range(len(session)):
            seen = []
            for key in range(len(session)):
                past, near = key <= query, query - key < conditions.window
                hidden = window and query - key >= window
                is_seen = {
                    "none": True,
                    "causal": past,
                    "window": past and (near or key < conditions.sinks),
                }[conditions.mask]
                if is_seen and not hidden:
                    seen.append(key)
            scores = k[head // shared, seen] @ q[head, query] / np.sqrt(config.head_dim)
            if config.positions == "alibi" and conditions.positions:
                slope = 2.0 ** (-8 * (head + 1) / config.n_head)
                scores -= slope * np.abs(query - np.array(seen))
            powers = np.exp(scores - scores.max())
            mix[head, query] = powers / powers.sum() @ v[head // shared, seen]
    return mix


def said(code: EngineCode, number: int) -> str:
    """A line of the four with its shapes."""
    return code.attend.lines[number].said()


# The lines


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
def test_shapes_are_those_of_the_recorded_tensors(
    tiny: Callable[..., Run], positions: str, n_kv_head: int
) -> None:
    """Of every position scheme, with one key for each head, for two, and for all."""
    run = tiny(positions, n_kv_head=n_kv_head)
    session = run.read(TOKENS)
    code = code_of(run, session)
    q, k, v = session.q(1).shape, session.k(1).shape, session.v(1).shape
    assert (q, k, v) == ((4, 12, 4), (n_kv_head, 12, 4), (n_kv_head, 12, 4))
    assert said(code, 0) == (
        f"q [H 4, T 12, D 4] · scoring.scale = 0.5 · k [G {n_kv_head}, S 12, D 4] "
        "→ scores [H 4, T 12, S 12]"
    )
    assert said(code, 1) == "scores [H 4, T 12, S 12] · start = 0 → scores [H 4, T 12, S 12]"
    assert said(code, 2) == "scores [H 4, T 12, S 12] → weights [H 4, T 12, S 12]"
    assert said(code, 3) == (
        f"weights [H 4, T 12, S 12] · v [G {n_kv_head}, S 12, D 4] → mix [H 4, T 12, D 4]"
    )
    assert [operand.shape for operand in code.recorded] == [q, k, v]
    assert (code.layer, code.query, code.row) == (1, 11, 11)


def test_each_line_gives_what_the_function_itself_gives(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines run one by one on the recorded tensors; the last ones are the function's answer."""
    run = tiny("alibi")
    session = run.read(TOKENS)
    given: list[dict[str, Any]] = []
    run_lines = engine.answers.code_pass.run_lines

    def spy(function: Any, operands: dict[str, Any]) -> Any:
        given.append(operands)
        return run_lines(function, operands)

    monkeypatch.setattr(engine.answers.code_pass, "run_lines", spy)
    code = code_of(run, session)
    operands = given[-1]
    assert np.array_equal(operands["q"].numpy(), session.q(1))
    assert np.array_equal(operands["v"].numpy(), session.v(1))
    weights, mix = attend(**operands)
    shapes = [line.gives[0].shape for line in code.attend.lines]
    assert shapes == [weights.shape, weights.shape, weights.shape, mix.shape]
    for head in range(4):
        pattern = run.pattern(session, 1, head)
        assert np.allclose(weights[head].numpy(), pattern, atol=1e-6)


def test_there_are_four_of_them_and_they_say_scores_weights_and_mix(
    tiny: Callable[..., Run],
) -> None:
    run = tiny()
    code = code_of(run, run.read(TOKENS))
    assert [line.gives[0].name for line in code.attend.lines] == [
        "scores",
        "scores",
        "weights",
        "mix",
    ]
    assert [source.name for source in code.around] == [
        "Attention.forward",
        "Attention.project",
        "matmul_heads",
        "Scoring.masked",
    ]


def test_a_step_has_one_query_and_all_keys(tiny: Callable[..., Run]) -> None:
    """The pass that computed the selected row is shown, not the latest one."""
    run = tiny(n_kv_head=2)
    run.read(TOKENS[:7])
    session = run.read(TOKENS[:8])
    step = code_of(run, session, position=7)
    assert said(step, 2) == "scores [H 4, T 1, S 8] → weights [H 4, T 1, S 8]"
    assert (step.rows, step.passed, step.row) == (range(7, 8), range(7, 8), 0)
    assert [each.said() for each in step.recorded] == [
        "q [H 4, T 1, D 4]",
        "k [G 2, T 1, D 4]",
        "v [G 2, T 1, D 4]",
    ]
    before = code_of(run, session, position=4)
    assert said(before, 2) == "scores [H 4, T 7, S 7] → weights [H 4, T 7, S 7]"
    assert (before.rows, before.row) == (range(7), 4)


def test_a_long_pass_is_shown_by_the_block_of_its_row(tiny: Callable[..., Run]) -> None:
    """As it was handed over: no key behind the block's last query."""
    n_tokens = 2 * QUERY_BLOCK + 9
    run = tiny(max_seq_len=n_tokens)
    session = run.read([at % 11 for at in range(n_tokens)])
    row = QUERY_BLOCK + 5
    code = code_of(run, session, position=row)
    keys, first = 2 * QUERY_BLOCK, QUERY_BLOCK
    assert said(code, 2).endswith(f"→ weights [H 4, T {QUERY_BLOCK}, S {keys}]")
    assert f"start = {first}" in said(code, 1)
    assert (code.rows, code.passed, code.row) == (range(first, keys), range(n_tokens), 5)
    assert said(code_of(run, session), 2).endswith(f"→ weights [H 4, T 9, S {n_tokens}]")


def test_without_the_mask_every_block_has_all_keys(tiny: Callable[..., Run]) -> None:
    n_tokens = QUERY_BLOCK + 9
    run = tiny(max_seq_len=n_tokens)
    run.set_conditions(Conditions(mask="none"))
    session = run.read([at % 11 for at in range(n_tokens)])
    code = code_of(run, session, position=3)
    assert said(code, 2).endswith(f"→ weights [H 4, T {QUERY_BLOCK}, S {n_tokens}]")


@pytest.mark.parametrize("passes", [[12], [6, 7, 12], [9, 12]])
@pytest.mark.parametrize("own_windows", [(), (0, 4)])
@pytest.mark.parametrize("conditions", [CONDITIONS[1], Conditions(mask="window", window=4)])
def test_the_shapes_are_those_that_the_pass_had_where_the_cache_let_rows_go(
    tiny: Callable[..., Run],
    used: Any,
    conditions: Conditions,
    own_windows: tuple[int, ...],
    passes: list[int],
) -> None:
    run = tiny(windows=own_windows)
    run.set_conditions(conditions)
    for n_tokens in passes:
        session = run.read(TOKENS[:n_tokens])
    for layer in range(2):
        code = code_of(run, session, layer)
        (block,) = used.spies[-1][1].blocks[layer]
        weights = next(
            line.gives[0] for line in code.attend.lines if line.gives[0].name == "weights"
        )
        assert weights.shape == tuple(block.shape)
        assert code.fused is not None
        assert code.fused.agrees


# The fused kernel


@pytest.mark.parametrize("conditions", CONDITIONS, ids=str)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("n_kv_head", [4, 1])
def test_the_difference_is_that_of_two_right_answers(
    tiny: Callable[..., Run], positions: str, conditions: Conditions, n_kv_head: int
) -> None:
    """Both are what numpy works out in float64, at every head and position."""
    run = tiny(positions, n_kv_head=n_kv_head)
    run.set_conditions(conditions)
    session = run.read(TOKENS)
    fused = code_of(run, session).fused
    assert fused is not None
    wanted = mixes(run, session, 1)
    at = fused.head, fused.position, fused.feature
    largest = float(np.abs(session.v(1)).max())
    assert fused.largest_value == largest
    assert fused.mix == pytest.approx(wanted[at], abs=1e-5 * largest)
    assert fused.fused == pytest.approx(wanted[at], abs=1e-5 * largest)
    assert fused.difference == abs(np.float32(fused.mix) - np.float32(fused.fused))
    assert fused.difference < 5e-6 * largest
    assert fused.agrees


def test_the_kernel_agrees_with_float64_everywhere_and_not_only_where_it_is_worst(
    tiny: Callable[..., Run],
) -> None:
    """Under a layer's own window too."""
    run = tiny(windows=(0, 4))
    session = run.read(TOKENS)
    q, k, v = (torch.tensor(each(1)) for each in (session.q, session.k, session.v))
    with only_fused(), torch.inference_mode():
        mix = fused_mix(q, k, v, 0, run.model.scoring(1, run.conditions))
    wanted = mixes(run, session, 1, window=4)
    np.testing.assert_allclose(mix.numpy(), wanted, atol=1e-5 * np.abs(wanted).max(), rtol=0)


@pytest.mark.parametrize("n_tokens", [12, QUERY_BLOCK + 30])
def test_a_value_that_is_off_by_a_hundredth_is_found(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, n_tokens: int
) -> None:
    """The check can fail: one row of v is another one for the kernel, and it says where."""
    run = tiny(max_seq_len=n_tokens, n_kv_head=2)
    session = run.read([at % 11 for at in range(n_tokens)])
    wrong_key = n_tokens - 1  # only the last query sees it

    kernel = F.scaled_dot_product_attention

    def wrong(q: Any, k: Any, v: Any, **how: Any) -> Any:
        if v.shape[-2] > wrong_key:
            v = v.clone()
            v[0, 1, wrong_key] += 0.01 * float(np.abs(session.v(1)).max())
        return kernel(q, k, v, **how)

    monkeypatch.setattr(F, "scaled_dot_product_attention", wrong)
    fused = code_of(run, session).fused
    assert fused is not None
    assert not fused.agrees
    assert fused.position == wrong_key
    assert fused.head in {2, 3}  # which share the second key/value head
    weight = run.pattern(session, 1, fused.head)[wrong_key, wrong_key]
    assert fused.difference == pytest.approx(0.01 * fused.largest_value * weight, rel=1e-2)


def test_what_is_not_finite_does_not_agree(tiny: Callable[..., Run]) -> None:
    """A NaN is the worst difference of all."""
    run = tiny()
    session = run.read(TOKENS)
    trace = session.traces[0]
    v = trace.v.copy()
    v[1, 0, 3, 2] = np.nan
    fused = code_of(run, Session((replace(trace, v=v),))).fused
    assert fused is not None
    assert np.isnan(fused.difference)
    assert not fused.agrees


def test_the_tolerance_is_a_share_of_the_largest_value(tiny: Callable[..., Run]) -> None:
    run = tiny()
    fused = code_of(run, run.read(TOKENS)).fused
    assert fused is not None
    assert fused.most == Fused.TOLERANCE * fused.largest_value
    assert replace(fused, difference=fused.most).agrees
    assert not replace(fused, difference=1.01 * fused.most).agrees


def test_capped_scores_have_no_second_opinion_and_a_sentence_says_why(
    tiny: Callable[..., Run],
) -> None:
    run = tiny(score_cap=2.0)
    code = code_of(run, run.read(TOKENS))
    assert code.fused is None
    assert code.obstacle == (
        "torch's fused kernel cannot cap scores, as this layer does at ± 2, so there is nothing "
        "to compare with."
    )
    assert len(code.attend.lines) == 4


def test_a_machine_without_the_kernel_is_told_so(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else torch would take its plain path in silence."""

    def none(*_given: Any) -> Any:
        raise RuntimeError("No available kernel. Aborting execution.")

    monkeypatch.setattr(engine.answers.code_pass, "_compare", none)
    run = tiny()
    code = code_of(run, run.read(TOKENS))
    assert code.fused is None
    assert "no fused kernel" in code.obstacle


@pytest.mark.filterwarnings("ignore:.*not used because:UserWarning")
@pytest.mark.filterwarnings("ignore:All fused kernels requires:UserWarning")
def test_only_the_fused_kernel_answers() -> None:
    """It takes four axes; for three torch would use its plain path."""
    q = torch.zeros(2, 3, 4)
    with only_fused(), pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(q, q, q)


def test_heads_that_are_off_are_named_and_compared_before_they_are(
    tiny: Callable[..., Run],
) -> None:
    run = tiny()
    run.set_conditions(Conditions(heads_off=frozenset({(1, 3), (1, 0), (0, 2)})))
    session = run.read(TOKENS)
    assert code_of(run, session, layer=1).heads_off == (0, 3)
    assert code_of(run, session, layer=0).heads_off == (2,)
    code = code_of(run, session)
    assert code.fused is not None
    assert code.fused.agrees


def test_it_can_be_given_up(tiny: Callable[..., Run]) -> None:
    run = tiny()
    session = run.read(TOKENS)
    with pytest.raises(CancelledError):
        read_code(run.model, session, run.conditions, 0, 3, lambda: True)


# The scope


def scope_of(run: Run) -> Scope:
    """The run's model on an empty text of letters."""
    info = ModelInfo("tiny", "", run.config, 1, 0.0)
    return Scope(Loaded(run.model, Characters("abcdefghijk"), info))


def test_a_scope_answers_for_the_layer_and_the_query_in_focus(tiny: Callable[..., Run]) -> None:
    scope = scope_of(tiny(vocab_size=267, max_seq_len=32))
    scope.edit("abcdefg")
    code = scope.code(scope.look(Look(1, 2, 3)))
    assert code is not None
    assert (code.layer, code.query) == (1, 3)


def test_an_empty_text_and_another_models_reading_have_no_code(tiny: Callable[..., Run]) -> None:
    scope = scope_of(tiny(vocab_size=267))
    assert scope.code(scope.edit("")) is None
    reading = scope.edit("abc")
    assert scope.code(replace(reading, conditions=Conditions(mask="none"))) is None
    assert scope.code(replace(reading, info=replace(reading.info))) is None


def test_a_text_that_is_not_what_runs_is_an_error_of_one_sentence(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(_function: Any) -> Any:
        raise EngineError("attend, which is in attention.py, was changed; start it again.")

    monkeypatch.setattr(engine.answers.code_pass, "source_of", changed)
    scope = scope_of(tiny(vocab_size=267))
    with pytest.raises(EngineError, match="was changed"):
        scope.code(scope.edit("abc"))
