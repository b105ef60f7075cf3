"""The one store: frozen values, one signal, and no change while it tells of one."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions
from engine.errors import ConfigError
from gui.state import Display, MaskChoice, Selection, State, Store
from tests.gui.tiny_scope import tiny_scope

pytestmark = pytest.mark.usefixtures("qapp")


class Listener:
    """What a store told, in order."""

    def __init__(self, store: Store) -> None:
        self.names: list[set[str]] = []
        self.states: list[State] = []
        store.changed.connect(self._hear)

    def _hear(self, state: State, names: frozenset[str]) -> None:
        self.states.append(state)
        self.names.append(set(names))


def test_a_change_is_told_once_with_the_names_of_what_changed() -> None:
    """Together with the whole new state."""
    store = Store()
    heard = Listener(store)
    store.update(text="abc", use_cache=False, playing="")
    assert heard.names == [{"text", "use_cache"}]
    assert heard.states == [store.state]
    assert (store.state.text, store.state.use_cache) == ("abc", False)


@pytest.mark.parametrize(
    "same",
    [
        {"text": ""},
        {"selection": Selection()},
        {"display": Display()},
        {"mask": MaskChoice()},
        {"steps_per_second": 4.0},
        {"reading": None},
        {},
    ],
)
def test_what_does_not_differ_is_not_told(same: dict[str, Any]) -> None:
    """Equal values count as the same."""
    store = Store()
    heard = Listener(store)
    before = store.state
    store.update(**same)
    assert heard.names == []
    assert store.state is before


def test_a_new_reading_is_always_a_change() -> None:
    """Readings hold arrays and are told apart by what they are, not by what they hold."""
    scope = tiny_scope()
    first, second = scope.edit("abc"), scope.edit("abc")
    store = Store(State(reading=first))
    heard = Listener(store)
    store.update(reading=first)
    store.update(reading=second)
    assert heard.names == [{"reading"}]
    assert store.state.reading is second


def test_whoever_is_being_told_must_not_change_the_store(qtbot: QtBot) -> None:
    """A view that decides would start a loop."""
    store = Store()
    store.changed.connect(lambda _state, _names: store.update(text="more"))
    with qtbot.captureExceptions() as caught:
        store.update(text="abc")
    assert [str(error) for _kind, error, _trace in caught] == [
        "the store was changed (text) while it was telling."
    ]
    assert store.state.text == "abc"


def test_a_listener_that_fails_does_not_lock_the_store(qtbot: QtBot) -> None:
    """Later changes are told as ever."""
    store = Store()

    def fail(_state: State, _names: frozenset[str]) -> None:
        raise ValueError

    store.changed.connect(fail)
    heard = Listener(store)
    with qtbot.captureExceptions() as caught:
        store.update(text="a")
        store.update(text="b")
    assert [kind for kind, _error, _trace in caught] == [ValueError, ValueError]
    assert [state.text for state in heard.states] == ["a", "b"]


def test_a_name_that_the_state_does_not_have_is_a_mistake_of_ours() -> None:
    """Not a silent nothing."""
    with pytest.raises(TypeError, match="colour"):
        Store().update(colour="red")


def test_states_cannot_be_changed_in_place() -> None:
    """Whoever keeps one keeps it as it was."""
    state = Store().state
    with pytest.raises(FrozenInstanceError):
        state.text = "abc"  # type: ignore[misc]


def test_the_mask_controls_become_conditions() -> None:
    """A window's sizes count only while a window is in force."""
    choice = MaskChoice(mask="window", window=4, sinks=1)
    assert choice.conditions == Conditions(mask="window", window=4, sinks=1)
    assert replace(choice, mask="causal").conditions == Conditions()
    assert replace(choice, mask="none").conditions == Conditions(mask="none")
    with pytest.raises(ConfigError):
        _ = replace(choice, window=0).conditions
