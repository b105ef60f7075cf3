"""A second run beside the one on screen: the same model, or another, on a text of its own.

The model is shared where it is the same one, and what has been read of the text is taken over; from
then on text and KV cache are its own, so that a keystroke costs the second run what it costs the
first.
"""

from dataclasses import replace
from pathlib import Path

from engine.answers.alignment import Alignment, Way
from engine.answers.comparison import Comparison, Wanted, align, counterpart
from engine.cancelling import Cancelled, never
from engine.errors import EngineError
from engine.formats import FormatChoice
from engine.loading import load
from engine.reading import Look, ModelInfo, Reading
from engine.scope import Scope
from engine.tokenizers.utf8 import to_text

LONGEST = 1024  # tokens of either text: along one axis they may need twice as many slots


class SecondRun:
    """Owns the second scope; lives on the engine's thread, as the first one does."""

    def __init__(self) -> None:
        self._scope: Scope | None = None
        self._made_of: tuple[int | Path, FormatChoice | None] | None = None
        self._look = Look()
        self._base: ModelInfo | None = None  # keeps the id of the shared model from being reused
        self._asked: tuple[object, ...] | None = None  # what was read last, as long as
        self._found: tuple[Reading, Alignment, Way] | None = None  # this is what came of it

    def compare(
        self, scope: Scope, reading: Reading, wanted: Wanted, cancelled: Cancelled = never
    ) -> Comparison | None:
        """A reading of the scope on screen beside one that differs as wanted.

        The second reading looks at the layer and head that are wanted, or else the same ones, or
        the last its model has, and at the position that belongs to the first one's. None for a
        reading of another model.

        Raises:
            EngineError: a text is too long to be compared, or the model cannot be opened.
            CancelledError: `cancelled` said so.
        """
        if reading.info is not scope.info:
            return None
        _check_length("A", reading)
        second = self._scope_for(scope, wanted, cancelled)
        read = reading.session, reading.document, reading.conditions, reading.sampling
        asked = (*read, reading.cursor, replace(wanted, at=None))
        if self._found is None or self._asked != asked:
            self._found = None  # if it is given up
            second.use_prefix = scope.use_prefix
            other = self._read(second, reading, wanted, cancelled)
            _check_length("B", other)
            self._asked, self._found = asked, (other, *align(reading, other, wanted.way))
        other, alignment, way = self._found
        position = counterpart(reading, other, alignment)
        layer, head = wanted.at or (reading.focus.layer, reading.focus.head)
        look = Look(layer, head, position)
        if position is None or position == other.n_tokens - 1:
            look = replace(look, query=None)  # follows the text
        if look != self._look:
            self._look = look
            other = second.look(look)
            self._found = other, alignment, way
        comparison = Comparison(reading, other, alignment, way, position)
        _ = comparison.difference, comparison.next_tokens  # here, so that the window need not
        return comparison

    def forget(self) -> None:
        """Give back the second run's memory, and with it another model's."""
        self._scope = self._made_of = self._base = self._asked = self._found = None
        self._look = Look()

    def _scope_for(self, scope: Scope, wanted: Wanted, cancelled: Cancelled) -> Scope:
        is_shared = wanted.path is None or str(wanted.path) == scope.info.path
        made_of: tuple[int | Path, FormatChoice | None] = (id(scope.info), None)
        if wanted.path is not None and not is_shared:
            made_of = (wanted.path, wanted.formats)
        if self._scope is None or made_of != self._made_of:
            self.forget()  # two other models at once may be more than there is memory for
            if wanted.path is None or is_shared:
                self._scope, self._base = scope.beside(), scope.info
            else:
                self._scope = Scope(load(wanted.path, wanted.formats, cancelled))
            self._made_of = made_of
        return self._scope

    def _read(
        self, second: Scope, reading: Reading, wanted: Wanted, cancelled: Cancelled
    ) -> Reading:
        second.prepare(wanted.conditions or reading.conditions, reading.sampling)
        if wanted.text is not None:
            return second.edit(wanted.text, cancelled)
        if second.info.vocabulary == reading.info.vocabulary:
            return second.follow(reading, cancelled)
        seen = reading.document.spelled[reading.n_fallen : reading.cursor]
        return second.edit(to_text(b"".join(seen)), cancelled)


def _check_length(name: str, reading: Reading) -> None:
    if reading.n_tokens > LONGEST:
        raise EngineError(
            f"Text {name} has {reading.n_tokens:,} tokens; shorten it to {LONGEST:,} to compare."
        )
