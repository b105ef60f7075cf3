"""What this machine can do at most: multiply-adds per second, and bytes per second from memory.

Both in float32, with the threads that the engine has, by the products that a model is made of: a
large square times a square, which does much with each byte, and a large matrix times a vector,
which does next to nothing and has to wait for memory.
"""

from collections.abc import Iterator

import torch

from engine.clock import finished
from engine.cost.measurements import Machine

_SIDE = 1024  # of the squares: 4 MiB each, a thousand times as many multiply-adds as numbers
_SLICE = 256  # rows of the left one at a time, which is as fast and does not hold up a key
_PIECES, _ROWS, _COLUMNS = 16, 2048, 2048  # 16 MiB each, 256 MiB in all: more than caches hold
_REPEATS = 4


@torch.inference_mode()
def measure(device: torch.device) -> Iterator[Machine | None]:
    """None after each small piece of work, in the end the machine."""
    left, right = (torch.ones(_SIDE, _SIDE, device=device) for _ in range(2))
    peak = 0.0
    for _repeat in range(_REPEATS):
        seconds = 0.0
        for rows in torch.split(left, _SLICE):
            began = finished(device)
            _ = rows @ right
            seconds += finished(device) - began
            yield None
        peak = max(peak, _SIDE**3 / seconds)
    pieces = []
    for _piece in range(_PIECES):
        pieces.append(torch.ones(_ROWS, _COLUMNS, device=device))  # zeros would take no memory
        yield None
    vector = torch.ones(_COLUMNS, device=device)
    fastest = float("inf")
    for _repeat in range(_REPEATS):
        seconds = 0.0
        for piece in pieces:
            began = finished(device)
            _ = piece @ vector
            seconds += finished(device) - began
            yield None
        fastest = min(fastest, seconds)
    n_bytes = sum(piece.nbytes for piece in pieces)
    yield Machine(peak, n_bytes / fastest, torch.get_num_threads(), device.type)
