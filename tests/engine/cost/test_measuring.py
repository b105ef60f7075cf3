"""What is timed is the model's own passes: whole, in the right parts, and given up when asked."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch

import engine.run
from engine import attention
from engine.clock import clock_of, finished
from engine.conditions import Conditions
from engine.config import QUERY_BLOCK
from engine.cost import length_sweep, machine, part_clock
from engine.cost.formulas import pass_cost, total
from engine.cost.length_sweep import sweep
from engine.cost.measurements import TIMED_PARTS, BothWays, Lab, Machine, OneByOne, ladder
from engine.cost.part_clock import PartClock
from engine.cost.patience import patiently
from engine.cost.two_ways import parallel_and_serial, with_and_without
from engine.errors import CancelledError, ContextFullError, EngineError
from engine.kv_cache import KVCache
from engine.model import Transformer
from engine.run import Run
from engine.sampling import Sampling

IDS = [1, 2, 3, 4, 5, 2, 3, 4]


class Ticking:
    """A clock that moves on by one each time it is read, so that times can be counted."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self, _device: torch.device) -> float:
        """The next second."""
        self.now += 1
        return self.now


class Asked:
    """Says no, but yes at some of the times that it is asked, counted from 1."""

    def __init__(self, *yes: int) -> None:
        self.n_times, self._yes = 0, yes

    def __call__(self) -> bool:
        """Whether something else is wanted."""
        self.n_times += 1
        return self.n_times in self._yes


def last(steps: Iterator[Any]) -> Any:
    """What is known in the end."""
    *_, final = steps
    return final


@pytest.fixture
def quick_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure a machine by less."""
    for name, value in (("_SIDE", 8), ("_PIECES", 2), ("_ROWS", 8), ("_COLUMNS", 8)):
        monkeypatch.setattr(machine, name, value)


# The clock


def test_the_clock_only_goes_forward() -> None:
    moments = [finished(torch.device("cpu")) for _ in range(100)]
    assert all(before <= after for before, after in pairwise(moments))


def test_the_clock_of_a_device_waits_for_it_where_it_works_on_by_itself() -> None:
    """A processor has nothing to wait for, so that its clock is looked at without asking."""
    assert clock_of(torch.device("cpu")) is time.perf_counter
    clock = clock_of(torch.device("mps"))
    assert isinstance(clock, partial)
    assert (clock.func, clock.args) == (finished, (torch.device("mps"),))


def test_a_pass_looks_at_the_clock_twice_and_copies_no_record(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticking = Ticking()
    monkeypatch.setattr(engine.run, "clock_of", lambda device: partial(ticking, device))
    run = tiny()
    run.read(IDS)
    first = run.stats
    run.read([*IDS, 1])
    assert ticking.now == 4
    assert [each.seconds for each in run.stats] == [1, 1]
    assert run.stats._entries is first._entries
    assert len(first) == 1


def test_reading_the_clock_costs_under_a_hundredth_of_a_step(tiny: Callable[..., Run]) -> None:
    """Even of the smallest model's; a pass reads it twice. The least of many, both times."""
    run = tiny()
    run.read(IDS)
    pairs, steps = [], []
    for n_tokens in range(len(IDS) + 1, run.config.max_seq_len + 1):
        before = time.perf_counter()
        finished(torch.device("cpu"))
        finished(torch.device("cpu"))
        between = time.perf_counter()
        run.read([*IDS, *[1] * (n_tokens - len(IDS))])
        pairs.append(between - before)
        steps.append(time.perf_counter() - between)
    assert min(pairs) < 0.01 * min(steps)


# Parts


@pytest.mark.parametrize("sizes", [{}, {"mlp": "gated", "tied_output": False}], ids=str)
def test_the_parts_are_the_whole_pass(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, sizes: dict[str, Any]
) -> None:
    """The clock is read once at each change of part, so all ticks but the first are shared out."""
    ticking = Ticking()
    monkeypatch.setattr(part_clock, "clock_of", lambda device: partial(ticking, device))
    run = tiny("rotary", **sizes)
    seconds = PartClock(run.model).timed_pass(torch.tensor(IDS), KVCache(run.config))
    assert sum(seconds.values()) == ticking.now - 1
    # A layer's attention has two projections, and one stretch each of scores, mix and MLP.
    assert seconds["projections"] == 2 * run.config.n_layer
    assert seconds["scores"] == seconds["mix"] == seconds["MLP"] == run.config.n_layer
    assert seconds["embedding"] == seconds["output"] == 1


