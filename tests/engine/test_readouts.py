from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.readouts import ROLE_FORMULAS, ROLES, checks, head_roles, n_carrying
from engine.recorder import PassRecorder
from engine.run import Run
from engine.session import Session

Tiny = Callable[..., Run]
TEXT = [1, 2, 3, 1, 2, 2, 0, 1, 2, 3, 3, 0]


def _record(
    heads: list[np.ndarray], token_ids: list[int], conditions: Conditions | None = None
) -> Session:
    """A session in which one layer's heads have exactly these squares of weights."""
    n = len(token_ids)
    config = ModelConfig(
        vocab_size=9, n_layer=1, n_head=len(heads), d_model=len(heads), max_seq_len=n
    )
    recorder = PassRecorder(config, torch.tensor(token_ids), 0, conditions or Conditions())
    q = torch.zeros(len(heads), n, 1)
    recorder.keep_qkv(0, q, q, q)
    recorder.keep_weights(0, slice(0, n), torch.tensor(np.array(heads), dtype=torch.float32))
    nothing = torch.zeros(n)
    return Session().append(recorder.trace(torch.zeros(n, 1), nothing, nothing.long(), 0.0, 0))


def _perfect(target: Callable[[int], int]) -> np.ndarray:
    """A head whose every query puts all its weight on one key."""
    square = np.zeros((len(TEXT), len(TEXT)))
    for query in range(len(TEXT)):
        square[query, target(query)] = 1
    return square


def _twin_before(query: int) -> int | None:
    return next((key for key in range(query - 1, -1, -1) if TEXT[key] == TEXT[query]), None)


def _after_twin(query: int) -> int:
    twin = _twin_before(query)
    return 0 if twin is None else twin + 1


def _on_twin(query: int) -> int:
    twin = _twin_before(query)
    return query if twin is None else twin


def test_perfect_heads_are_called_by_their_role() -> None:
    """Hand-made: previous token, first token, same token, induction, itself, and evenly spread."""
    even = np.tri(len(TEXT)) / np.arange(1, len(TEXT) + 1)[:, None]
    heads = [
        _perfect(lambda query: max(query - 1, 0)),
        _perfect(lambda _: 0),
        _perfect(_on_twin),
        _perfect(_after_twin),
        _perfect(lambda query: query),
        even,
    ]
    roles = head_roles(_record(heads, TEXT))
    names = [roles.name(0, head) for head in range(len(heads))]
    assert names == ["previous token", "first token", "same token", "induction", None, None]
    for head, role in enumerate(("previous token", "first token", "same token", "induction")):
        assert roles.scores[role][0, head] == 1  # type: ignore[index]
    entropy = roles.scores["entropy"][0]
    assert entropy[:5].tolist() == [0] * 5
    assert entropy[5] == pytest.approx(np.log(np.arange(1, len(TEXT) + 1)).mean())


def test_roles_are_averages_over_the_queries_that_can_be_asked(tiny: Tiny) -> None:
    """By loops over the shown patterns; in one pass, several, and a cut one."""
    run = tiny()
    for text in (TEXT[:4], TEXT[:5], [*TEXT, 7, 7], TEXT):
        run.read(text)
    scores = head_roles(run.session).scores
    for layer in range(2):
        for head in range(4):
            weights = run.pattern(run.session, layer, head)
            asked: dict[str, list[float]] = {role: [] for role in ROLES}
            for query, token in enumerate(TEXT):
                row = weights[query]
                asked["entropy"].append(-sum(w * np.log(w) for w in row if w > 0))
                if query:
                    asked["previous token"].append(row[query - 1])
                    asked["first token"].append(row[0])
                if token in TEXT[:query]:
                    twins = [key for key in range(query) if TEXT[key] == token]
                    asked["same token"].append(sum(row[key] for key in twins))
                    asked["induction"].append(sum(row[key + 1] for key in twins))
            for role, values in asked.items():
                assert scores[role][layer, head] == pytest.approx(np.mean(values), abs=1e-5)  # type: ignore[index]


