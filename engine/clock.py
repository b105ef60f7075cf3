"""A monotonic clock that is read only when the work before it has finished."""

import time
from collections.abc import Callable
from functools import partial

import torch


def finished(device: torch.device) -> float:
    """Seconds from some moment on, once the device has done what it was given.

    A processor is done when a function returns; others work on by themselves.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


def clock_of(device: torch.device) -> Callable[[], float]:
    """The same for one device, for whoever looks at it hundreds of times in a pass."""
    return time.perf_counter if device.type == "cpu" else partial(finished, device)
