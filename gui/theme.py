"""Colours, sizes and colour maps: light, dark and projector, each a frozen value.

A colour means one thing in every panel. The four hues of query, key, value and residual are
the colour-blind-safe ones of Okabe and Ito (2008).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ORANGE, SKY_BLUE, GREEN, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#CC79A7"


@dataclass(frozen=True, kw_only=True)
class Theme:
    """One look. Colours are #RRGGBB, sizes are logical pixels at the user's scale."""

    name: str
    title: str
    dark: bool
    background: str  # behind the panels
    surface: str  # a panel, a field
    raised: str  # a chip, a button, a header
    line: str  # hairlines
    text: str
    text_dim: str
    accent: str  # the selection, in every panel
    on_accent: str
    query: str
    key: str
    value: str
    residual: str
    absolute: str  # positions that say where a token stands
    relative: str  # positions that say how far away another one is
    good: str
    bad: str
    recomputed: str  # a chip that this pass computed
    fallen: str  # text beyond the context limit
    masked: str  # ground of a masked cell
    hatch: str  # the strokes over it
    weights_map: str  # sequential, weight 0 to 1
    loss_map: str  # sequential, another hue
    difference_map: str  # diverging, centred on 0
    font_axis: int = 11
    font_body: int = 13
    font_title: int = 15
    font_large: int = 20
    unit: int = 4  # the one spacing
    stroke: float = 1.5  # frames, curves, arcs

    def scaled(self, factor: float) -> Self:
        """The same look with all sizes multiplied."""
        return replace(
            self,
            font_axis=round(self.font_axis * factor),
            font_body=round(self.font_body * factor),
            font_title=round(self.font_title * factor),
            font_large=round(self.font_large * factor),
            unit=max(2, round(self.unit * factor)),
            stroke=self.stroke * factor,
        )


LIGHT = Theme(
    name="light",
    title="Light",
    dark=False,
    background="#F3F4F6",
    surface="#FFFFFF",
    raised="#EBEDF0",
    line="#CDD2D9",
    text="#1B1F24",
    text_dim="#57606A",
    accent="#B3400A",
    on_accent="#FFFFFF",
    query="#B87400",
    key="#1F7FBF",
    value="#007A59",
    residual="#A8467C",
    absolute="#3A45A8",
    relative="#C24E00",
    good="#00704F",
    bad="#B3261E",
    recomputed="#FFE3A8",
    fallen="#D9DCE1",
    masked="#F3F4F6",
    hatch="#CDD2D9",
    weights_map="CET-L17",
    loss_map="CET-L12",
    difference_map="CET-D1A",
)

DARK = replace(
    LIGHT,
    name="dark",
    title="Dark",
    dark=True,
    background="#14171B",
    surface="#1C2026",
    raised="#2A3038",
    line="#3B434D",
    text="#E8EBEF",
    text_dim="#A3ADB8",
    accent="#FFB454",
    on_accent="#14171B",
    query=ORANGE,
    key=SKY_BLUE,
    value="#2FC197",
    residual=PURPLE,
    absolute="#98A5FF",
    relative="#FF8552",
    good="#4CC38A",
    bad="#FF8A80",
    recomputed="#6B5213",
    fallen="#32383F",
    masked="#14171B",
    hatch="#4E5965",
    weights_map="viridis",
    loss_map="inferno",
    difference_map="CET-D6",
)

PROJECTOR = replace(
    LIGHT,
    name="projector",
    title="Projector",
    background="#FFFFFF",
    surface="#FFFFFF",
    raised="#E4E7EB",
    line="#6B7280",
    text="#000000",
    text_dim="#2B3036",
    accent="#C2185B",
    query="#9A5B00",
    key="#005EA2",
    value="#00603F",
    residual="#8A2462",
    absolute="#1E2C8F",
    relative="#B84300",
    hatch="#9AA1AB",
    fallen="#C4C9D0",
    font_axis=14,
    font_body=17,
    font_title=19,
    font_large=26,
    unit=4,
    stroke=2.5,
)

THEMES: Mapping[str, Theme] = MappingProxyType(
    {theme.name: theme for theme in (LIGHT, DARK, PROJECTOR)}
)


@cache
def lookup_table(name: str) -> "NDArray[np.uint32]":
    """The 256 colours of one of pyqtgraph's maps as 0xFFRRGGBB, ready for `np.take`.

    A name that ends in "-r" is the map run backwards.

    The table is read from pyqtgraph's own data file, because importing the package costs more
    than half a second and the first picture should not wait for it.
    """
    import numpy as np  # noqa: PLC0415 - after the first paint

    spec = find_spec("pyqtgraph")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyqtgraph is not installed, which carries the colour maps.")
    name, is_reversed = name.removesuffix("-r"), name.endswith("-r")
    path = Path(spec.origin).parent / "colors" / "maps" / f"{name}.csv"
    colours = np.loadtxt(path, delimiter=",", comments=[";", "#"])  # [rows, 3], 0 to 1
    if is_reversed:
        colours = colours[::-1]
    at = np.linspace(0, len(colours) - 1, 256)
    channels = [np.interp(at, np.arange(len(colours)), colours[:, i]) for i in range(3)]
    red, green, blue = (np.round(channel * 255).astype(np.uint32) for channel in channels)
    table = (0xFF000000 | red << 16 | green << 8 | blue).astype(np.uint32)
    table.setflags(write=False)
    return table
