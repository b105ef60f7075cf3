from collections.abc import Callable, Iterable

import numpy as np
import pytest

from engine.readouts import checks, head_roles
from engine.run import Run
from engine.session import Session
from engine.trace import N_FEATURES

Tiny = Callable[..., Run]
TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


@pytest.fixture
def session(tiny: Tiny) -> Session:
    """Three passes, over 4, 1 and 5 tokens."""
    run = tiny()
    for n_tokens in (4, 5, 10):
        run.read(TEXT[:n_tokens])
    return run.session


def test_passes_are_stitched_along_the_tokens(session: Session) -> None:
    assert [(trace.start, trace.end) for trace in session.traces] == [(0, 4), (4, 5), (5, 10)]
    assert len(session) == 10
    assert session.token_ids.tolist() == TEXT
    for layer in range(2):
        q, k, v = session.q(layer), session.k(layer), session.v(layer)
        assert q.shape == (4, 10, 4)
        assert k.shape == v.shape == (2, 10, 4)
        for trace in session.traces:
            rows = slice(trace.start, trace.end)
            np.testing.assert_array_equal(q[:, rows], trace.q[layer])
            np.testing.assert_array_equal(k[:, rows], trace.k[layer])
            np.testing.assert_array_equal(v[:, rows], trace.v[layer])
            np.testing.assert_array_equal(session.features[:, :, rows], trace.features)
            np.testing.assert_array_equal(session.loss[rows], trace.loss)
            np.testing.assert_array_equal(session.rank[rows], trace.rank)
            for position in range(trace.start, trace.end):
                np.testing.assert_array_equal(
                    session.hidden(position), trace.hidden[position - trace.start]
                )


@pytest.mark.parametrize("length", range(12))
def test_a_shorter_story_keeps_the_first_rows(session: Session, length: int) -> None:
    shorter = session.truncate(length)
    kept = min(length, 10)
    assert len(shorter) == kept
    assert shorter.token_ids.tolist() == TEXT[:kept]
    if kept:
        np.testing.assert_array_equal(shorter.q(1), session.q(1)[:, :kept])
        np.testing.assert_array_equal(shorter.features, session.features[:, :, :kept])
    assert len(session) == 10


def test_what_a_story_keeps_is_the_very_same_records(session: Session) -> None:
    """History costs nothing: whole passes are shared."""
    assert session.truncate(5).traces == session.traces[:2]
    assert session.truncate(7).traces[:2] == session.traces[:2]
    assert session.truncate(10).traces == session.traces


def test_a_pass_over_known_tokens_replaces_them(session: Session) -> None:
    last = session.traces[2]
    again = session.append(last)
    assert again.traces == session.traces
    assert session.truncate(7).append(last).traces == session.traces
    assert Session().append(session.traces[0]).traces == session.traces[:1]


def test_a_gap_in_the_story_is_refused(session: Session) -> None:
    with pytest.raises(ValueError, match="a pass from 5 on leaves a gap after 3 tokens"):
        session.truncate(3).append(session.traces[2])


@pytest.mark.parametrize("position", [-1, 10])
def test_a_position_that_was_not_read_has_no_hidden_state(session: Session, position: int) -> None:
    with pytest.raises(IndexError, match=f"position {position} is not among the 10"):
        session.hidden(position)


def test_an_empty_text_can_be_asked_everything() -> None:
    empty = Session()
    assert len(empty) == empty.nbytes == 0
    assert empty.token_ids.dtype == empty.rank.dtype == np.int64
    assert empty.token_ids.shape == empty.loss.shape == empty.rank.shape == (0,)
    assert empty.q(0).shape == empty.k(0).shape == empty.v(0).shape == (0, 0, 0)
    assert empty.features.shape == (0, 0, 0, N_FEATURES)
    assert all(score.size == 0 for score in head_roles(empty).scores.values())
    assert checks(empty).all_finite
    assert checks(empty).row_sum_error == checks(empty).masked_weight == 0


def test_nobody_can_write_to_what_is_stitched(session: Session) -> None:
    arrays = (session.token_ids, session.loss, session.features, session.q(0), session.v(1))
    for array in arrays:
        assert not array.flags.writeable


def _bytes_per_token(run: Run, sizes: Iterable[int]) -> list[float]:
    text = list(range(11)) * 50
    per_token = []
    for size in sizes:
        run.read(text[:size])
        per_token.append(run.session.nbytes / size)
    return per_token


def test_memory_grows_linearly_with_one_long_prompt(tiny: Tiny) -> None:
    """Thumbnail rows have 33 to 64 bins from 65 tokens on, and nothing else varies."""
    sizes = (128, 256, 512)
    run = tiny(max_seq_len=512)
    per_token = []
    for size in sizes:
        run.read([])
        per_token += _bytes_per_token(run, [size])
    assert max(per_token) < 1.01 * min(per_token)


def test_memory_grows_linearly_with_steps(tiny: Tiny) -> None:
    run = tiny(max_seq_len=400)
    per_token = dict(enumerate(_bytes_per_token(run, range(1, 401)), start=1))
    assert per_token[400] < 1.05 * per_token[200] < 1.2 * per_token[100]
    assert _memory_behind(run.session) <= run.session.nbytes


def _memory_behind(session: Session) -> int:
    """Bytes that the arrays keep alive, whether a row of them is in use or not."""
    owners: dict[int, int] = {}
    for trace in session.traces:
        for part in vars(trace).values():
            if isinstance(part, np.ndarray):
                while isinstance(part.base, np.ndarray):
                    part = part.base  # noqa: PLW2901
                owners[part.__array_interface__["data"][0]] = part.nbytes
    return sum(owners.values())


def test_typing_in_the_middle_of_a_long_text_frees_what_each_key_replaced(tiny: Tiny) -> None:
    """Each key cuts off the rest of the pass before; they must not pile up."""
    run = tiny(max_seq_len=300)
    start, rest = list(range(11)) * 9, list(range(10, -1, -1)) * 9
    typed: list[int] = []
    for token_id in list(range(11)) * 3:
        typed.append(token_id)
        run.read(start + typed + rest)
    assert len(run.session.traces) > 30
    assert _memory_behind(run.session) <= 2 * run.session.nbytes
