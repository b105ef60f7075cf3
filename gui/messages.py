"""One door for telling the user something; open before there is a window to show it."""

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QObject, Signal

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Message:
    """One sentence, and behind it the details of a bug where it is one."""

    level: Level
    sentence: str
    details: str = ""


class Messages(QObject):
    """Owns what was told; whoever connects with `listen` also hears what came before."""

    told = Signal(object)  # Message

    def __init__(self) -> None:
        super().__init__()
        self._unheard: list[Message] = []
        self._heard = False

    def listen(self, slot: object) -> None:
        """Connect a slot that takes a Message."""
        self.told.connect(slot)
        self._heard = True
        for message in self._unheard:
            self.told.emit(message)
        self._unheard.clear()

    def info(self, sentence: str) -> None:
        """Something the user may like to know."""
        self._tell(Message("info", sentence))

    def warning(self, sentence: str) -> None:
        """Something that did not go as wished, with nothing lost."""
        self._tell(Message("warning", sentence))

    def error(self, sentence: str, details: str = "") -> None:
        """Something failed; `details` is a traceback where it is a bug."""
        self._tell(Message("error", sentence, details))

    def _tell(self, message: Message) -> None:
        if self._heard:
            self.told.emit(message)
        else:
            self._unheard.append(message)
