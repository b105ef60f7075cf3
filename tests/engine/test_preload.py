"""Torch comes into a process that goes on meanwhile; each test has a fresh one."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _printed(code: str) -> list[str]:
    """The lines that a fresh process prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_after_it_torch_is_there_and_computes() -> None:
    """But nothing of the engine's, which the window's thread may be importing."""
    code = """
import sys
from engine.preload import preload
preload()
print(sorted(name for name in sys.modules if name.startswith("engine.")))
print(sys.modules["torch"].ones(3).sum().item())
"""
    assert _printed(code) == ["['engine.preload']", "3.0"]


def test_the_library_is_mapped_before_torch_is_imported() -> None:
    """And torch then computes as ever. Other systems than Linux leave it to the import."""
    code = """
import sys
from pathlib import Path
from engine.preload import _map_library
_map_library()
maps = Path("/proc/self/maps")
print("torch" in sys.modules)
print(("libtorch_cpu" in maps.read_text() if maps.exists() else False) == (sys.platform == "linux"))
import torch
print((torch.eye(2) @ torch.ones(2, 1)).flatten().tolist())
"""
    assert _printed(code) == ["False", "True", "[1.0, 1.0]"]


def test_other_threads_run_while_the_library_is_mapped() -> None:
    """One that only counts gets its share of the processor; Python's import would leave it none."""
    code = """
import sys, threading, time
from engine.preload import _map_library
done, used = threading.Event(), []

def count():
    began = time.thread_time()
    while not done.is_set():
        pass
    used.append(time.thread_time() - began)

thread = threading.Thread(target=count)
began = time.thread_time()
thread.start()
_map_library()
done.set()
thread.join()
print(sys.platform != "linux" or used[0] > 0.3 * (time.thread_time() - began))
"""
    assert _printed(code) == ["True"]