def test_a_role_must_take_its_share_of_the_weight() -> None:
    """At 0.4 of the weight it names a head, below it does not."""
    for share, name in ((0.41, "first token"), (0.39, None)):
        square = np.array([[1, 0, 0], [share, 1 - share, 0], [share, 0, 1 - share]])
        session = _record([square], [0, 1, 2])
        assert head_roles(session).name(0, 0) == name


def test_without_a_question_there_is_no_score() -> None:
    """One token has no previous one; a text without repetition has no twins."""
    single = head_roles(_record([np.ones((1, 1))], [5]))
    for role in ("previous token", "first token", "same token", "induction"):
        assert np.isnan(single.scores[role]).all()  # type: ignore[index]
    assert single.scores["entropy"].tolist() == [[0]]
    assert single.name(0, 0) is None
    unrepeated = head_roles(_record([np.eye(3)], [0, 1, 2]))
    assert np.isnan(unrepeated.scores["induction"]).all()
    assert unrepeated.scores["previous token"].tolist() == [[0]]


def test_a_real_pass_holds_every_check(tiny: Tiny) -> None:
    for conditions in (Conditions(), Conditions(mask="window", window=2), Conditions(mask="none")):
        run = tiny()
        run.set_conditions(conditions)
        result = checks(run.read(TEXT))
        assert result.row_sum_error < result.TOLERANCE
        assert result.masked_weight == 0
        assert result.all_finite


def test_a_row_that_does_not_sum_to_1_is_found_with_its_error() -> None:
    broken = np.eye(4)
    broken[2, 2] = 0.75
    result = checks(_record([np.eye(4), broken], [0, 1, 2, 3]))
    assert result.row_sum_error == pytest.approx(0.25)
    assert result.all_finite


def test_weight_on_a_masked_key_is_found() -> None:
    leaking = np.eye(4)
    leaking[1] = [0, 0.9, 0, 0.1]
    assert checks(_record([leaking], [0, 1, 2, 3])).masked_weight == pytest.approx(0.1)
    unmasked = _record([leaking], [0, 1, 2, 3], Conditions(mask="none"))
    assert checks(unmasked).masked_weight == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_found_wherever_they_arise(tiny: Tiny, bad: float) -> None:
    """In q, k, v, the hidden state, or only in the weights."""
    run = tiny()
    with torch.no_grad():
        run.model.get_parameter("blocks.1.mlp.up.weight")[0] = bad
    session = run.read(TEXT)
    assert np.isfinite(session.q(1)).all()
    assert not checks(session).all_finite
    assert checks(tiny().read(TEXT)).all_finite


def test_checks_follow_the_text_that_is_left() -> None:
    """A bad row that was stepped back over no longer counts."""
    square = np.eye(4)
    square[3, 3] = 2
    session = _record([square], [0, 1, 2, 3])
    assert checks(session).row_sum_error == 1
    assert checks(session.truncate(3)).row_sum_error == 0
    assert len(head_roles(session.truncate(3)).scores) == len(ROLES)


def test_every_role_has_its_formula() -> None:
    """Which the window shows where heads are sorted by it."""
    assert set(ROLE_FORMULAS) == set(ROLES)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any),
    st.sampled_from([0.5, 0.9, 1.0]),
)
def test_so_many_keys_carry_a_share_and_one_less_does_not(counts: list[int], share: float) -> None:
    """By trying every number of keys, the largest first, in whole numbers."""
    weights = np.array(counts, np.float32) / np.float32(sum(counts))
    n_keys = int(n_carrying(weights, share))
    largest_first = sorted(counts, reverse=True)
    enough = [
        n
        for n in range(1, len(counts) + 1)
        if sum(largest_first[:n]) >= share * sum(counts) - 1e-6 * sum(counts)
    ]
    assert n_keys == enough[0]


def test_keys_that_carry_are_counted_row_by_row() -> None:
    """One key, two halves, ten tenths of which nine carry 90 %; hidden keys carry nothing."""
    rows = np.zeros((3, 10), np.float32)
    rows[0, 4] = 1
    rows[1, [2, 7]] = 0.5
    rows[2] = 0.1
    assert n_carrying(rows).tolist() == [1, 2, 9]
