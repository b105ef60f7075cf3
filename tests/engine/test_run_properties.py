"""However a text came about, what is shown is what a fresh run of it would show."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import CancelledError, ContextFullError
from engine.model import Transformer
from engine.readouts import ROLES, checks, head_roles
from engine.run import Pieces, Run

LIMIT = 20
Tokens = st.integers(0, 4)


@st.composite
def _conditions(draw: Callable[..., Any]) -> Conditions:
    heads = st.tuples(st.integers(0, 1), st.integers(0, 3))
    return Conditions(
        mask=draw(st.sampled_from(["causal", "causal", "window", "none"])),
        window=draw(st.integers(1, 8)),
        sinks=draw(st.integers(0, 3)),
        heads_off=draw(st.frozensets(heads, max_size=2)),
        off_by=draw(st.sampled_from(["zero", "mean"])),
        positions=draw(st.booleans()),
    )


class AnyHistory(RuleBasedStateMachine):
    """Edits, steps, steps back, changes of conditions and cache, passes that are given up."""

    positions = "none"
    windows: tuple[int, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        # So small that a few tokens fill several blocks and bins.
        self.patch.setattr("engine.attention.QUERY_BLOCK", 3)
        self.patch.setattr("engine.trace.MAX_BINS", 4)
        self.patch.setattr("engine.sliding_cache._ROOM", 1)
        self.patch.setattr("engine.sliding_cache._SPARE", 1)
        self.text: list[int] = []

    def teardown(self) -> None:
        """Give the sizes back."""
        self.patch.undo()

    @initialize(seed=st.integers(0, 3), post_norm=st.booleans())
    def start(self, seed: int, post_norm: bool) -> None:  # noqa: FBT001
        """One of a few models of the family."""
        config = ModelConfig(
            vocab_size=5,
            n_layer=2,
            n_head=4,
            n_kv_head=2,
            d_model=16,
            max_seq_len=LIMIT,
            positions=self.positions,  # type: ignore[arg-type]
            norm_placement="post" if post_norm else "pre",
            windows=self.windows,
        )
        self.model = Transformer(config)
        np_random = np.random.default_rng(seed)
        for name, parameter in self.model.named_parameters():
            middle = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            drawn = np_random.normal(middle, 0.3, tuple(parameter.shape))
            parameter.data.copy_(parameter.new_tensor(drawn))
        self.run = Run(self.model)

    def _read(self, text: list[int], most_rows: int = 0, first_rows: int = 0) -> None:
        if len(text) > LIMIT:
            with pytest.raises(ContextFullError):
                self.run.read(text)
        else:
            self.run.read(text, pieces=Pieces(most_rows, first_rows))
            self.text = text

    @rule(
        tokens=st.lists(Tokens, max_size=7),
        most_rows=st.integers(0, 4),
        first_rows=st.integers(0, 3),
    )
    def grow(self, tokens: list[int], most_rows: int, first_rows: int) -> None:
        """A paste at the end, at once or in pieces, or a step."""
        self._read(self.text + tokens, most_rows, first_rows)

    @rule(token=Tokens)
    def step(self, token: int) -> None:
        """One token further."""
        self._read([*self.text, token])

    @rule(at=st.integers(0, LIMIT), cut=st.integers(0, 3), tokens=st.lists(Tokens, max_size=3))
    def edit(self, at: int, cut: int, tokens: list[int]) -> None:
        """Replace some tokens in the middle."""
        self._read(self.text[:at] + tokens + self.text[at + cut :])

    @rule(n_tokens=st.integers(0, LIMIT))
    def back(self, n_tokens: int) -> None:
        """Keep the beginning only."""
        self._read(self.text[:n_tokens])

    @rule(conditions=_conditions())
    def change_conditions(self, conditions: Conditions) -> None:
        """Read the same text under other conditions."""
        self.run.set_conditions(conditions)
        self._read(self.text)

    @rule(use=st.booleans())
    def switch_cache(self, use: bool) -> None:  # noqa: FBT001
        """Read the same text with or without the cache."""
        self.run.set_cache(use=use)
        self._read(self.text)

    @rule(tokens=st.lists(Tokens, min_size=1, max_size=4), at=st.integers(0, LIMIT))
    def give_up(self, tokens: list[int], at: int) -> None:
        """Start an edit and let a newer wish stop it after the first layer."""
        text = (self.text[:at] + tokens)[:LIMIT]
        answers = iter([False, True])
        try:
            self.run.read(text, lambda: next(answers))
        except CancelledError:
            self._read(self.text)
        else:
            self.text = text

    @rule(tokens=st.lists(Tokens, min_size=1, max_size=7), goes_on=st.booleans())
    def part(self, tokens: list[int], goes_on: bool) -> None:  # noqa: FBT001
        """Another run goes its own way from here, and may be the one to go on with."""
        other = self.run.beside()
        ahead = (self.text + tokens)[:LIMIT]
        other.read(ahead)
        if goes_on:
            self.run, self.text = other, ahead

    @rule(n_tokens=st.integers(0, LIMIT))
    def look_back(self, n_tokens: int) -> None:
        """Show an earlier moment and come back."""
        then = self.run.at(n_tokens)
        kept = self.text[:n_tokens]
        assert then.token_ids.tolist() == kept
        self._assert_shows(then, kept)

    @invariant()
    def shows_what_a_fresh_run_would(self) -> None:
        """After every operation."""
        if hasattr(self, "run"):
            self._assert_shows(self.run.session, self.text)

    @invariant()
    def holds_what_can_still_be_seen(self) -> None:
        """In each layer the positions that its last query sees, 64 bytes each."""
        if hasattr(self, "run"):
            in_use = self.run.use_cache and self.run.conditions.append_only
            n_tokens = len(self.text) if in_use else 0
            back = range(n_tokens)  # how far from the last position
            mask = self.run.conditions
            near = mask.window if mask.mask == "window" else n_tokens
            assert self.run.cache_layer_bytes == tuple(
                64
                * sum(
                    (not own or far < own) and (far < near or n_tokens - 1 - far < mask.sinks)
                    for far in back
                )
                for own in self.windows or (0, 0)
            )

    def _assert_shows(self, session: Any, text: list[int]) -> None:
        fresh = Run(self.model)
        fresh.set_conditions(self.run.conditions)
        expected = fresh.read(text)
        assert session.token_ids.tolist() == text
        shown, other = self.run.thumbnails(session), fresh.thumbnails(expected)
        assert (shown.n_tokens, shown.bin_size) == (other.n_tokens, other.bin_size)
        if not text:
            return
        at = len(text) - 1
        for position in (at // 2, at):
            np.testing.assert_allclose(
                self.run.logits(session, position), fresh.logits(expected, position), atol=1e-4
            )
        patterns = [
            (self.run.pattern(session, layer, head), fresh.pattern(expected, layer, head))
            for layer in range(2)
            for head in (0, 3)
        ]
        for one, two in patterns:
            np.testing.assert_allclose(one, two, atol=1e-5)
        np.testing.assert_allclose(session.loss, expected.loss, atol=1e-4)
        np.testing.assert_allclose(session.features, expected.features, atol=1e-4)
        # Pooled bytes may round to a neighbour where float32 sums were ordered differently.
        assert np.abs(shown.peaks.astype(int) - other.peaks).max() <= 1
        assert np.abs(shown.first.astype(int) - other.first).max() <= 1
        roles, expected_roles = head_roles(session).scores, head_roles(expected).scores
        for role in ROLES:
            np.testing.assert_allclose(roles[role], expected_roles[role], atol=1e-4)
        result = checks(session)
        assert result.row_sum_error < result.TOLERANCE
        assert result.masked_weight == 0
        assert result.all_finite


@pytest.mark.parametrize("positions", ["none", "learned", "sinusoidal", "rotary", "alibi"])
def test_any_history_of_a_text_shows_what_a_fresh_run_would(positions: str) -> None:
    _check(positions)


@pytest.mark.parametrize("windows", [(3, 0), (5, 2), (0, 1)])
@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_so_it_does_where_layers_have_windows_of_their_own(
    positions: str, windows: tuple[int, ...]
) -> None:
    _check(positions, windows)


def _check(positions: str, windows: tuple[int, ...] = ()) -> None:
    machine = type("Machine", (AnyHistory,), {"positions": positions, "windows": windows})
    machine.TestCase.settings = settings(
        max_examples=15, stateful_step_count=15, deadline=None, derandomize=True
    )
    machine.TestCase("runTest").runTest()