def test_a_timed_pass_computes_what_any_pass_does(tiny: Callable[..., Run]) -> None:
    run = tiny()
    timed, plain = KVCache(run.config), KVCache(run.config)
    PartClock(run.model).timed_pass(torch.tensor(IDS), timed)
    run.model.hidden(torch.tensor(IDS), plain)
    assert timed.length == len(IDS)
    assert torch.equal(timed.k[:, :, : len(IDS)], plain.k[:, :, : len(IDS)])


def test_a_timed_pass_leaves_nothing_behind(tiny: Callable[..., Run]) -> None:
    """Also if it is given up in the middle."""
    run = tiny()
    product, before = attention.matmul_heads, [set(vars(m)) for m in run.model.modules()]
    clock = PartClock(run.model)
    clock.timed_pass(torch.tensor(IDS), KVCache(run.config))
    with pytest.raises(CancelledError):
        clock.timed_pass(torch.tensor(IDS), KVCache(run.config), cancelled=Asked(2))
    assert [set(vars(m)) for m in run.model.modules()] == before
    assert attention.matmul_heads is product


def test_watching_the_parts_sees_nothing_but_what_ends_them(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass has eight ends of parts in a layer and five beside; no hook and no mode slows it."""
    ticking = Ticking()
    monkeypatch.setattr(part_clock, "clock_of", lambda device: partial(ticking, device))
    run, modes, hooks = tiny(), [], []
    inner = attention.attend

    def attend(*operands: Any) -> Any:
        modes.append(torch._C._len_torch_function_stack())
        hooks.extend(m for m in run.model.modules() if m._forward_hooks or m._forward_pre_hooks)
        return inner(*operands)

    monkeypatch.setattr(attention, "attend", attend)
    PartClock(run.model).timed_pass(torch.tensor(IDS), KVCache(run.config))
    assert ticking.now == 8 * run.config.n_layer + 5
    assert modes == [0] * run.config.n_layer
    assert hooks == []


def test_more_than_a_block_is_not_timed_at_once(tiny: Callable[..., Run]) -> None:
    run = tiny()
    with pytest.raises(ValueError, match="are more than a block of"):
        PartClock(run.model).timed_pass(torch.zeros(QUERY_BLOCK + 1).long(), KVCache(run.config))


# The sweep


@pytest.mark.parametrize("longest", [1, 8, 9, 100, 128, 129, 192, 1000, 4096])
def test_a_ladder_climbs_to_the_longest(longest: int) -> None:
    lengths = ladder(longest)
    assert lengths[-1] == longest
    assert all(below < above for below, above in pairwise(lengths))
    assert all(n % QUERY_BLOCK == 0 for n in lengths[:-1] if n > QUERY_BLOCK)


@pytest.mark.usefixtures("quick_machine")
@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "sinusoidal"])
def test_a_sweep_times_every_length_beyond_the_context_too(
    tiny: Callable[..., Run], positions: str
) -> None:
    """The model sees 32 tokens."""
    run = tiny(positions)
    lab: Lab = last(sweep(run.model, IDS, 300))
    assert lab.lengths.tolist() == ladder(300)
    assert all(min(point.seconds.values()) >= 0 for point in lab.points)
    assert all(point.seconds["scores"] > 0 < point.decode_seconds for point in lab.points)
    assert lab.machine is not None
    assert lab.is_done
    assert run.config.max_seq_len == run.model.config.max_seq_len == 32


@pytest.mark.usefixtures("quick_machine")
def test_a_sweep_goes_on_far_beyond_a_layers_window(tiny: Callable[..., Run]) -> None:
    """Its cache lets rows go; what was given up is read again all the same."""
    run = tiny("rotary", windows=(5, 0), max_seq_len=600)
    lab: Lab = last(sweep(run.model, IDS, 1000, Asked(3, 30, 90, 200, 300, 400)))
    assert lab.lengths.tolist() == ladder(1000)
    assert lab.prefill is not None
    assert lab.decode is not None
    assert (lab.prefill.n_new, lab.decode.start) == (599, 599)
    # The last token sees 5 rows in one layer and 600 in the other, 4 heads of 4 features.
    parts = pass_cost(run.config, 1, 599)
    assert parts["scores"].multiply_adds == 4 * 4 * (5 + 600)
    assert lab.decode.multiply_adds == total(parts).multiply_adds


@pytest.mark.usefixtures("quick_machine")
def test_longer_readings_contain_the_shorter_ones(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that counts: 2, 3 and 4 blocks take 2, 3 and 4 times as many stretches."""
    ticking = Ticking()
    monkeypatch.setattr(part_clock, "clock_of", lambda device: partial(ticking, device))
    lab: Lab = last(sweep(tiny().model, IDS, 4 * QUERY_BLOCK))
    counted = {point.n_tokens: point.seconds["mix"] for point in lab.points}
    assert [counted[n * QUERY_BLOCK] for n in (1, 2, 3, 4)] == [2, 4, 6, 8]


@pytest.mark.usefixtures("quick_machine")
def test_the_two_points_under_the_roof_are_real_passes(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of as many tokens as the model sees, less the one that is decoded after them."""
    monkeypatch.setattr(length_sweep, "finished", Ticking())
    run = tiny()
    lab: Lab = last(sweep(run.model, IDS, 300))
    assert lab.prefill is not None
    assert lab.decode is not None
    assert (lab.prefill.n_new, lab.prefill.start, lab.prefill.seconds) == (31, 0, 1)
    assert (lab.decode.n_new, lab.decode.start, lab.decode.seconds) == (1, 31, 1)
    cost = total(pass_cost(run.config, 1, 31))
    assert (lab.decode.multiply_adds, lab.decode.n_bytes) == (cost.multiply_adds, cost.n_bytes)


def test_the_machine_is_measured_before_and_after_the_passes_and_the_best_counts(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been busy at either time."""
    found = iter([Machine(50.0, 8.0, 1, "cpu"), Machine(70.0, 6.0, 1, "cpu")])
    monkeypatch.setattr(length_sweep, "measure", lambda _device: iter([None, next(found)]))
    machines = [lab.machine for lab in sweep(tiny().model, IDS, 16)]
    assert machines[0] is None
    assert machines[1] == Machine(50.0, 8.0, 1, "cpu")
    assert machines[-1] == Machine(70.0, 8.0, 1, "cpu")


@pytest.mark.usefixtures("quick_machine")
def test_a_sweep_that_gives_way_measures_the_same_afterwards(tiny: Callable[..., Run]) -> None:
    """Each block that was given up is read again, and only once."""
    run = tiny()
    asked = Asked(1, 2, 5, 40, 41, 60)
    lab: Lab = last(sweep(run.model, IDS, 200, asked))
    assert lab.lengths.tolist() == ladder(200)
    assert lab.is_done
    assert asked.n_times > 60


def test_a_pass_is_given_up_before_its_logits_as_well(tiny: Callable[..., Run]) -> None:
    """They can take as long as ten layers. The cache is as before, and nothing is read twice."""
    run = tiny()
    kv_cache, ids = KVCache(run.config), torch.tensor(IDS)
    # It asks before the embedding, each layer, its two projections, its mix and its MLP.
    after_parts = 1 + 5 * run.config.n_layer + 1
    with pytest.raises(CancelledError):
        PartClock(run.model).timed_pass(ids, kv_cache, cancelled=Asked(after_parts))
    assert kv_cache.length == 0
    # A whole pass asks before each layer, before its attention, and after its block of queries.
    after_layers = 3 * run.config.n_layer + 1
    prefill, decode = last(length_sweep._worked(run.model, ids, Asked(after_layers)))
    assert (prefill.n_new, prefill.start) == (len(IDS) - 1, 0)
    assert (decode.n_new, decode.start) == (1, len(IDS) - 1)
    one: OneByOne = last(parallel_and_serial(run.model, IDS, waited_for=Asked(after_layers)))
    assert one.n_equal == one.n_tokens == len(IDS)


class Heard:
    """Is asked, and counts which products of the model were made since it was asked last."""

    def __init__(self, model: Transformer) -> None:
        self.made: list[int] = []
        self._since: list[str] = []
        for name, module in model.named_modules():
            if name.endswith(("qkv", "attention.output", "mlp")):
                module.register_forward_pre_hook(partial(self._note, name))

    def _note(self, name: str, *_called: object) -> None:
        self._since.append(name)

    def __call__(self) -> bool:
        """Nothing else is wanted yet."""
        self.made.append(len(self._since))
        self._since.clear()
        return False


@pytest.mark.usefixtures("quick_machine")
def test_a_sweep_asks_within_each_layer_whether_a_key_was_pressed(
    tiny: Callable[..., Run],
) -> None:
    """Between two askings lie at most the products of one layer: W_qkv, W_O and the MLP."""
    model = tiny("rotary", n_layer=6, max_seq_len=512).model
    heard = Heard(model)
    last(sweep(model, IDS, 600, heard))
    assert max(heard.made) == 3  # of a decoded token, whose layers are short
    timed = Heard(model)
    PartClock(model).timed_pass(torch.tensor(IDS), KVCache(model.config), cancelled=timed)
    assert max(timed.made) == 1
    whole = Heard(model)
    last(length_sweep._worked(model, torch.zeros(400, dtype=torch.int64), whole))
    # Before a layer, before its attention, three times in each of four blocks, before the next.
    assert whole.made[:15] == [0, 1, *[0] * 12, 2]


def test_a_prefill_in_one_piece_reads_the_output_matrix_for_each_block_of_logits(
    tiny: Callable[..., Run],
) -> None:
    """200 tokens are two blocks; the matrix has V · C numbers of 4 bytes."""
    run = tiny("rotary")
    in_one = total(pass_cost(run.config, 200))
    in_pieces = length_sweep._cost_in_pieces(run.model, 200, 0)
    assert in_pieces.multiply_adds == in_one.multiply_adds
    assert in_pieces.n_bytes - in_one.n_bytes == run.config.vocab_size * run.config.d_model * 4


def test_patience_ends_with_the_answer() -> None:
    asked = Asked(1, 2)

    def work() -> str:
        if asked():
            raise CancelledError("later")
        return "done"

    assert list(patiently(work)) == [None, None, "done"]


@pytest.mark.usefixtures("quick_machine")
def test_a_sweep_that_rests_leaves_gradients_to_others(tiny: Callable[..., Run]) -> None:
    """Between two pieces the thread may do anything else."""
    steps = sweep(tiny().model, IDS, 20)
    next(steps)
    assert not torch.is_inference_mode_enabled()
    steps.close()


@pytest.mark.usefixtures("quick_machine")
def test_a_machine_is_measured_with_the_threads_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each product takes one tick: 8³ multiply-adds, and 2 · 8 · 8 numbers of 4 bytes in 2."""
    monkeypatch.setattr(machine, "finished", Ticking())
    found = last(machine.measure(torch.device("cpu")))
    assert found.multiply_adds_per_second == 8**3
    assert found.bytes_per_second == 2 * 8 * 8 * 4 / 2
    assert (found.n_threads, found.device) == (torch.get_num_threads(), "cpu")


# With and without the cache


@pytest.mark.parametrize(
    "conditions",
    [Conditions(), Conditions(mask="window", window=3, sinks=1)],
    ids=["causal", "window"],
)
def test_both_ways_decode_the_same(tiny: Callable[..., Run], conditions: Conditions) -> None:
    """As a run that decodes by itself."""
    run = tiny("alibi")
    both: BothWays = last(with_and_without(run.model, IDS, 5, Sampling(temperature=0), conditions))
    assert both.is_done
    assert both.n_same == 5
    assert both.difference < 1e-5
    assert both.column("rows_with").tolist() == [1] * 5
    assert both.column("rows_without").tolist() == [9, 10, 11, 12, 13]
    run.set_conditions(conditions)
    ids = list(IDS)
    for step in both.steps:
        ids.append(int(run.logits(run.read(ids), len(ids) - 1).argmax()))
        assert step.token_id == ids[-1]


def test_multiply_adds_of_both_ways_are_those_of_their_passes(tiny: Callable[..., Run]) -> None:
    """By hand for two layers, 4 heads of 4 on 2, width 16, MLP 64, 11 tokens; one row of logits."""
    both: BothWays = last(with_and_without(tiny().model, IDS, 1))
    (step,) = both.steps
    per_row = 2 * (16 * 32 + 16 * 16 + 2 * 16 * 64)
    assert step.multiply_adds_with == per_row + 2 * 2 * 16 * 9 + 16 * 11
    assert step.multiply_adds_without == 9 * per_row + 2 * 2 * 16 * 81 + 16 * 11


def test_both_ways_are_timed_from_the_pass_to_its_logits(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cost.two_ways.finished", Ticking())
    both: BothWays = last(with_and_without(tiny().model, IDS, 3))
    assert both.prompt_seconds == 1
    assert (
        both.column("seconds_with").tolist() == both.column("seconds_without").tolist() == [1] * 3
    )


def test_decoding_stops_where_the_context_is_full(tiny: Callable[..., Run]) -> None:
    model = tiny(max_seq_len=10).model
    both: BothWays = last(with_and_without(model, IDS, 5))
    assert both.n_wanted == len(both.steps) == 2
    with pytest.raises(ContextFullError, match="sees at most 10 tokens"):
        next(with_and_without(model, [1] * 10, 5))


def test_giving_way_changes_no_result(tiny: Callable[..., Run]) -> None:
    """Passes are given up in both ways, and made again."""
    model = tiny().model
    plain: BothWays = last(with_and_without(model, IDS, 4))
    patient: BothWays = last(with_and_without(model, IDS, 4, waited_for=Asked(2, 4, 6, 9, 13)))
    for name in ("token_id", "rows_with", "difference"):
        assert patient.column(name).tolist() == plain.column(name).tolist()


@pytest.mark.parametrize("compare", [with_and_without, parallel_and_serial])
def test_what_cannot_be_compared_is_said_in_a_sentence(
    tiny: Callable[..., Run], compare: Callable[..., Iterator[object]]
) -> None:
    model = tiny().model
    more = (3,) if compare is with_and_without else ()
    with pytest.raises(EngineError, match="no text to go on from"):
        next(compare(model, [], *more))
    with pytest.raises(EngineError, match="Without the mask"):
        next(compare(model, IDS, *more, conditions=Conditions(mask="none")))


# At once and in turn


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "sinusoidal", "none"])
def test_one_pass_and_one_token_at_a_time_give_the_same_rows(
    tiny: Callable[..., Run], positions: str
) -> None:
    one: OneByOne = last(parallel_and_serial(tiny(positions).model, IDS))
    assert one.is_done
    assert one.n_equal == one.n_tokens == len(IDS)
    assert one.rows_difference < 1e-5
    assert one.logits_difference < 1e-5


@pytest.mark.parametrize("windows", [(3, 0), (2, 3)])
def test_both_ways_are_the_same_where_layers_let_rows_go(
    tiny: Callable[..., Run], windows: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where every other step moves rows."""
    monkeypatch.setattr("engine.sliding_cache._ROOM", 1)
    monkeypatch.setattr("engine.sliding_cache._SPARE", 1)
    model = tiny("alibi", windows=windows).model
    one: OneByOne = last(parallel_and_serial(model, IDS * 3))
    assert one.n_equal == one.n_tokens == 24
    both: BothWays = last(with_and_without(model, IDS, 12))
    assert both.difference < 1e-5
    assert [step.multiply_adds_with for step in both.steps] == [
        total(pass_cost(model.config, 1, n_before, n_logits=1)).multiply_adds
        for n_before in range(8, 20)
    ]


def test_a_row_that_differs_is_not_called_equal(
    tiny: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One value of one cache, moved by 1 at position 5 after the token was read."""
    run = tiny()
    advance = KVCache.advance

    def advance_and_spoil(cache: KVCache, n_tokens: int) -> None:
        advance(cache, n_tokens)
        if n_tokens == 1 and cache.length == 6:
            cache.v[1, 0, 5, 2] += 1

    monkeypatch.setattr(KVCache, "advance", advance_and_spoil)
    *_, before, _after = parallel_and_serial(run.model, IDS[:7])
    assert before.n_equal == 5
    assert before.rows_difference == pytest.approx(1, abs=1e-4)


def test_one_by_one_costs_the_same_but_for_the_masked_cells(tiny: Callable[..., Run]) -> None:
    """At once, a block also computes the cells above the diagonal: 8 · 7 / 2 in each head."""
    one: OneByOne = last(parallel_and_serial(tiny().model, IDS))
    above = 2 * 2 * 16 * (8 * 7 // 2)
    assert one.parallel_multiply_adds == one.serial_multiply_adds + above


def test_two_threads_can_time_two_models_at_once(tiny: Callable[..., Run]) -> None:
    """The engine's thread and a test's, each with its own hooks."""
    done: list[BothWays] = []
    model: Transformer = tiny(seed=3).model
    thread = threading.Thread(target=lambda: done.append(last(with_and_without(model, IDS, 3))))
    thread.start()
    here: BothWays = last(with_and_without(tiny(seed=3).model, IDS, 3))
    thread.join()
    assert done[0].column("token_id").tolist() == here.column("token_id").tolist()


def test_all_timed_parts_have_a_name() -> None:
    assert TIMED_PARTS[-1] == "rest"
