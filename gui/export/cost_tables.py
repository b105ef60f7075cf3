"""What the panels on cost show, as tables of numbers to export; no Qt."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

import resources
from engine.conditions import Conditions
from engine.cost.cache import CacheDesign
from engine.cost.formulas import PARTS, crossing, pass_cost
from engine.cost.measurements import (
    TIMED_PARTS,
    BothWays,
    Fit,
    Lab,
    OneByOne,
    crossing_of,
    fits_at_both_ends,
)
from engine.reading import Reading
from gui.export.numbers import Column, Table
from gui.words.cache_figures import CacheFigures

LENGTHS = (("2k", 2048), ("8k", 8192), ("128k", 131_072))
_FINEST = 256
_WHOLE = (
    "n_tokens",
    "token_id",
    "rows_with",
    "rows_without",
    "multiply_adds_with",
    "multiply_adds_without",
)


def design_of(family: resources.CacheFamily) -> CacheDesign:
    """How a well-known model holds its cache."""
    windows = (family.window,) * family.windowed + (0,) * (family.n_layer - family.windowed)
    numbers = family.latent or 2 * family.n_kv_head * family.head_dim
    return CacheDesign(family.name, numbers, windows)


def rows_said(design: CacheDesign) -> str:
    """How many rows a design keeps in all layers, as a formula of the tokens."""
    kinds = Counter(_kept_said(window, design.conditions) for window in sorted(design.windows))
    parts = [f"{n_layers} · {kept}" for kept, n_layers in kinds.items()]
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def _kept_said(window: int, mask: Conditions) -> str:
    """The rows of a layer with such a window of its own, 0 for none.

    That hides the first positions too, so that they stay only until it has left them behind.
    """
    near = min((size for size in (window, mask.window) if size), default=0)
    if not near:
        return "tokens"
    if not mask.sinks or near == window:
        return f"min(tokens, {near})"
    kept = f"min(tokens, {mask.sinks} + {near})"
    return f"{kept} while in its {window}, then {near}" if window else kept


def design_tables(
    reading: Reading, designs: Sequence[CacheDesign], bytes_per_number: int
) -> tuple[Table, ...]:
    """Bytes by tokens under each design, bytes by layer, and well-known models."""
    limit = reading.info.config.max_seq_len
    tokens = np.unique(np.linspace(0, limit, min(limit + 1, _FINEST)).round().astype(np.int64))
    curves: dict[str, Column] = {"tokens": tokens}
    for each in designs:
        curves[each.name] = np.array([each.n_bytes(int(n), bytes_per_number) for n in tokens])
    held = np.array(reading.cache_layer_bytes, np.int64)
    figures = CacheFigures.of(reading)
    own = CacheDesign.of(reading.info.config, conditions=reading.conditions)
    seen = np.array(own.layer_bytes(figures.n_tokens, figures.bytes_per_number), np.int64)
    families = resources.cache_families()
    models: dict[str, Column] = {
        "model": [each.name for each in families],
        "design": [each.design for each in families],
        "numbers_per_token": np.array([design_of(f).numbers * f.n_layer for f in families]),
        "max_seq_len": np.array([each.max_seq_len for each in families]),
    }
    for said, n_tokens in LENGTHS:
        models[f"bytes_at_{said}"] = np.array(
            [design_of(each).n_bytes(n_tokens, bytes_per_number) for each in families]
        )
    models["source"] = [each.source for each in families]
    return (
        Table("designs", curves),
        Table(
            "layers",
            {"layer": np.arange(len(held)), "bytes_held": held, "bytes_still_seen": seen},
        ),
        Table("models", models),
    )


def two_ways_tables(both: BothWays | None, one: OneByOne | None) -> tuple[Table, ...]:
    """Each decoded step both ways; each token that was read by itself."""
    tables = []
    if both is not None:
        columns: dict[str, Column] = {
            name: np.array([getattr(step, name) for step in both.steps], np.int64)
            for name in _WHOLE
        }
        for name in ("seconds_with", "seconds_without", "difference"):
            columns[name] = both.column(name)
        columns["same_draw"] = np.array([step.same_draw for step in both.steps], np.bool_)
        tables.append(Table("decoding", columns))
    if one is not None:
        tables.append(
            Table(
                "one_by_one",
                {
                    "position": np.arange(one.n_done),
                    "seconds": np.array(one.serial_seconds, np.float64),
                },
            )
        )
        whole: dict[str, Column] = {
            "tokens": np.array([one.n_tokens]),
            "parallel_seconds": np.array([one.parallel_seconds]),
            "parallel_multiply_adds": np.array([one.parallel_multiply_adds]),
            "serial_multiply_adds": np.array([one.serial_multiply_adds]),
            "rows_difference": np.array([one.rows_difference]),
            "logits_difference": np.array([one.logits_difference]),
            "tokens_equal": np.array([one.n_equal]),
        }
        tables.append(Table("one_by_one_in_all", whole))
    return tuple(tables)


def lab_tables(reading: Reading, lengths: Sequence[int], lab: Lab | None) -> tuple[Table, ...]:
    """Multiply-adds and bytes by part at each length; the times measured; the roof."""
    config, held = reading.info.config, reading.info.held.number_format
    costs = [pass_cost(config, n, number_format=held) for n in lengths]
    formula: dict[str, Column] = {"tokens": np.array(lengths, np.int64)}
    for part in PARTS:
        for name in ("multiply_adds", "needed", "n_bytes"):
            formula[f"{part}_{name}"] = np.array([getattr(cost[part], name) for cost in costs])
    tables = [Table("formula", formula)]
    if lab is None:
        return tuple(tables)
    times: dict[str, Column] = {"tokens": lab.lengths.astype(np.int64)}
    times |= {f"{part}_seconds": lab.seconds_of(part) for part in TIMED_PARTS}
    times["decode_seconds"] = lab.column("decode_seconds")
    tables.append(Table("times", times))
    tables += _fit_tables(reading, lab)
    if lab.machine is not None:
        machine: dict[str, Column] = {
            "multiply_adds_per_second": np.array([lab.machine.multiply_adds_per_second]),
            "bytes_per_second": np.array([lab.machine.bytes_per_second]),
            "threads": np.array([lab.machine.n_threads]),
        }
        tables.append(Table("machine", machine))
    worked = [each for each in (lab.prefill, lab.decode) if each is not None]
    if worked:
        names = ("n_new", "start", "multiply_adds", "n_bytes", "seconds")
        points: dict[str, Column] = {
            name: np.array([getattr(each, name) for each in worked]) for name in names
        }
        tables.append(Table("roof", points))
    return tuple(tables)


def _fit_tables(reading: Reading, lab: Lab) -> tuple[Table, ...]:
    """The powers of the length that the times grow by, and where attention overtakes the rest."""
    curves = {name: lab.column(name) for name in ("total", "attention", "others")}
    curves |= {part: lab.seconds_of(part) for part in TIMED_PARTS}
    ends = [fits_at_both_ends(lab.lengths, seconds) for seconds in curves.values()]
    fits: dict[str, Column] = {"time_of": list(curves)}
    for at, end in enumerate(("short", "long")):
        found = [each[at] for each in ends]
        fits[f"{end}_exponent"] = _fit_column(found, "exponent")
        fits[f"{end}_seconds_at_1"] = _fit_column(found, "factor")
        fits[f"{end}_from"] = _fit_column(found, "low")
        fits[f"{end}_to"] = _fit_column(found, "high")
    at_formula = crossing(reading.info.config)
    measured = crossing_of(lab.lengths, lab.column("attention"), lab.column("others"))
    crossings: dict[str, Column] = {
        "by_multiply_adds": np.array([at_formula or np.nan], np.float64),
        "by_time_measured": np.array([np.nan if measured is None else measured], np.float64),
    }
    return Table("powers", fits), Table("crossing", crossings)


def _fit_column(fits: Sequence[Fit | None], name: str) -> Column:
    """One field of each; NaN where there were too few points."""
    return np.array([np.nan if fit is None else getattr(fit, name) for fit in fits], np.float64)
