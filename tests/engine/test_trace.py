from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.run import Run
from engine.trace import MAX_BINS, Trace, bin_size, has_earlier_twin

Tiny = Callable[..., Run]
TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def _arrays(trace: Trace) -> dict[str, np.ndarray]:
    return {name: part for name, part in vars(trace).items() if isinstance(part, np.ndarray)}


@pytest.fixture
def trace(tiny: Tiny) -> Trace:
    """One pass over ten tokens."""
    return tiny().read(TEXT).traces[0]


@pytest.mark.parametrize(
    ("n_tokens", "size"),
    [(0, 1), (1, 1), (64, 1), (65, 2), (128, 2), (129, 4), (1024, 16), (1025, 32), (8192, 128)],
)
def test_bins_double_when_64_are_full(n_tokens: int, size: int) -> None:
    assert bin_size(n_tokens) == size


@given(st.integers(1, 100_000))
def test_bins_are_the_smallest_power_of_two_that_fits(n_tokens: int) -> None:
    size = bin_size(n_tokens)
    assert size & (size - 1) == 0
    assert -(-n_tokens // size) <= MAX_BINS
    assert size == 1 or -(-n_tokens // (size // 2)) > MAX_BINS


@given(st.lists(st.integers(0, 5)), st.data())
def test_a_twin_is_the_same_token_somewhere_before(
    token_ids: list[int], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(token_ids)))
    expected = [token in token_ids[:position] for position, token in enumerate(token_ids)]
    assert has_earlier_twin(token_ids).tolist() == expected
    assert has_earlier_twin(token_ids, start).tolist() == expected[start:]


def test_nobody_can_write_to_a_record(trace: Trace) -> None:
    for part in (trace, trace.head(9), trace.head(2)):
        for name, array in _arrays(part).items():
            assert not array.flags.writeable, name


def test_records_compare_and_hash_by_identity(trace: Trace) -> None:
    """Comparing arrays would be neither quick nor a yes or no."""
    assert trace == trace  # noqa: PLR0124 - that is the question
    assert trace != trace.head(10)
    assert len({trace, trace, trace.head(10)}) == 2


@pytest.mark.parametrize("n_tokens", range(1, 11))
def test_the_head_of_a_pass_has_the_same_first_rows(trace: Trace, n_tokens: int) -> None:
    head = trace.head(n_tokens)
    assert (head.start, head.n_tokens, head.end) == (0, n_tokens, n_tokens)
    assert head.bin_size == trace.bin_size
    for name, whole in _arrays(trace).items():
        axis = whole.shape.index(10)
        rows = np.take(whole, range(n_tokens), axis=axis)
        np.testing.assert_array_equal(getattr(head, name), rows, err_msg=name)


def test_every_array_of_a_pass_is_cut_and_counted(trace: Trace) -> None:
    """A new one must not be forgotten in either place."""
    assert trace.nbytes == (
        sum(array.nbytes for array in _arrays(trace).values()) + trace.summary.sums.nbytes
    )
    for name, array in _arrays(trace.head(3)).items():
        assert 3 in array.shape, name
        assert 10 not in array.shape or name == "peaks", name


def test_rows_that_were_cut_off_are_freed_once_they_are_most_of_the_memory(trace: Trace) -> None:
    """Also when they are cut off a few at a time."""
    nine, six, five, four = (trace.head(n_tokens) for n_tokens in (9, 6, 5, 4))
    for shared in (nine, six, five, nine.head(6), nine.head(6).head(5)):
        assert np.shares_memory(shared.q, trace.q)
    for own in (four, six.head(4), nine.head(6).head(4)):
        for name, array in _arrays(own).items():
            assert not np.shares_memory(array, getattr(trace, name)), name
    assert np.shares_memory(four.head(2).q, four.q)


def test_the_summary_of_a_pass_is_worked_out_once(trace: Trace) -> None:
    assert trace.summary is trace.summary
    assert trace.head(4).summary is not trace.summary
