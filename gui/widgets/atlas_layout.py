"""Where the thumbnails of all heads lie, in whole device pixels."""

from dataclasses import dataclass
from math import ceil
from typing import Self

SMALLEST = 14  # logical pixels a side; below that the atlas scrolls


@dataclass(frozen=True)
class AtlasLayout:
    """A grid of `count` square boxes of `box` pixels in `columns`, from (`left`, `top`).

    Boxes repeat every `step_x` × `step_y` pixels; `width` × `height` is the whole picture.
    """

    count: int
    columns: int
    box: int
    left: int
    top: int
    step_x: int
    step_y: int
    width: int
    height: int

    @property
    def rows(self) -> int:
        """How many lines of boxes there are, the last perhaps not full."""
        return ceil(self.count / self.columns) if self.columns else 0

    @classmethod
    def grid(cls, rows: int, columns: int, room: "Room") -> Self:
        """Layers down, heads across, as large as fits with labels on two edges."""
        gap = room.gap
        across = (room.width - room.left - gap) // columns - gap
        down = (room.height - room.top - gap) // rows - gap
        box = max(min(across, down), room.smallest)
        return cls._placed(rows * columns, columns, box, (box + gap, box + gap), room)

    @classmethod
    def sorted(cls, count: int, caption: tuple[int, int], room: "Room") -> Self:
        """One after another, each with a caption (width, height) under it."""
        gap = room.gap

        def size(columns: int) -> int:
            down = (room.height - gap) // ceil(count / columns) - caption[1] - gap
            return min((room.width - gap) // columns - gap, down)

        most = max(1, (room.width - gap) // (max(caption[0], room.smallest) + gap))
        columns = max(range(1, min(most, count) + 1), key=size)
        box = max(size(columns), room.smallest)
        if box == room.smallest:  # it scrolls, so as many across as there is room for
            columns = min(most, count)
            across = (room.width - gap) // columns - gap
            box = max(room.smallest, min(across, 2 * caption[1]))
        step = max(box, caption[0]) + gap
        bare = Room(room.width, room.height, 0, 0, gap, room.smallest)
        return cls._placed(count, columns, box, (step, box + caption[1] + gap), bare)

    @classmethod
    def _placed(
        cls, count: int, columns: int, box: int, step: tuple[int, int], room: "Room"
    ) -> Self:
        rows = ceil(count / columns)
        width = room.left + columns * step[0] + room.gap
        height = room.top + rows * step[1] + room.gap
        spare = max(0, room.width - width) // 2
        left = room.left + room.gap + spare + (step[0] - room.gap - box) // 2
        return cls(
            count,
            columns,
            box,
            left,
            room.top + room.gap,
            step[0],
            step[1],
            max(width, room.width),
            max(height, room.height),
        )

    def corner(self, at: int) -> tuple[int, int]:
        """The top left pixel of a box."""
        row, column = divmod(at, self.columns)
        return self.left + column * self.step_x, self.top + row * self.step_y

    def box_at(self, x: float, y: float) -> int | None:
        """Which box is at a pixel, with what lies under it and half the gaps; None outside."""
        side = (self.step_x - self.box) / 2
        column = int((x - self.left + side) // self.step_x)
        row = int((y - self.top + 1) // self.step_y)
        if not (0 <= column < self.columns and row >= 0):
            return None
        at = row * self.columns + column
        return at if at < self.count else None


@dataclass(frozen=True)
class Room:
    """The device pixels that a layout may fill, and what it must keep free."""

    width: int
    height: int
    left: int
    top: int
    gap: int
    smallest: int
