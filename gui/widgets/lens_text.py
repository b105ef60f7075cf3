"""What is said of the logit lens: of one cell, one position, one row. No Qt."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.answers.lens import Lens
from gui.widgets.candidate_text import percent, token_label
from gui.widgets.lettering import quoted
from gui.widgets.token_text import speak

_LONGEST = 40  # characters of a token


@dataclass(frozen=True, eq=False)
class LensTable:
    """A lens with the texts of its tokens.

    `labels` [S] and `tokens` [S] are the text that was read, `vocabulary` the bytes of each id.
    """

    lens: Lens
    labels: Sequence[str]
    tokens: Sequence[bytes]
    vocabulary: Sequence[bytes]

    def text(self, token_id: int) -> str:
        """A token of the vocabulary as one line of visible text."""
        return token_label(self.vocabulary, token_id, _LONGEST)

    def _unread(self, position: int) -> str:
        return f"Position {position} is being read."

    def _said(self, token_id: int) -> str:
        if token_id < len(self.vocabulary):
            return speak(self.vocabulary[token_id])
        return self.text(token_id)

    def depth_name(self, depth: int, *, short: bool = False) -> str:
        """What a row is called: its layers are counted as everywhere, from 0."""
        if not depth:
            return "emb" if short else "embedding"
        name = f"L{depth - 1}" if short else f"layer {depth - 1}"
        if depth < self.lens.n_layer:
            return name
        return f"{name} out" if short else f"{name} = output"

    def is_right(self, depth: int, position: int) -> bool:
        """Whether the top token is the one that really follows in the text."""
        lens = self.lens
        return bool(lens.follows[position] and lens.top[depth, position] == lens.target[position])

    def describe(self, depth: int, position: int) -> tuple[str, ...]:
        """One cell in a sentence with all digits, and in fewer words."""
        lens = self.lens
        if not lens.known[position]:
            return (self._unread(position),)
        top = quoted(self.text(int(lens.top[depth, position])))
        probability = lens.top_probability[depth, position]
        exact_chance = lens.target_probability[depth, position]
        share = percent(float(probability))
        target = quoted(self.text(int(lens.target[position])))
        rank = f"rank {lens.target_rank[depth, position] + 1:,}"
        chance = percent(float(exact_chance))
        where = f"{'' if not depth else 'after '}{self.depth_name(depth)}".capitalize()
        short = self.depth_name(depth, short=True)
        at = f"position {position} {quoted(self.labels[position])}"
        told = f"{where}, {at}:"
        what = "which follows" if lens.follows[position] else "the final answer"
        return (
            f"{told} {top} {probability!s}; {target}, {what}, has {rank}, {exact_chance!s}",
            f"{told} {top} {share}; {target}, {what}, has {rank}, {chance}",
            f"{short}, {position}: {top} {share}; {target} {rank}, {chance}",
            f"{top} {share}; {target} {rank}",
        )

    def headline(self, position: int) -> tuple[str, ...]:
        """From where on the final answer at a position is on top."""
        lens = self.lens
        if not lens.known[position]:
            return (self._unread(position),)
        answer = quoted(self.text(int(lens.top[-1, position])))
        settled = int(lens.settled[position])
        since = "the embedding" if not settled else self.depth_name(settled)
        after = quoted(self.labels[position])
        if settled == lens.n_layer:
            late = f"{answer} leads only in the output"
            words = f"{answer} only in the output", "Only in the output"
            return (f"After {after} at position {position}: {late}", late, *words)
        return (
            f"After {after} at position {position}: {answer} leads from {since} on",
            f"{answer} leads from {since} on",
            f"{answer} from {self.depth_name(settled, short=True)} on",
            f"From {self.depth_name(settled, short=True)} on",
        )

    def spoken(self, position: int) -> str:
        """All depths at one position in words, for those who do not see the grid."""
        lens = self.lens
        if not lens.known[position]:
            return self._unread(position)
        rows = []
        for depth in range(lens.n_layer + 1):
            token = self._said(int(lens.top[depth, position]))
            share = percent(float(lens.top_probability[depth, position]))
            rows.append(f"{self.depth_name(depth)}: {token} {share}")
        return (
            f"The top token at position {position}, {speak(self.tokens[position])}, "
            f"by depth: {'; '.join(rows)}."
        )
