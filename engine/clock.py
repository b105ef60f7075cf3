"""A monotonic clock that is read only when the work before it has finished."""

import time

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
