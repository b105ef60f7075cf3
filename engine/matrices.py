"""Matrices in smaller formats: less memory, and less time where torch has arithmetic for them.

Each module here takes float32 and gives float32, row by row: what a row of x becomes depends on no
other row, so that a cached pass stays a full pass. `weight` and `rows` tell the effective weights,
those that the product is really made with, so that whoever shows arithmetic shows this one.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from threading import Lock
from time import get_clock_info, perf_counter, thread_time
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.cancelling import Cancelled, give_up_if, never
from engine.errors import EngineError
from engine.formats import DEVICE_TITLES, DeviceName, FormatChoice, FormatName, Held
from engine.layers import TokenEmbedding
from engine.model import Transformer

# Weights that are widened at a time: they stay in the processor's cache until they are used.
_CHUNK = 1 << 17
_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# What float16 must reach, in times float32's speed, and something off for what a measurement may
# be wrong by: where it is only as fast, it still takes half of the memory.
_NO_SLOWER = 0.95
# From so many weights on, reading them takes most of a step's time.
MANY_WEIGHTS = 50_000_000


class Smaller(nn.Module):
    """What stands in place of a `Linear`: weights [N, K] in a smaller format, and maybe a bias."""

    bias: Tensor | None

    @abstractmethod
    def product(self, x: Tensor) -> Tensor:
        """[..., K] → [..., N], without the bias."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., K] → [..., N]."""
        y = self.product(x)
        return y if self.bias is None else y + self.bias


class Matrix(Smaller):
    """Owns the weights [N, K] in a smaller format and, for int8, the scale of each row [N].

    The product widens some rows after another to float32.
    """

    stored: Tensor
    scale: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, number_format: FormatName) -> None:
        """`weight` [N, K] and `bias` [N] are float32."""
        super().__init__()
        scale = None
        if number_format == "int8":
            stored, scale = quantised(weight)
        else:
            stored = weight.to(_DTYPES[number_format])
        self.register_buffer("stored", stored, persistent=False)
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    @property
    def weight(self) -> Tensor:
        """The effective weights [N, K] in float32."""
        return self.rows(slice(None))

    def rows(self, which: Tensor | slice | int) -> Tensor:
        """Some rows of the effective weights [..., K]."""
        rows = self.stored[which].float()
        return rows if self.scale is None else rows * self.scale[which].unsqueeze(-1)

    def product(self, x: Tensor, cancelled: Cancelled = never) -> Tensor:
        """[..., K] → [..., N], without the bias.

        Raises:
            CancelledError: `cancelled` said so between some rows and the next.
        """
        y = _widened_product(x, self.stored, cancelled)
        return y if self.scale is None else y * self.scale


