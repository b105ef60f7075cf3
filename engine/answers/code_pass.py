"""Runs the engine's own lines once more, one by one, on what a pass recorded."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.answers.code_lines import Called, EngineCode, Fused, Line, Operand
from engine.answers.fused import fused_mix, only_fused
from engine.answers.source import source_of
from engine.attention import Attention, Scoring, attend, matmul_heads
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions
from engine.model import Transformer
from engine.session import Session
from engine.sliding_cache import given_by_cache

# The axes of the tensors that the lines name, the last ones where a tensor has fewer.
_AXES = {
    "q": "HTD",
    "k": "GSD",
    "v": "GSD",
    "scores": "HTS",
    "weights": "HTS",
    "mix": "HTD",
    "mask": "HTS",
}


# The functions that call those lines, and that they call.
_AROUND = (Attention.forward, Attention.project, matmul_heads, Scoring.masked)


@torch.inference_mode()
def read_code(
    model: Transformer,
    session: Session,
    conditions: Conditions,
    layer: int,
    position: int,
    cancelled: Cancelled = never,
) -> EngineCode:
    """The lines that computed the row of a position in one layer, and what the kernel makes of it.

    `session` has read the position under the conditions.

    Raises:
        CancelledError: `cancelled` said so.
        EngineError: the text of the lines is not what runs.
    """
    scoring = model.scoring(layer, conditions)
    trace, row = session.place(position)
    blocks = scoring.blocks(trace.start, trace.n_tokens)
    rows, keys, scored = next(block for block in blocks if row < block[0].stop)
    start = trace.start + rows.start
    k, v = (torch.tensor(each(layer)) for each in (session.k, session.v))  # [G, S, D]
    given: slice | Tensor = keys
    places = given_by_cache(trace.start, trace.end, model.config.window(layer), conditions)
    if places is not None:
        given = places.at[0, : keys.stop]
        scored = replace(scored, places=places)
    operands = {
        "q": torch.tensor(trace.q[layer][:, rows]),
        "k": k[:, given],
        "v": v[:, given],
        "start": start,
        "scoring": scored,
    }
    obstacle, fused = "", None
    if scoring.cap:
        obstacle = (
            f"torch's fused kernel cannot cap scores, as this layer does at ± {scoring.cap:g}, so "
            "there is nothing to compare with."
        )
    else:
        try:
            with only_fused():
                called = Called(source_of(fused_mix), run_lines(fused_mix, operands))
                fused = _compare(torch.tensor(session.q(layer)), k, v, scoring, called, cancelled)
        except RuntimeError:
            obstacle = "torch has no fused kernel for these tensors here to compare with."
    return EngineCode(
        layer=layer,
        query=position,
        rows=range(start, trace.start + rows.stop),
        passed=range(trace.start, trace.end),
        attend=Called(source_of(attend), run_lines(attend, operands)),
        around=tuple(map(source_of, _AROUND)),
        recorded=(
            Operand("q", "HTD", trace.q[layer].shape),
            Operand("k", "GTD", trace.k[layer].shape),
            Operand("v", "GTD", trace.v[layer].shape),
        ),
        fused=fused,
        obstacle=obstacle,
        heads_off=tuple(sorted(head for at, head in conditions.heads_off if at == layer)),
    )


def _compare(
    q: Tensor, k: Tensor, v: Tensor, scoring: Scoring, called: Called, cancelled: Cancelled
) -> Fused:
    """All mixes [H, S, D] of a layer in both ways, block by block."""
    worst: tuple[np.float32, tuple[int, int, int], np.float32, np.float32] | None = None
    for rows, keys, scored in scoring.blocks(0, q.shape[-2]):
        give_up_if(cancelled)
        operands = (q[:, rows], k[:, keys], v[:, keys], rows.start, scored)
        _weights, mix = attend(*operands)
        fused = fused_mix(*operands)
        apart = (mix - fused).abs()
        head, row, feature = (int(at) for at in np.unravel_index(int(apart.argmax()), apart.shape))
        at = head, row, feature
        difference = np.float32(apart[at])
        if worst is None or not difference <= worst[0]:  # NaN is the worst
            place = head, rows.start + row, feature
            worst = difference, place, np.float32(mix[at]), np.float32(fused[at])
    assert worst is not None  # noqa: S101 - a text has a first block
    difference, (head, position, feature), ours, theirs = worst
    return Fused(
        called=called,
        difference=difference,
        head=head,
        position=position,
        feature=feature,
        mix=ours,
        fused=theirs,
        largest_value=np.float32(v.abs().max()),
    )


def run_lines(function: Callable[..., Any], operands: dict[str, Any]) -> tuple[Line, ...]:
    """Run a function's assignments one after another, and note what each took and gave.

    `operands` are its arguments by name. What runs is the text that is shown, compiled line by
    line in the function's own module.
    """
    names = dict(operands)
    lines = []
    for statement in source_of(function).statements:
        (node,) = ast.parse(statement.text).body
        if not isinstance(node, ast.Assign):
            continue
        takes = tuple(_operands([node.value], names))
        # The engine's own text, which `source_of` has proven to be the code that runs.
        exec(compile(ast.Module([node], []), "<line>", "exec"), function.__globals__, names)  # noqa: S102
        gives = tuple(_operands(node.targets, names))
        lines.append(Line(statement, takes, gives))
    return tuple(lines)


def _operands(nodes: list[ast.expr], names: dict[str, Any]) -> Iterator[Operand]:
    """The tensors and numbers that expressions name, each once, in their order."""
    for name, value in dict(pair for node in nodes for pair in _named(node, names)).items():
        if isinstance(value, Tensor):
            yield Operand(name, _letters(name, value), tuple(value.shape))
        elif isinstance(value, int | float):
            yield Operand(name, value=value)


def _letters(name: str, tensor: Tensor) -> str:
    """A letter for each axis; 1 where there is only a place for one."""
    axes = _AXES[name][-tensor.dim() :].rjust(tensor.dim(), "1")
    is_mask = name == "mask"  # one for all heads, unless ALiBi makes it differ
    return "".join(
        "1" if is_mask and axis == "H" and size == 1 else axis
        for axis, size in zip(axes, tensor.shape, strict=True)
    )


def _named(node: ast.AST, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and what they stand for, and attributes of them that are numbers."""
    if isinstance(node, ast.Name) and node.id in names:
        yield node.id, names[node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(names.get(node.value.id), node.attr, None)
        if isinstance(value, int | float):
            yield f"{node.value.id}.{node.attr}", value
    for child in ast.iter_child_nodes(node):
        yield from _named(child, names)
