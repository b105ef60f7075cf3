"""One of each kind of conditions, for models of at least two layers with four heads."""

from engine.conditions import Conditions

CONDITIONS = {
    "causal": Conditions(),
    "window": Conditions(mask="window", window=3),
    "window and first": Conditions(mask="window", window=2, sinks=1),
    "mask off": Conditions(mask="none"),
    "heads off": Conditions(heads_off=frozenset({(0, 1), (1, 3)})),
    "heads off by their mean": Conditions(
        heads_off=frozenset({(0, 1), (0, 2), (1, 3)}), off_by="mean"
    ),
    "window, heads off by their mean": Conditions(
        mask="window", window=3, sinks=1, heads_off=frozenset({(0, 1), (1, 3)}), off_by="mean"
    ),
    "mask off, heads off by their mean": Conditions(
        mask="none", heads_off=frozenset({(0, 1), (1, 3)}), off_by="mean"
    ),
    "positions off": Conditions(positions=False),
}
