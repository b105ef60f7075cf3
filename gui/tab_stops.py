"""Where the Tab key goes: to every control that can be seen, place by place.

Qt's own way leaves out what stands beside the widget that a panel hands its focus to, which is
most of a panel's controls, and goes into panels behind others, where nobody sees it.
"""

from collections.abc import Callable, Iterator

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QScrollArea, QWidget

Rank = Callable[[QWidget], int | None]  # None: it cannot be seen


def go_on(window: QWidget, rank: Rank, *, forward: bool) -> bool:
    """Give the keyboard to the next stop, or the one before; returns whether there is one.

    `rank` tells the place of a widget among those that are passed one after another.
    """
    current = window.focusWidget()
    known = {
        widget: place
        for widget in _chain(window)
        if (widget == current or _takes_tab(widget)) and (place := rank(widget)) is not None
    }
    stops = sorted(known, key=known.__getitem__)  # stable: within a place as they were made
    if not stops or stops == [current]:
        return False
    at = stops.index(current) if current in stops else -1 if forward else 0
    stop = stops[(at + (1 if forward else -1)) % len(stops)]
    reasons = Qt.FocusReason
    stop.setFocus(reasons.TabFocusReason if forward else reasons.BacktabFocusReason)
    _bring_into_sight(stop)
    return True


def _chain(window: QWidget) -> Iterator[QWidget]:
    widget = window.nextInFocusChain()
    while widget is not None and widget != window:
        yield widget
        widget = widget.nextInFocusChain()


def _takes_tab(widget: QWidget) -> bool:
    tab = Qt.FocusPolicy.TabFocus
    if widget.focusPolicy() & tab != tab or widget.focusProxy() is not None:
        return False
    if not (widget.isVisible() and widget.isEnabled()):
        return False
    if not isinstance(widget, QAbstractButton):
        return True
    # Of several of which one is on, that one; the arrow keys go to the others.
    group = widget.group()
    if group is None or not group.exclusive():
        return True
    checked = group.checkedButton()
    return checked is None or checked == widget or not checked.isVisible()


def _bring_into_sight(stop: QWidget) -> None:
    around = stop.parentWidget()
    while around is not None and not around.isWindow():
        if isinstance(around, QScrollArea):
            place = stop.mapTo(around.viewport(), QPoint(0, 0))
            if not around.viewport().rect().contains(stop.rect().translated(place)):
                around.ensureWidgetVisible(stop)
        around = around.parentWidget()
