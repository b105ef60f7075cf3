"""The engine's lines, their shapes and the second opinion, as parts of a text; no Qt."""

from collections.abc import Iterator

from engine.answers.code_lines import AXES, Called, EngineCode, Fused, Operand
from engine.answers.source import Source
from gui.widgets.code_spans import Part
from gui.widgets.scales import exact
from gui.words.cell_places import place_of, places_in

NO_BREAK = "\u00a0"
HINT = "A click on a line, or Enter, opens what it computes in Cell."
_TITLES = {
    "fused_mix": "The same from torch's fused kernel",
    "Attention.forward": "Where they are called: project, cache, output",
    "Attention.project": "Where q, k and v come from: matrix, norm, position",
    "matmul_heads": "The product head by head",
    "Scoring.masked": "Cap, ALiBi and mask",
}


def heading(code: EngineCode) -> tuple[str, ...]:
    """Which lines these are, in fewer and fewer words."""
    name, where = code.attend.source.name, _lines(code.attend)
    return (
        f"Layer {code.layer}: the four lines of attention · {name}, {where}",
        f"Layer {code.layer} · {name}, {where}",
        f"Layer {code.layer} · {where.rpartition('/')[2]}",
        f"Layer {code.layer}",
    )


def parts_of(code: EngineCode, head: int) -> tuple[Part, ...]:
    """Everything that is shown, from top to bottom; `head` is the selected one."""
    return tuple(_parts(code, head))


def _parts(code: EngineCode, head: int) -> Iterator[Part]:
    selected = f"Selected: row {code.row} of T (position {code.query}), row {head} of H."
    yield Part("note", f"{selected} {HINT}")
    yield from _called(code.attend)
    yield Part("note", _call(code))
    if code.heads_off:
        yield Part("note", _off(code.heads_off))
    if code.fused is None:
        yield Part("title", _TITLES["fused_mix"])
        yield Part("note", code.obstacle)
    else:
        yield Part("title", _title(code.fused.called.source))
        yield from _called(code.fused.called)
        yield Part("note", _difference(code.fused))
    for source in code.around:
        yield Part("title", _title(source))
        yield Part("code", source.text, places_in(source))
        if source.name == "Attention.forward":
            yield Part("shapes", f"recorded: {_list(code.recorded)}")


def _called(called: Called) -> Iterator[Part]:
    for line in called.lines:
        place = place_of(line)
        yield Part("code", line.statement.text, (place,) * len(line.statement.text.splitlines()))
        yield Part("shapes", f"{_list(line.takes)} → {_list(line.gives)}", (place,))


def _list(operands: tuple[Operand, ...]) -> str:
    """Each in one piece, wherever the line breaks."""
    return " · ".join(operand.said().replace(" ", NO_BREAK) for operand in operands)


def _lines(called: Called) -> str:
    statements = [line.statement for line in called.lines]
    return f"{called.source.file} {statements[0].first}–{statements[-1].last}"


def _title(source: Source) -> str:
    where = f"{source.name}, {source.file} {source.first}–{source.last}"
    return f"{_TITLES.get(source.name, source.name)} · {where}"


def positions(at: range) -> str:
    """Such as "position 7" or "positions 0 to 11"."""
    return f"position {at[0]}" if len(at) == 1 else f"positions {at[0]} to {at[-1]}"


def _call(code: EngineCode) -> str:
    legend = ", ".join(f"{letter} {said}" for letter, said in AXES.items())
    rows = f"The call for {positions(code.rows)}"
    if code.rows != code.passed:
        rows += f", a block of the queries of the pass over {positions(code.passed)}"
    return f"{rows}. {legend}."


def _off(heads: tuple[int, ...]) -> str:
    named = ", ".join(map(str, heads))
    one = len(heads) == 1
    return (
        f"Head{'' if one else 's'} {named} of this layer {'is' if one else 'are'} off: what "
        f"{'it' if one else 'they'} mixed here is replaced behind these lines, in "
        "Attention.forward. It is compared as these lines give it."
    )


def _difference(fused: Fused) -> str:
    return (
        f"The largest difference of any mix of the layer is {exact(fused.difference)}, in head "
        f"{fused.head} at position {fused.position}, feature {fused.feature}: {exact(fused.mix)} "
        f"by the lines, {exact(fused.fused)} by the kernel, both from the recorded q, k and v. "
        f"At most {Fused.TOLERANCE:g} of the largest |v|, {fused.largest_value:.4g}, is right."
    )


def code_text(code: EngineCode) -> str:
    """The four lines to be copied, each with its shapes as a comment."""
    lines = [f"# {code.attend.source.name}, {_lines(code.attend)}"]
    for line in code.attend.lines:
        lines += [line.statement.text, f"#   {line.said()}"]
    return "\n".join(lines)
