"""What two ways of doing the same came to, in sentences and rows of figures; no Qt."""

from engine.cost.measurements import BothWays, OneByOne
from gui.words.cost_lab import RESTING
from gui.words.quantities import count_said, counted, time_said, times_said

Row = tuple[str, ...]
Digits = tuple[tuple[str, str], ...]  # what numbers are called, and all their digits


def both_said(both: BothWays, *, is_running: bool, is_resting: bool = False) -> tuple[str, ...]:
    """How far decoding both ways has come, at length and shorter."""
    short = f"{len(both.steps):,} of {both.n_wanted:,} steps"
    if is_running and is_resting:
        return f"{RESTING}, at {both.share:.0%}", f"waiting, at {both.share:.0%}"
    if is_running:
        short = f"{short}, {both.share:.0%}"
    elif not both.is_done:
        short = f"{short}; stopped"
    return f"{short}, after a text of {counted(both.n_prompt, 'token')}", short


def one_said(one: OneByOne, *, is_running: bool, is_resting: bool = False) -> tuple[str, ...]:
    """How far reading one by one has come."""
    done = f"{one.n_done:,} of {counted(one.n_tokens, 'token')}"
    if is_running and is_resting:
        share = f"{one.n_done / one.n_tokens:.0%}"
        return f"{RESTING}, at {share}", f"waiting, at {share}"
    if is_running:
        return (f"{done}, {one.n_done / one.n_tokens:.0%}",)
    return (done,) if one.is_done else (f"{done}; stopped",)


def step_digits(both: BothWays, number: int) -> Digits:
    """A step both ways, counted from 1; nothing if there is none."""
    if not 1 <= number <= len(both.steps):
        return ()
    step = both.steps[number - 1]
    return (
        ("milliseconds with the cache", repr(1000 * step.seconds_with)),
        ("milliseconds without", repr(1000 * step.seconds_without)),
        ("rows with the cache", str(step.rows_with)),
        ("rows without", str(step.rows_without)),
        ("multiply-adds with the cache", str(step.multiply_adds_with)),
        ("multiply-adds without", str(step.multiply_adds_without)),
        ("largest difference", repr(step.difference)),
    )


def token_digits(one: OneByOne, number: int) -> Digits:
    """What reading took up to a token, counted from 1; nothing if it was not read."""
    if not 1 <= number <= one.n_done:
        return ()
    return (
        ("milliseconds since the first token", repr(1000 * sum(one.serial_seconds[:number]))),
        ("milliseconds of this token", repr(1000 * one.serial_seconds[number - 1])),
        ("milliseconds at once, all tokens", repr(1000 * one.parallel_seconds)),
        ("largest difference of keys and values", repr(one.rows_difference)),
        ("largest difference of logits", repr(one.logits_difference)),
    )


def digits_said(first: str, digits: Digits) -> str:
    """The same in a sentence."""
    return f"{first}: {'; '.join(f'{name} {number}' for name, number in digits)}"


def totals(both: BothWays) -> list[Row]:
    """Rows, multiply-adds and time in all, and how many times as much without the cache."""
    rows: list[Row] = []
    for title, name, said in (
        ("rows of keys and values", "rows", lambda n: f"{n:,.0f}"),
        ("multiply-adds", "multiply_adds", count_said),
        ("time", "seconds", time_said),
    ):
        with_it = float(both.column(f"{name}_with").sum())
        without = float(both.column(f"{name}_without").sum())
        rows.append((title, said(with_it), said(without), times_said(without / with_it)))
    return rows


def agreement(both: BothWays) -> str:
    """Whether both ways gave the same, in numbers."""
    return (
        f"The logits of both ways differ by at most {both.difference:.1e}, and both draw the same "
        f"next token at {both.n_same:,} of {len(both.steps):,} steps."
    )


def uncounted(both: BothWays) -> str:
    """What the totals leave out."""
    return (
        f"The pass over the prompt, {time_said(both.prompt_seconds)}, is the same for both and not "
        "counted."
    )


def turns(one: OneByOne) -> list[Row]:
    """Time and multiply-adds of both ways to read; of the whole text once all is read."""
    serial = sum(one.serial_seconds)
    rows: list[Row] = [
        (
            "time",
            time_said(one.parallel_seconds),
            time_said(serial),
            times_said(serial / one.parallel_seconds) if one.is_done else "—",
        )
    ]
    share = one.serial_multiply_adds / one.parallel_multiply_adds
    rows.append(
        (
            "multiply-adds",
            count_said(one.parallel_multiply_adds),
            count_said(one.serial_multiply_adds),
            f"{share:.3g} ×" if one.is_done else "—",
        )
    )
    return rows


def equality(one: OneByOne) -> str:
    """Whether both ways gave the same rows, in numbers."""
    return (
        f"{one.n_equal:,} of {one.n_done:,} tokens have the same keys, values and logits both "
        f"ways: largest difference {one.rows_difference:.1e} of keys and values, "
        f"{one.logits_difference:.1e} of logits."
    )


HIDDEN_CELLS = "At once, blocks of queries also compute cells that the mask hides."
