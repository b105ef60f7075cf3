"""Make a PNG about a third as large by a palette: `python -m docs.shrink_picture FILE.png`.

Palettes of image programs are chosen for photographs and move the colours of a heatmap. Here the
commonest colours stay exact, and the others come from a palette whose entries lie far apart, so
that no colour is off by more than MOST_OFF.
"""  # noqa: INP001

import sys
from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage

MOST_OFF = 16  # of 255, in each of red, green and blue
_N_COLOURS, _N_EXACT = 256, 100


def shrink(path: Path) -> None:
    """Replace the picture by one with at most 256 colours.

    Raises:
        ValueError: the file is no picture, or 256 colours cannot come close enough to it.
    """
    picture = QImage(str(path)).convertToFormat(QImage.Format.Format_RGB32)
    if picture.isNull():
        raise ValueError(f"{path} is no picture.")
    pixels = np.frombuffer(picture.constBits(), np.uint32)  # a row of 32-bit pixels has no padding
    colours, which, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    channels = colours.view(np.uint8).reshape(-1, 4)[:, :3].astype(np.int16)
    chosen = [int(at) for at in np.argsort(-counts)[:_N_EXACT]]
    off = np.abs(channels[:, None] - channels[chosen]).max(axis=2)  # [colours, chosen]
    nearest, least = off.argmin(axis=1), off.min(axis=1)
    while len(chosen) < min(_N_COLOURS, len(colours)):
        farthest = int(least.argmax())
        off = np.abs(channels - channels[farthest]).max(axis=1)
        nearest[off < least] = len(chosen)
        least = np.minimum(least, off)
        chosen.append(farthest)
    if least.max() > MOST_OFF:
        raise ValueError(f"{path} has too many colours: one would be off by {least.max()} of 255.")
    width, height = picture.width(), picture.height()
    indices = np.zeros((height, -(-width // 4) * 4), np.uint8)  # Qt wants rows of whole words
    indices[:, :width] = nearest[which].reshape(height, width)
    small = QImage(indices.data, width, height, indices.shape[1], QImage.Format.Format_Indexed8)
    small.setColorTable([int(colour) for colour in colours[chosen]])
    if not small.save(str(path), quality=0):  # 0: as small as zlib can
        raise ValueError(f"{path} cannot be written.")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shrink(Path(name))
