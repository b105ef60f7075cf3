"""Torch comes into a process that goes on meanwhile; each test has a fresh one."""

import subprocess
import sys
from pathlib import Path

from tests.engine import nanogpt_files
from tests.engine.gguf_files import write_llama
from tests.engine.hf_files import write_golden
from tests.engine.nanogpt_files import meta

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


def test_a_part_of_torch_comes_last_and_makes_it_whole() -> None:
    """What its compiler needs is not there until `complete`; an optimiser brings the compiler."""
    code = """
import sys
from engine.preload import complete, preload
preload()
import torch
print("torch._meta_registrations" in sys.modules, hasattr(torch, "_meta_registrations"))
complete()
print(torch._meta_registrations.__file__.endswith("_meta_registrations.py"))
print(torch.Generator().manual_seed(3).initial_seed())
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    print(list(torch.ones(5)[torch.tensor([0, 2])].shape))
weight = torch.nn.Parameter(torch.ones(2))
(weight**2).sum().backward()
torch.optim.SGD([weight], lr=0.25).step()
print(weight.tolist(), "torch._dynamo" in sys.modules)
"""
    assert _printed(code) == ["False False", "True", "3", "[2]", "[0.5, 0.5] True"]


def test_a_torch_that_is_there_already_stays_as_it_is() -> None:
    """With all that it has imported."""
    code = """
import torch
before = torch._meta_registrations
from engine.preload import complete, preload
preload()
complete()
print(torch._meta_registrations is before)
"""
    assert _printed(code) == ["True"]


def test_models_of_all_kinds_are_opened_and_read_before_it_is_whole(tmp_path: Path) -> None:
    """In every format, under every mask, and as the first answer is looked at."""
    own = ROOT / "resources" / "models"
    paths = [own / name for name in ("shakespeare-chars", "positions-alibi", "positions-learned")]
    paths.append(write_llama(tmp_path / "llama.gguf"))
    paths.append(nanogpt_files.write(tmp_path / "nano", nanogpt_files.checkpoint(), meta()))
    for name in ("gpt_neox", "gemma3", "phi3", "olmo2"):
        write_golden(tmp_path / name, name)
        paths.append(tmp_path / name)
    code = f"""
import sys
from pathlib import Path
from engine.preload import preload
preload()
from engine.conditions import Conditions
from engine.formats import FORMATS, FormatChoice
from engine.loading import load
from engine.reading import Look
from engine.scope import Scope
masks = [Conditions(), Conditions(mask="none"), Conditions(mask="window", window=2)]
for path in map(Path, {list(map(str, paths))}):
    for name in FORMATS:
        scope = Scope(load(path, FormatChoice(name), packs_later=True))
        scope.pack_meanwhile()
        for conditions in masks:
            scope.set_conditions(conditions)
            scope.edit("to be")
            scope.look(Look(0, 1, 1))
        scope.step()
        scope.check_cache()
        scope.close()
print("torch._decomp" in sys.modules)
"""
    assert _printed(code) == ["False"]


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
