"""A list that only grows: what each moment holds, and that growing copies nothing."""

import pytest

from engine.growing import Growing


def grown(*entries: int) -> Growing[int]:
    """A list with these entries, added one by one."""
    numbers: Growing[int] = Growing()
    for each in entries:
        numbers = numbers.plus(each)
    return numbers


def test_each_moment_keeps_its_own_length() -> None:
    before = grown(1, 2)
    after = before.plus(3)
    assert list(before) == [1, 2]
    assert list(after) == [1, 2, 3]
    assert after[-1] == after[2] == 3
    assert after[1:] == (2, 3)
    assert before[1:] == (2,)
    assert not Growing()
    for at in (2, -3):
        with pytest.raises(IndexError):
            before[at]


def test_growing_copies_nothing_unless_two_go_on_from_one_moment() -> None:
    before = grown(1, 2)
    one, other = before.plus(3), before.plus(4)
    assert list(one) == [1, 2, 3]
    assert list(other) == [1, 2, 4]
    assert one._entries is before._entries
    assert other._entries is not before._entries


def test_two_are_equal_if_they_are_the_same_moment() -> None:
    before = grown(1)
    assert before == Growing(before._entries, 1)
    assert hash(before) == hash(Growing(before._entries, 1))
    assert before != before.plus(2)
    assert before != grown(1)
