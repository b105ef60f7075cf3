"""What the cost lab found, in sentences and rows of figures; no Qt."""

from math import nan

import numpy as np

from engine.config import ModelConfig
from engine.cost.formulas import ATTENTION, Cost, crossing, pass_cost, total
from engine.cost.measurements import (
    TIMED_PARTS,
    Fit,
    Lab,
    LengthTime,
    Machine,
    TimedPart,
    Worked,
    crossing_of,
    fits_at_both_ends,
    ladder,
)
from engine.formats import FormatName
from engine.sizes import bytes_said
from gui.words.quantities import count_said, power_said, time_said

Row = tuple[str, ...]
Digits = tuple[tuple[str, str], ...]  # what numbers are called, and all their digits

RESTING = "waiting until nothing else is asked for"
HEADINGS = ("part", "multiply-adds", "needed", "bytes", "time", "time grows as")


def part_rows(
    config: ModelConfig, n_tokens: int, number_format: FormatName, lab: Lab | None
) -> list[Row]:
    """Each part of a pass over so many tokens, and the whole."""
    cost = pass_cost(config, n_tokens, number_format=number_format)
    points = () if lab is None else lab.points
    timed = next((point for point in points if point.n_tokens == n_tokens), None)
    rows = [_part_row(part, cost, timed, lab) for part in TIMED_PARTS]
    whole = total(cost)
    rows.append(
        (
            "in all",
            count_said(whole.multiply_adds),
            count_said(whole.needed),
            bytes_said(whole.n_bytes),
            time_said(nan if timed is None else timed.total),
            _grows(lab, "total"),
        )
    )
    return rows


def _part_row(part: TimedPart, cost: Cost, timed: LengthTime | None, lab: Lab | None) -> Row:
    taken = time_said(nan if timed is None else timed.seconds[part])
    if part == "rest":
        return "norms and sums", "—", "—", "—", taken, _grows(lab, part)
    each = cost[part]
    made, needed = count_said(each.multiply_adds), count_said(each.needed)
    return part, made, needed, bytes_said(each.n_bytes), taken, _grows(lab, part)


def _grows(lab: Lab | None, name: TimedPart | str) -> str:
    """The power of the length by which a time grows at the long end."""
    if lab is None or len(lab.points) < 2:
        return "—"
    is_part = name in TIMED_PARTS
    seconds = np.array([p.seconds[name] for p in lab.points]) if is_part else lab.column(name)  # type: ignore[index]
    _short, long = fits_at_both_ends(lab.lengths, seconds)
    return "—" if long is None else power_said(long.exponent)


def length_digits(
    config: ModelConfig, n_tokens: int, number_format: FormatName, lab: Lab | None
) -> Digits:
    """A pass over so many tokens with all digits: the formula, and the time if it was measured."""
    cost = pass_cost(config, n_tokens, number_format=number_format)
    ours, whole = total(cost, ATTENTION), total(cost)
    found = [
        ("multiply-adds of attention", str(ours.multiply_adds)),
        ("multiply-adds in all", str(whole.multiply_adds)),
        ("bytes of attention", str(ours.n_bytes)),
        ("bytes in all", str(whole.n_bytes)),
    ]
    for point in () if lab is None else lab.points:
        if point.n_tokens == n_tokens:
            found.insert(0, ("milliseconds in all", repr(1000 * point.total)))
            found.insert(1, ("milliseconds of attention", repr(1000 * point.attention)))
            found.append(("milliseconds of one more token", repr(1000 * point.decode_seconds)))
    return tuple(found)


def growth(config: ModelConfig, longest: int) -> str:
    """By which powers the multiply-adds grow, and what makes short texts linear."""
    lengths = np.array(ladder(longest), np.float64)
    costs = [pass_cost(config, int(n)) for n in lengths]
    whole = np.array([total(cost).multiply_adds for cost in costs], np.float64)
    short, long = fits_at_both_ends(lengths, whole)
    first = int(lengths[0])
    others = 1 - total(costs[0], ATTENTION).multiply_adds / whole[0]
    bend = f" {_two_powers(short, long)}" if short and long else ""
    return (
        f"Multiply-adds of the whole pass grow{bend or ' with the length'}: projections, MLP and "
        f"output do the same for each token, and make up {others:.1%} of them at {first:,} "
        f"tokens. {_with_the_square(config)}"
    )


def _with_the_square(config: ModelConfig) -> str:
    """What grows so, where layers with a window score no more keys than that shows."""
    n_whole = config.n_layer - sum(map(bool, config.windows))
    if n_whole == config.n_layer:
        return "Only scores and mix grow with the square."
    if not n_whole:
        return "Nothing grows with the square for long: every layer has a window of its own."
    layers = "1 layer" if n_whole == 1 else f"{n_whole} layers"
    return f"Only scores and mix grow with the square, in the {layers} without a window."


def _two_powers(short: Fit, long: Fit) -> str:
    return (
        f"as {power_said(short.exponent)} from {short.low:,.0f} to {short.high:,.0f} tokens, and "
        f"as {power_said(long.exponent)} from {long.low:,.0f} to {long.high:,.0f}"
    )


