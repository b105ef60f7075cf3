"""The residual stream as rows, from the embedding to the logit, and what is said of each. No Qt.

One layer is open: its block is drawn as the model has it, with a row for each head. All other
layers have a row for attention and one for the MLP.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Literal

import numpy as np

from engine.answers.residual import Added, Attribution, Stream
from engine.config import ModelConfig
from gui.widgets.arithmetic_stages import exact

Kind = Literal[
    "token",  # the embedding
    "place",  # the position's
    "attention boxes",  # what the residual goes through to become what attention adds
    "attention",
    "head",
    "bias",
    "attention norm",  # in the stream itself, as with post-norm
    "mlp boxes",
    "mlp",
    "mlp norm",
    "after",  # the residual after a layer
    "final norm",
    "logit",
]

_NORMS = {"layer": "LayerNorm", "rms": "RMSNorm"}
_POSITIONS = {
    "none": "no positions",
    "learned": "learned positions",
    "sinusoidal": "sinusoidal positions",
    "rotary": "rotary positions",
    "alibi": "ALiBi",
}
_BENDS = {"gelu": "GELU", "gelu_tanh": "GELU", "silu": "SiLU", "relu": "ReLU"}
_ADDS = {"attention", "mlp"}  # what joins the stream with a plus
_N_NAMED = 3


@dataclass(frozen=True)
class Row:
    """One row; numbers that it has not are None, a cosine of no length is NaN."""

    kind: Kind
    label: str
    layer: int = -1
    head: int = -1
    length: float | None = None
    cosine: float | None = None
    share: float | None = None  # of the logit
    before: float = 0.0  # length of the residual above the row
    after: float = 0.0  # and below it
    boxes: tuple[tuple[str, ...], ...] = ()  # chains of texts that say the same, longest first

    @property
    def key(self) -> tuple[Kind, int, int]:
        """What stays when other layers open."""
        return self.kind, self.layer, self.head

    @property
    def adds(self) -> bool:
        """Whether a plus stands on the stream."""
        return self.kind in _ADDS


@dataclass(frozen=True, eq=False)
class StreamTable:
    """A stream, what it is to one logit, and the model that it is from.

    `token` is the token whose logit it is, as one line of visible text.
    """

    stream: Stream
    attribution: Attribution | None
    config: ModelConfig
    token: str

    # Rows

    def rows(self, layer: int) -> tuple[Row, ...]:
        """All rows, with one layer open."""
        return tuple(self._rows(layer))

    def _rows(self, opened: int) -> Iterator[Row]:
        stream, shares = self.stream, self.attribution
        start = float(stream.residual.lengths[0])
        alone = start if stream.place is None else float(stream.token.lengths)
        share = None if shares is None else shares.token
        yield self._row("token", "embedding", stream.token, (), share, (0.0, alone))
        if stream.place is not None:
            share = None if shares is None else shares.place
            yield self._row("place", "position", stream.place, (), share, (alone, start))
        for layer in range(stream.n_layer):
            yield from self._layer_rows(layer, is_open=layer == opened)
        yield from self._end_rows()

    def _layer_rows(self, layer: int, *, is_open: bool) -> Iterator[Row]:
        before, after = (float(self.stream.residual.lengths[layer + i]) for i in (0, 1))
        attention = self._part("attention", "attention", layer, before, before)
        mlp = self._part("mlp", "MLP", layer, before, after)
        if not is_open:
            yield from (attention, mlp)
            return
        norm = _NORMS[self.config.norm]
        is_post = self.config.norm_placement == "post"
        in_layer = Row("attention boxes", "", layer, before=before, after=before)
        mlp_boxes = replace(in_layer, kind="mlp boxes", boxes=self._mlp_boxes())
        yield replace(in_layer, boxes=self._attention_boxes(layer))
        if self.config.parallel_residual:  # the MLP reads what attention reads
            yield mlp_boxes
        yield attention
        for head in range(self.stream.n_head):
            yield self._part("head", f"head {head}", layer, before, before, head)
        if self.stream.bias is not None:
            yield self._part("bias", "bias", layer, before, before)
        if is_post:
            yield replace(in_layer, kind="attention norm", label=norm)
        if not self.config.parallel_residual:
            yield mlp_boxes
        yield mlp
        if is_post:
            yield Row("mlp norm", norm, layer, before=after, after=after)
        length, cosine = _measures(self.stream.residual, (layer + 1,))
        yield Row("after", "= residual", layer, -1, length, cosine, None, after, after)

    def _end_rows(self) -> Iterator[Row]:
        shares, end = self.attribution, float(self.stream.residual.lengths[-1])
        if self.config.norm_placement != "post":
            name = f"final {_NORMS[self.config.norm]}"
            bias = None if shares is None else shares.norm_bias
            yield Row("final norm", name, share=bias, before=end, after=end)
        total = None if shares is None else shares.total
        name = "logits, tied" if self.config.tied_output else "logits"
        yield Row("logit", name, share=total, before=end)

    def _part(
        self,
        kind: Literal["attention", "head", "bias", "mlp"],
        label: str,
        layer: int,
        before: float,
        after: float,
        head: int | None = None,
    ) -> Row:
        name = "heads" if kind == "head" else kind
        at = (layer,) if head is None else (layer, head)
        added = getattr(self.stream, name)
        share = None if self.attribution is None else float(getattr(self.attribution, name)[at])
        return self._row(kind, label, added, at, share, (before, after))

    def _row(
        self,
        kind: Kind,
        label: str,
        added: Added,
        at: tuple[int, ...],
        share: float | None,
        around: tuple[float, float],
    ) -> Row:
        length, cosine = _measures(added, at)
        layer, head = (*at, -1, -1)[:2]
        return Row(kind, label, layer, head, length, cosine, share, *around)

    # The block

    def _attention_boxes(self, layer: int) -> tuple[tuple[str, ...], ...]:
        config = self.config
        heads = f"{config.n_head} heads"
        if config.n_kv_head != config.n_head:
            heads += f" on {config.n_kv_head} key/value heads"
        window = f", window {config.window(layer)}" if config.window(layer) else ""
        return self._boxes(
            (
                f"attention: {heads}, {_POSITIONS[config.positions]}{window}",
                f"attention: {heads}{window}",
                f"attention: {heads}",
                f"attention, {config.n_head} heads",
                "attention",
            )
        )

    def _mlp_boxes(self) -> tuple[tuple[str, ...], ...]:
        config = self.config
        kind = "gated MLP" if config.mlp == "gated" else "MLP"
        bent = f"{kind}: {_BENDS[config.activation]}"
        return self._boxes((f"{bent}, {config.d_ff:,} wide", bent, kind, "MLP"))

    def _boxes(self, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """A part of a block with its norms, in fewer and fewer letters."""
        norm, place = _NORMS[self.config.norm], self.config.norm_placement
        chains = []
        for short in (norm, "norm", "N"):
            before = (short,) if place in {"pre", "both"} else ()
            after = (short,) if place in {"output", "both"} else ()
            chains += [(*before, name, *after) for name in names]
        order = range(len(chains))
        wanted = sorted(order, key=lambda at: -sum(map(len, chains[at])))
        return tuple(chains[at] for at in wanted)

    # Scales

    @cached_property
    def longest(self) -> float:
        """The largest length of anything that was added."""
        stream = self.stream
        parts = (stream.token, stream.place, stream.heads, stream.attention, stream.mlp)
        return _largest([part.lengths for part in parts if part is not None])

    @cached_property
    def largest_share(self) -> float:
        """The largest |share| of any part."""
        shares = self.attribution
        if shares is None:
            return 0.0
        singles = [shares.token, shares.place or 0.0, shares.norm_bias or 0.0]
        return _largest([np.array(singles), shares.heads, shares.attention, shares.mlp])

    # Words

    def name(self, row: Row) -> str:
        """What a row is of, in a sentence."""
        layer = f"layer {row.layer}"
        names: dict[str, str] = {
            "token": "The token's embedding",
            "place": f"The position's embedding ({self.config.positions})",
            "attention": f"Attention of {layer}, all heads",
            "head": f"Head {row.head} of {layer}",
            "bias": f"Attention's bias of {layer}",
            "mlp": f"The MLP of {layer}",
            "after": f"The residual after {layer}",
        }
        return names.get(row.kind, row.label)

    def describe(self, row: Row) -> tuple[str, ...]:
        """A row in a sentence with every digit, and in fewer words."""
        if row.boxes:
            chain = " → ".join(row.boxes[0])
            is_beside = row.kind == "mlp boxes" and self.config.parallel_residual
            source = "what attention reads" if is_beside else "the residual"
            return f"Layer {row.layer}: {source} → {chain} → added to the residual", chain
        if row.kind == "logit":
            return self._describe_logit()
        if row.length is None:
            told = f"{row.label}: the residual goes through it"
            if row.share is None:
                return (told,)
            adds = f"its bias adds {exact(row.share)} to the logit of {self.token}"
            return f"{told}; {adds}", f"{row.label}: its bias adds {signed(row.share)}"
        name = self.name(row)
        said, short = [], []
        if row.length is not None:
            said.append(f"length {exact(row.length)}")
            short.append(f"length {length_text(row.length)}")
        if row.cosine is not None and not np.isnan(row.cosine) and not self._is_last(row):
            said.append(f"cosine {exact(row.cosine)} with the final residual")
            short.append(f"cosine {signed(row.cosine)}")
        if row.share is not None:
            said.append(f"adds {exact(row.share)} to the logit of {self.token}")
            short.append(f"adds {signed(row.share)}")
        few = (
            ", ".join(short)
            .replace("length ", "")
            .replace("cosine", "cos")
            .replace("adds", "logit")
        )
        where = f"L{row.layer} " if row.layer >= 0 else ""
        label = row.label.removeprefix("= ")
        return (
            f"{name}: {', '.join(said)}",
            f"{name}: {', '.join(short)}",
            f"{where}{label}: {few}",
        )

    def _is_last(self, row: Row) -> bool:
        return row.kind == "after" and row.layer == self.stream.n_layer - 1

    def _describe_logit(self) -> tuple[str, ...]:
        tied = "the embedding's own matrix" if self.config.tied_output else "a matrix of its own"
        shares = self.attribution
        if shares is None:
            return (f"The logits come from the residual through {tied}",)
        capped = f", bent by the cap {shares.cap:g} into {exact(shares.bent)}" if shares.cap else ""
        said = f"All parts of the logit of {self.token} sum to {exact(shares.total)}{capped}"
        return f"{said}; the matrix is {tied}", f"All parts sum to {signed(shares.total)}{capped}"

    @cached_property
    def most(self) -> tuple[tuple[str, float], ...]:
        """The parts that add most to the logit, for or against, each head by itself."""
        shares = self.attribution
        if shares is None:
            return ()
        parts = [("embedding", shares.token)]
        parts += [("position", shares.place)] if shares.place is not None else []
        parts += [("final norm's bias", shares.norm_bias)] if shares.norm_bias is not None else []
        for layer in range(self.stream.n_layer):
            parts += [
                (f"L{layer} head {head}", float(share))
                for head, share in enumerate(shares.heads[layer])
            ]
            parts += [] if shares.bias is None else [(f"L{layer} bias", float(shares.bias[layer]))]
            parts.append((f"L{layer} MLP", float(shares.mlp[layer])))
        return tuple(sorted(parts, key=lambda part: -_size(part[1])))

    def most_said(self) -> tuple[str, ...]:
        """The largest shares in words, in fewer and fewer."""
        named = [f"{name} {signed(share)}" for name, share in self.most[:_N_NAMED]]
        counts = range(len(named), 0, -1)
        return tuple(f"Largest: {', '.join(named[:n])}" for n in counts) or ("",)

    def spoken(self) -> str:
        """The whole stream in words, for those who do not see the bars."""
        stream = self.stream
        ends = [length_text(float(stream.residual.lengths[at])) for at in (0, -1)]
        longest = max(
            [
                *((f"attention of layer {i}", n) for i, n in enumerate(stream.attention.lengths)),
                *((f"the MLP of layer {i}", n) for i, n in enumerate(stream.mlp.lengths)),
            ],
            key=lambda part: _size(float(part[1])),
        )
        said = (
            f"The residual's length goes from {ends[0]} to {ends[1]}; the longest addition is of "
            f"{longest[0]}, {length_text(float(longest[1]))}."
        )
        if self.attribution is None:
            return said
        most = ", ".join(f"{name} {signed(share)}" for name, share in self.most[:_N_NAMED])
        return f"{said} The largest shares of the logit of {self.token}: {most}."

    def text(self) -> str:
        """All numbers of all layers with every digit, a part a line, tabs between."""
        shares = self.attribution
        head = ["part", "length", "cosine", *([] if shares is None else ["share of the logit"])]
        lines = ["\t".join(head)]
        done: set[tuple[Kind, int, int]] = set()
        for layer in range(self.stream.n_layer):
            for row in self.rows(layer):
                is_here = row.layer == layer or (row.layer < 0 and row.kind in {"token", "place"})
                if is_here and row.length is not None and row.key not in done:
                    done.add(row.key)
                    numbers = [row.length, row.cosine, *([] if shares is None else [row.share])]
                    cells = ["" if n is None else exact(n) for n in numbers]
                    lines.append("\t".join([self.name(row), *cells]))
        if shares is not None:
            if shares.norm_bias is not None:
                lines.append(f"The final norm's bias\t\t\t{exact(shares.norm_bias)}")
            lines.append(f"Sum\t\t\t{exact(shares.total)}")
        return "\n".join(lines)


def _measures(added: Added, at: tuple[int, ...]) -> tuple[float, float]:
    return float(added.lengths[at]), float(added.cosines[at])


def _largest(arrays: Sequence[np.ndarray]) -> float:
    finite = [np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in arrays]
    return float(max(finite, default=0.0))


def _size(value: float) -> float:
    """How large a number is; one that is not finite counts as none."""
    return abs(value) if isfinite(value) else 0.0


def length_text(length: float) -> str:
    """A length in three or four digits."""
    if not np.isfinite(length):
        return "NaN" if np.isnan(length) else "∞"
    if length >= 100:
        return f"{length:,.0f}"
    return f"{length:.1f}" if length >= 10 else f"{length:.2f}"


def signed(value: float) -> str:
    """A number with its sign and two decimals."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else f"{value:+}".replace("-", "−").replace("inf", "∞")
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")