def _widened_product(x: Tensor, stored: Tensor, cancelled: Cancelled = never) -> Tensor:
    """[..., K] → [..., N] with weights [N, K] in any format, some rows widened after another."""
    parts = []
    for part in torch.split(stored, max(1, _CHUNK // stored.shape[1])):
        give_up_if(cancelled)
        parts.append(F.linear(x, part.float()))
    return torch.cat(parts, dim=-1)


class PackedHalf(Smaller):
    """Owns float16 weights in the order in which fbgemm reads them; it sums in float32.

    To bring them into that order takes longer than to read them. Until `pack` is called, on any
    thread and while others multiply, they are widened for each product: the same weights, and
    sums in float32 as well.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, *, later: bool = False) -> None:
        """`weight` [N, K], of any float type, is packed here, unless that is for `later`."""
        super().__init__()
        self._waiting: Tensor | None = weight.half()
        self._packed: object = None
        self._multiply = torch.ops.quantized.linear_dynamic_fp16.default
        self.packed_bytes = 2 * weight.numel()
        self.register_buffer("bias", bias, persistent=False)
        if not later:
            self.pack()

    @property
    def waits(self) -> bool:
        """Whether it is still to be packed."""
        return self._waiting is not None

    def pack(self) -> None:
        """Have products made by fbgemm from now on."""
        waiting = self._waiting
        if waiting is not None:
            self._packed = torch.ops.quantized.linear_prepack_fp16(waiting.float(), None)
            self._waiting = None  # last: whoever multiplies meanwhile has the one or the other

    @property
    def weight(self) -> Tensor:
        """The effective weights [N, K] in float32."""
        waiting = self._waiting
        if waiting is not None:
            return waiting.float()
        return cast("Tensor", torch.ops.quantized.linear_unpack_fp16(self._packed)[0])

    def rows(self, which: Tensor | slice | int) -> Tensor:
        """Some rows of the effective weights [..., K]."""
        return self.weight[which]

    def product(self, x: Tensor) -> Tensor:
        """[..., K] → [..., N], without the bias."""
        waiting = self._waiting
        if waiting is not None:
            return _widened_product(x, waiting)
        if x.dim() == 1:
            return self.product(x[None])[0]
        return cast("Tensor", self._multiply(x, self._packed))


_LARGEST = 63  # 7 bits; with 8, sums of two products would overflow their 16 bits
_FINER = 126
_STEPS = _LARGEST * torch.tensor([1.0, _FINER, _FINER**2]).view(3, 1, 1)
_WORTH = 1 / _STEPS.view(3)


class PackedInt8(Smaller):
    """Owns int8 weights as fbgemm reads them, and multiplies whole numbers.

    fbgemm takes x in 7 bits too, which would cost more than the rounded weights do. So each row of
    x goes in as three: its whole part, what that leaves, 126 times as large, and what that leaves
    once more. That is as good as float32, for little more time: the weights are read once.
    """

    scale: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        stored, scale = quantised(weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tensors of this kind will go; the probe will tell
            tensor = torch._make_per_channel_quantized_tensor(  # noqa: SLF001 - the only way
                stored, scale.double(), torch.zeros(len(scale), dtype=torch.int64), 0
            )
        self._packed = torch.ops.quantized.linear_prepack(tensor, None)
        self.packed_bytes = weight.numel()
        self.register_buffer("scale", scale, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    @property
    def weight(self) -> Tensor:
        """The effective weights [N, K] in float32."""
        stored = torch.ops.quantized.linear_unpack(self._packed)[0].int_repr()
        return cast("Tensor", stored.float() * self.scale[:, None])

    def rows(self, which: Tensor | slice | int) -> Tensor:
        """Some rows of the effective weights [..., K]."""
        return self.weight[which]

    def product(self, x: Tensor) -> Tensor:
        """[..., K] → [..., N], without the bias."""
        flat = x.reshape(-1, x.shape[-1])
        largest = torch.linalg.vector_norm(flat, torch.inf, dim=-1, keepdim=True).clamp_min(1e-30)
        finer = (flat * (_STEPS / largest)).round()  # [3, rows, K], each 126 times the one before
        parts = torch.cat((finer[:1], torch.sub(finer[1:], finer[:-1], alpha=_FINER)))
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        y = product(parts.flatten(0, 1), 1.0, _LARGEST + 1, self._packed)  # [3 · rows, N]
        n_out = y.shape[-1]
        y = torch.as_tensor((_WORTH @ y.view(3, -1)).view(-1, n_out) * largest)
        return y.view(*x.shape[:-1], n_out)


class Table(nn.Module):
    """A tied pair: rows for the embedding, and a product with all of them for the output.

    Rows can be taken from a `Matrix` itself; fbgemm's order needs a second, plain copy.
    """

    def __init__(self, rows: Matrix, product: nn.Module) -> None:
        super().__init__()
        self.table, self.product = rows, product

    @property
    def weight(self) -> Tensor:
        """The effective weights [V, C] in float32."""
        return self.table.weight

    def rows(self, which: Tensor | slice | int) -> Tensor:
        """Some rows of the effective weights [..., C]."""
        return self.table.rows(which)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Token ids [...] → their rows [..., C]."""
        return self.table.rows(token_ids)

    def unembed(self, hidden: Tensor) -> Tensor:
        """[..., C] → [..., V]."""
        return cast("Tensor", self.product(hidden))


def quantised(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Weights [N, K] as whole numbers from −127 to 127, and the scale of each row [N]."""
    scale = weight.abs().amax(dim=1) / 127
    scale = torch.where(scale > 0, scale, 1.0)
    return (weight / scale[:, None]).round().to(torch.int8), scale


# What this machine can do


@cache
def has_packed(number_format: FormatName) -> bool:
    """Whether fbgemm's arithmetic is there for a format and comes out right."""
    if number_format not in ("float16", "int8"):
        return False
    # Numbers as good as any, without torch's generators: a start does without those.
    weight, x = torch.arange(24.0 * 64).sin().view(24, 64), torch.arange(3.0 * 64).cos().view(3, 64)
    plain = Matrix(weight, None, number_format)
    try:
        packed = _packed(weight, None, number_format)
        is_same = torch.equal(packed.weight, plain.weight)
        found = packed(x)
    except (RuntimeError, NotImplementedError, AttributeError):  # no such operation here
        return False
    return is_same and torch.allclose(found, plain(x), atol=1e-4)


def _packed(
    weight: Tensor, bias: Tensor | None, number_format: FormatName, *, later: bool = False
) -> PackedHalf | PackedInt8:
    if number_format == "float16":
        return PackedHalf(weight, bias, later=later)
    return PackedInt8(weight, bias)


_trying = Lock()


def speed_of_packed_half() -> float:
    """How many times as fast as float32 one token goes through a large matrix, measured once.

    Whoever asks while another thread measures waits for what that finds.
    """
    with _trying:
        return _speed_of_packed_half()


@cache
def _speed_of_packed_half() -> float:
    weight = torch.ones(2048, 4096)  # zeros would take no memory, and so no time to read
    packed = PackedHalf(weight, None)
    x = torch.zeros(1, 4096)
    with torch.inference_mode():
        pairs = [(_seconds(F.linear, x, weight), _seconds(packed, x)) for _ in range(7)]
    slow, fast = (min(seconds) for seconds in zip(*pairs, strict=True))  # the least disturbed
    return float(slow / fast)


def _seconds(work: Callable[..., object], *operands: Tensor) -> float:
    """How long this thread works: others open a model and a window at the same time."""
    is_fine = get_clock_info("thread_time").resolution < 1e-5
    now = thread_time if is_fine else perf_counter
    began = now()
    work(*operands)
    return now() - began


def decide(choice: FormatChoice, n_weights: int) -> Held:
    """The format that a choice comes to for a model of so many weights, and why.

    Raises:
        EngineError: this machine, or torch as it is installed here, has no such device.
    """
    check_device(choice.device)
    name, reason = _decided(choice, n_weights)
    how = ""
    if name != "float32":
        is_packed = choice.device == "cpu" and has_packed(name)
        how = "packed" if is_packed else "widened to float32 for each product"
    return Held(name, choice.device, how, reason)


def _decided(choice: FormatChoice, n_weights: int) -> tuple[FormatName, str]:
    if choice.number_format != "automatic":
        return choice.number_format, "chosen in the menu"
    if n_weights < MANY_WEIGHTS:
        return "float32", f"automatic: below {MANY_WEIGHTS // 10**6} M weights nothing is gained"
    if choice.device != "cpu" or not has_packed("float16"):
        return "float32", "automatic: this machine has no faster arithmetic for float16"
    speed = speed_of_packed_half()
    if speed < _NO_SLOWER:
        return "float32", f"automatic: float16 took {1 / speed:.1f} × as long when it was tried"
    return "float16", f"automatic: {speed:.1f} × as fast as float32 when it was tried"


def check_device(name: DeviceName) -> None:
    """See that torch can compute there.

    Raises:
        EngineError: it cannot.
    """
    is_there: dict[DeviceName, Callable[[], bool]] = {
        "cpu": lambda: True,
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    if not is_there[name]():
        raise EngineError(
            f"torch finds no {name!r} device here: {DEVICE_TITLES[name]} and a torch made for it "
            "are needed; 'cpu' always works."
        )


def or_processor(choice: FormatChoice) -> FormatChoice:
    """The choice, on the processor if the machine lacks its device."""
    try:
        check_device(choice.device)
    except EngineError:
        return replace(choice, device="cpu")
    return choice


# Putting a model into its format

Read = Callable[[str, torch.Size], Tensor]


def prepare(
    model: Transformer,
    held: Held,
    read: Read | None = None,
    cancelled: Cancelled = never,
    *,
    packs_later: bool = False,
) -> None:
    """Bring a model into a format and onto a device, one module after another.

    With `read`, each weight is first read by its name and shape; the model's own may be without
    memory. Two threads bring matrices into their format (`_Pair`), so no more than two are ever
    held in float32 beside the smaller ones. With `packs_later` the model can be used at once, and
    it is quicker after `pack`; `engine.packing` does the same meanwhile.

    Raises:
        CancelledError: `cancelled` said so between two modules.
    """
    device = torch.device(held.device)
    with ThreadPoolExecutor(1) as elsewhere:
        pair = _Pair(elsewhere)
        for name in [name for name, _module in model.named_modules()]:  # none is kept alive by it
            give_up_if(cancelled)
            module = model.get_submodule(name)
            for part, old in list(module.named_parameters(recurse=False)):
                if read is not None:
                    whole = f"{name}.{part}"
                    new = nn.Parameter(read(whole, old.shape), requires_grad=False)
                    setattr(module, part, new)
            if becomes_smaller(module, model, held.number_format):
                n_numbers = module.get_parameter("weight").numel()
                pair.do(partial(_replace, model, name, held, packs_later), n_numbers)
            elif name and not list(module.children()):
                module.to(device)
        pair.finish()
    model.to(device)
    model.held = replace(held, n_bytes=bytes_of(model))


def pack(model: Transformer, cancelled: Cancelled = never) -> None:
    """Do at once, on two threads, what `prepare` has left for later.

    Raises:
        CancelledError: `cancelled` said so between two matrices.
    """

    def do(matrix: PackedHalf) -> None:
        give_up_if(cancelled)
        matrix.pack()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(do, unpacked(model)))


def unpacked(model: Transformer) -> list[PackedHalf]:
    """The matrices of a model that `prepare` has left to be packed."""
    return [each for each in model.modules() if isinstance(each, PackedHalf) and each.waits]


class _Pair:
    """This thread and another that share work on matrices; what each does is done in any order.

    While the other has a large one at hand, as many numbers as that has may be gone through here;
    then it is waited for.
    """

    def __init__(self, elsewhere: Executor) -> None:
        self._elsewhere = elsewhere
        self._latest: Future[None] | None = None  # what was given to the other
        self._n_latest = self._n_here = 0  # its numbers, and those gone through here since

    def do(self, work: Callable[[], None], n_numbers: int) -> None:
        """Do work on a matrix of so many numbers on whichever thread is free."""
        is_busy = self._latest is not None and not self._latest.done()
        if is_busy and self._n_here <= self._n_latest:
            self._n_here += n_numbers
            work()
            return
        self.finish()
        self._latest = self._elsewhere.submit(work)
        self._n_latest, self._n_here = n_numbers, 0

    def finish(self) -> None:
        """Wait for the other; whatever its work raised is raised here."""
        if self._latest is not None:
            self._latest.result()


def becomes_smaller(module: nn.Module, model: Transformer, number_format: FormatName) -> bool:
    """Whether a module of a model is a matrix that the format holds in fewer bytes."""
    is_table = isinstance(module, TokenEmbedding) and model.config.tied_output
    return number_format != "float32" and (is_table or isinstance(module, nn.Linear))


def _replace(model: Transformer, name: str, held: Held, packs_later: bool) -> None:  # noqa: FBT001
    """Put a smaller one in a matrix's place."""
    module = model.get_submodule(name)
    is_packed = held.device == "cpu" and has_packed(held.number_format)
    if isinstance(module, nn.Linear):
        weight = module.weight.detach()
        bias = None if module.bias is None else module.bias.detach()
        smaller: nn.Module
        if is_packed:
            smaller = _packed(weight, bias, held.number_format, later=packs_later)
        else:
            smaller = Matrix(weight, bias, held.number_format)
    else:
        weight = module.get_parameter("weight").detach()
        rows = Matrix(weight, None, held.number_format)
        product: nn.Module = rows
        if is_packed:
            exact = rows.stored if held.number_format == "float16" else weight  # shared till packed
            product = _packed(exact, None, held.number_format, later=packs_later)
        smaller = Table(rows, product)
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, smaller.to(held.device))


def bytes_of(model: nn.Module) -> int:
    """What a model's weights take as they are held, with the little that its positions need."""
    n_bytes = 0
    for module in model.modules():
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        n_bytes += sum(tensor.nbytes for tensor in own)
        if isinstance(module, PackedHalf | PackedInt8):
            n_bytes += module.packed_bytes
    return n_bytes
