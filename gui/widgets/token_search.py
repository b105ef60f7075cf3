"""A field in which a token is looked for by its text or id, over a list of what was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.candidate_text import number, percent, token_label
from gui.widgets.fitting_label import font_of, plain_tip
from gui.widgets.lettering import quoted
from gui.widgets.token_matches import TokenMatches
from gui.widgets.token_text import display, speak

if TYPE_CHECKING:
    from engine.sampling import Stages

_MOST = 60  # tokens that are listed
_ROWS = 8  # of them in sight
_LONGEST = 40  # characters of a token
_PLACEHOLDER = "Token or id …"

Choice = int | Literal["next", "top"]


@dataclass(frozen=True, eq=False)
class TokenChoices:
    """What may be chosen at one position: the vocabulary, and how the model ranks it.

    `following` is the token that stands next in the text, if any does.
    """

    stages: "Stages"
    vocabulary: Sequence[bytes]
    following: int | None

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """How many tokens are more probable than each [V]."""
        ranks = np.empty(len(self.stages.order), np.intp)
        ranks[self.stages.order] = np.arange(len(ranks))
        return ranks

    def label(self, token_id: int) -> str:
        """A token as one line of visible text."""
        return quoted(token_label(self.vocabulary, token_id, _LONGEST))

    def spoken(self, token_id: int) -> str:
        """A token in words."""
        known = token_id < len(self.vocabulary)
        return speak(self.vocabulary[token_id]) if known else f"token {token_id}"

    def logit(self, token_id: int) -> str:
        """Its logit and probability."""
        return (
            f"logit {number(float(self.stages.logits[token_id]))} · "
            f"{percent(float(self.stages.plain_probs[token_id]))}"
        )

    def numbers(self, token_id: int) -> str:
        """Its rank, logit and probability."""
        return f"rank {self.ranks[token_id] + 1:,} · {self.logit(token_id)}"


class TokenSearch(QLineEdit):
    """Lists what is found while it has the keyboard; Enter or a click chooses, Escape leaves.

    Without a text it offers to follow the text or the most probable token, wherever they lead.
    """

    chosen = Signal(object)  # a Choice
    left = Signal()  # by Escape

    def __init__(self, over: QWidget) -> None:
        """The list lies over this widget, under the field."""
        super().__init__()
        self._choices: TokenChoices | None = None
        self._matches: TokenMatches | None = None
        self._theme = LIGHT
        self._over = over
        self.list = QListWidget(over)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setUniformItemSizes(True)
        self.list.setAccessibleName("Tokens that were found")
        self.list.hide()
        self.setPlaceholderText(_PLACEHOLDER)
        self.setAccessibleName("Token whose logit is taken apart")
        self.setToolTip(
            "Type a part of a token, or its id; up and down, Enter takes it, Escape leaves."
        )
        self._say()
        self.textEdited.connect(lambda _text: self._fill())
        self.list.itemClicked.connect(self._take)
        self.list.currentItemChanged.connect(lambda *_: self._say())

    def set_theme(self, theme: Theme) -> None:
        """Take over sizes; colours come with the palette."""
        self._theme = theme
        self.setFont(font_of(self, theme.font_body))
        self.list.setFont(font_of(self.list, theme.font_body))

    def set_choices(self, choices: TokenChoices | None) -> None:
        """Choose among these; None: there is nothing to choose from."""
        self._choices = choices
        if choices is not None and (
            self._matches is None or self._matches.vocabulary is not choices.vocabulary
        ):
            self._matches = TokenMatches(choices.vocabulary, len(choices.stages.order))
        self.setEnabled(choices is not None)
        if choices is None:
            self.close_list()
        elif self.list.isVisible():
            self._fill()

    def items(self) -> list[str]:
        """What is listed."""
        return [self.list.item(row).text() for row in range(self.list.count())]

    # Listing

    def _fill(self) -> None:
        choices, matches = self._choices, self._matches
        if choices is None or matches is None:
            return
        current = self.list.currentItem()
        kept = None if current is None else current.data(Qt.ItemDataRole.UserRole)
        self.list.clear()
        text = self.text()
        if not text:
            self._offer(choices)
        for token_id in matches.find(text, choices.ranks, _MOST):
            self._add(choices, token_id, token_id)
        if not self.list.count():
            typed = display(text.encode("utf-8", "surrogatepass"), _LONGEST)
            item = QListWidgetItem(f"No token holds {quoted(typed)}.")
            item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
        else:
            rows = range(self.list.count())
            wanted = [row for row in rows if self._choice(row) == kept and not text]
            self.list.setCurrentRow(wanted[0] if wanted else 0)
        self._place()

    def _offer(self, choices: TokenChoices) -> None:
        if choices.following is not None:
            self._add(choices, "next", choices.following, "Follows: ")
        self._add(choices, "top", int(choices.stages.order[0]), "Most probable: ")

    def _add(self, choices: TokenChoices, choice: Choice, token_id: int, before: str = "") -> None:
        text = f"{before}{choices.label(token_id)}  {choices.numbers(token_id)} · id {token_id}"
        item = QListWidgetItem(text)
        item.setData(Qt.ItemDataRole.UserRole, choice)
        item.setToolTip(plain_tip(text))
        words = f"{before}{choices.spoken(token_id)}, {choices.numbers(token_id)}"
        item.setData(Qt.ItemDataRole.AccessibleTextRole, words)
        self.list.addItem(item)

    def _choice(self, row: int) -> object:
        return self.list.item(row).data(Qt.ItemDataRole.UserRole)

    def _place(self) -> None:
        over = self._over
        corner = self.mapTo(over, QPoint(0, self.height()))
        width = max(self.width(), over.width() - corner.x() - 2 * self._theme.unit)
        row = max(self.list.sizeHintForRow(0), 1)
        high = min(self.list.count(), _ROWS) * row + 2 * self.list.frameWidth()
        room = max(row, over.height() - corner.y() - self._theme.unit)
        self.list.setGeometry(corner.x(), corner.y(), width, min(high, room))
        self.list.show()
        self.list.raise_()

    def _say(self) -> None:
        """What a screen reader says of the field: the found token that Enter would take."""
        item = self.list.currentItem()
        listed = item.data(Qt.ItemDataRole.AccessibleTextRole) if item is not None else None
        self.setAccessibleDescription(listed or self.toolTip())

    def close_list(self) -> None:
        """Put the list away."""
        self.list.hide()
        self.list.clear()
        self._say()

    # Choosing

    def _take(self, item: QListWidgetItem | None) -> None:
        choice = None if item is None else item.data(Qt.ItemDataRole.UserRole)
        if choice is not None:
            self.clear()
            self.close_list()
            self.chosen.emit(choice)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move in the list, choose, or leave; everything else is typed."""
        key, row = Qt.Key(event.key()), self.list.currentRow()
        if key in {Qt.Key.Key_Down, Qt.Key.Key_Up}:
            if not self.list.isVisible():
                self._fill()
            else:
                step = 1 if key == Qt.Key.Key_Down else -1
                self.list.setCurrentRow(min(max(row + step, 0), self.list.count() - 1))
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if self.list.isVisible():
                self._take(self.list.currentItem())
            else:
                self._fill()
        elif key == Qt.Key.Key_Escape:
            self.clear()
            self.close_list()
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """List again what had been put away."""
        super().mousePressEvent(event)
        if not self.list.isVisible():
            self._fill()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Offer what can be chosen, if a key brought the user here."""
        super().focusInEvent(event)
        if event.reason() == Qt.FocusReason.ShortcutFocusReason:
            self._fill()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The list goes."""
        super().focusOutEvent(event)
        self.close_list()

    def changeEvent(self, event: QEvent) -> None:
        """Where the field cannot be used, nothing is listed."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange and not self.isEnabled():
            self.close_list()

    def minimumSizeHint(self) -> QSize:
        """Some letters."""
        return QSize(6 * self._theme.font_body, super().minimumSizeHint().height())