def time_growth(lab: Lab) -> str:
    """By which powers the measured times grow."""
    short, long = fits_at_both_ends(lab.lengths, lab.column("total"))
    _none, attention = fits_at_both_ends(lab.lengths, lab.column("attention"))
    if short is None or long is None or attention is None:
        return ""
    fixed = ""
    if short.exponent < 0:
        fixed = " Longer texts do not take less: something else slowed it; sweep again at rest."
    elif short.exponent < 1:
        fixed = " Below n^1, the fixed cost of each operation counts most."
    return (
        f"Measured here, the time grows {_two_powers(short, long)}; that of attention alone as "
        f"{power_said(attention.exponent)} there.{fixed}"
    )


def crossing_words(config: ModelConfig, lab: Lab | None) -> str:
    """From where on attention costs more than all else, by the formula and as measured."""
    at = crossing(config)
    said = f"at {at:,} tokens" if at else "never"
    words = (
        f"Attention costs more multiply-adds than all other parts together from {at:,} tokens on."
    )
    if not at:
        words = f"By multiply-adds, attention {said} costs more than all other parts together."
    if lab is None or not lab.points:
        return words
    x, ours, others = lab.lengths, lab.column("attention"), lab.column("others")
    measured = crossing_of(x, ours, others)
    if measured is not None:
        return f"{words} By the time measured here, from about {measured:,.0f} tokens on."
    if ours[-1] > others[-1]:
        return f"{words} By the time measured here, it does at every length."
    return f"{words} By the time measured here, not up to {x[-1]:,.0f}."


def limit_words(config: ModelConfig, longest: int) -> str:
    """What a length beyond the model's limit means."""
    if longest <= config.max_seq_len:
        return ""
    return (
        f"This model reads at most {config.max_seq_len:,} tokens. Longer passes are the same "
        "arithmetic on the same text repeated; what they would predict means nothing."
    )


def roof_words(machine: Machine | None, prefill: Worked | None, decode: Worked | None) -> str:
    """Which bound each kind of pass meets on this machine."""
    if machine is None:
        return ""
    threads = f"{machine.n_threads} thread{'' if machine.n_threads == 1 else 's'}"
    where = threads if machine.device == "cpu" else machine.device
    first = (
        f"This machine, with {where}: at most {count_said(machine.multiply_adds_per_second)} "
        f"multiply-adds and {_gigabytes(machine.bytes_per_second)} of memory per second, which "
        f"meet at {machine.ridge:.3g} multiply-adds per byte."
    )
    bounds = (_bound(machine, each) for each in (prefill, decode) if each is not None)
    return " ".join((first, *bounds))


def _bound(machine: Machine, worked: Worked) -> str:
    """What one pass waits for."""
    kind = f"Prefill of {worked.n_new:,} tokens" if worked.n_new > 1 else "Decoding one token"
    first = f"{kind} makes {worked.per_byte:.3g} for each byte"
    share = worked.per_second / machine.roof(worked.per_byte)
    is_memory = worked.per_byte < machine.ridge
    if is_memory and share > 1:
        return (
            f"{first}: memory would be the bound, but it is {share:.2g} times as fast as memory "
            "allows, for its weights stay in the processor's cache."
        )
    if is_memory:
        at_least = worked.n_bytes / machine.bytes_per_second
        return (
            f"{first}: memory is the bound. Moving its {bytes_said(worked.n_bytes)} takes at least "
            f"{time_said(at_least)} of the {time_said(worked.seconds)} that it took."
        )
    at_least = worked.multiply_adds / machine.multiply_adds_per_second
    if share > 1:
        return (
            f"{first}: arithmetic is the bound. It was {share:.2g} times as fast as the most that "
            "was measured of this machine, which something else must have slowed; sweep again when "
            "it rests."
        )
    return (
        f"{first}: arithmetic is the bound. Its {count_said(worked.multiply_adds)} multiply-adds "
        f"take at least {time_said(at_least)} of the {time_said(worked.seconds)} that it took."
    )


def _gigabytes(per_second: float) -> str:
    return f"{per_second / 1e9:.3g} GB"


def lab_said(lab: Lab | None, *, is_running: bool, is_resting: bool = False) -> tuple[str, ...]:
    """How far the sweep has come, at length and shorter."""
    if is_running and is_resting:
        share = "" if lab is None else f", at {lab.share:.0%}"
        return f"{RESTING}{share}", f"waiting{share}"
    if is_running and (lab is None or not lab.points):
        return "measuring the machine itself", "measuring"
    if lab is None:
        return "Nothing is measured yet.", "not measured"
    at = f"{lab.n_done:,} of {lab.longest:,} tokens"
    if is_running:
        return f"measuring {at}, {lab.share:.0%}", f"{at}, {lab.share:.0%}", f"{lab.share:.0%}"
    if lab.is_done:
        return f"Measured up to {lab.longest:,} tokens.", "measured"
    return f"Stopped at {at}.", "stopped"
