"""All commands as rows: menus, toolbar, shortcuts and the shortcut list are made from these."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import resources
from engine.formats import DEVICE_TITLES, FORMAT_SENTENCES, FORMATS
from gui import wishes
from gui.panels.table import PANELS
from gui.state import State
from gui.theme import THEMES
from gui.wishes import Wish
from gui.words.head_effects import all_on, layer_heads, switched

PANEL_COMMAND = "panel_"  # what the ids of the commands that go to a panel begin with
ZOOM_STEPS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)


def _always(_state: State) -> bool:
    return True


def _has_text(state: State) -> bool:
    return state.reading is not None and state.reading.n_tokens > 0


def _has_prefix(state: State) -> bool:
    return state.reading is not None and bool(state.reading.info.prefix_ids)


def _can_go_back(state: State) -> bool:
    return state.reading is not None and state.reading.n_tokens > 1


@dataclass(frozen=True)
class Command:
    """One thing to do. Without a `wish` the window itself does it, by its id."""

    id: str
    menu: str
    title: str
    help: str
    shortcuts: tuple[str, ...] = ()
    wish: Callable[[State], Wish | None] | None = None
    checked: Callable[[State], bool] | None = None
    enabled: Callable[[State], bool] = _always
    on_toolbar: bool = False

    @property
    def may_change(self) -> bool:
        """Whether its action looks different in some states."""
        return self.checked is not None or self.enabled is not _always


def _go_to_end(state: State) -> Wish | None:
    return wishes.GoTo(len(state.reading.document)) if state.reading else None


def _go_to_prompt(state: State) -> Wish | None:
    return wishes.GoTo(state.reading.document.n_prompt) if state.reading else None


def _toggle_play(mode: str) -> Callable[[State], Wish]:
    return lambda state: wishes.Play("" if state.playing else mode)


def _panel_keys(number: int) -> tuple[str, ...]:
    """The digits in the order of the keyboard, then the same with Shift, then with Ctrl as well."""
    round_of_ten, digit = divmod(number, 10) if number % 10 else (number // 10 - 1, 0)
    held = ("Alt+", "Alt+Shift+", "Ctrl+Alt+Shift+")[round_of_ten]
    return (f"{held}{digit}",)


def _selected_head(state: State) -> tuple[int, int]:
    """The selected head, within the model: the selection may be left from a larger one."""
    layer, head = state.selection.layer, state.selection.head
    if state.reading is None:
        return layer, head
    config = state.reading.info.config
    return min(layer, config.n_layer - 1), min(head, config.n_head - 1)


def _move_head(layers: int, heads: int) -> Callable[[State], Wish | None]:
    def move(state: State) -> Wish | None:
        if state.reading is None:
            return None
        config = state.reading.info.config
        layer, head = _selected_head(state)
        return wishes.SelectHead((layer + layers) % config.n_layer, (head + heads) % config.n_head)

    return move


def _switch_head(state: State) -> Wish | None:
    return switched(state, _selected_head(state)) if state.reading else None


def _switch_layer(state: State) -> Wish | None:
    reading = state.reading
    return switched(state, *layer_heads(reading, _selected_head(state)[0])) if reading else None


def _is_layer_off(state: State) -> bool:
    reading = state.reading
    if reading is None:
        return False
    return state.heads_off.heads.issuperset(layer_heads(reading, _selected_head(state)[0]))


def _can_stop(state: State) -> bool:
    is_measuring = state.measuring or state.costs.running != ""
    return is_measuring or state.phase in {"starting", "loading"}


def _stop(state: State) -> Wish:
    if state.measuring:
        return wishes.StopMeasuring()
    return wishes.StopMeasuringCost() if state.costs.running else wishes.StopOpening()


def _move_query(by: int) -> Callable[[State], Wish | None]:
    def move(state: State) -> Wish | None:
        if not _has_text(state) or state.reading is None:
            return None
        last = state.reading.n_tokens - 1
        query = last if state.selection.query is None else min(state.selection.query, last)
        return wishes.SelectPosition(max(0, min(last, query + by)))

    return move


def _write(text: str) -> Callable[[State], Wish]:
    return lambda _state: wishes.EditText(text)


def _toggle_mask(state: State) -> Wish:
    return wishes.SetMask({"mask": "causal" if state.mask.mask == "none" else "none"})


def _toggle_window(state: State) -> Wish:
    return wishes.SetMask({"mask": "causal" if state.mask.mask == "window" else "window"})


def _toggle(field: str) -> Callable[[State], Wish]:
    return lambda state: wishes.SetDisplay({field: not getattr(state.display, field)})


def _set(field: str, value: object) -> Callable[[State], Wish]:
    return lambda _state: wishes.SetDisplay({field: value})


def _is(field: str, value: object) -> Callable[[State], bool]:
    return lambda state: getattr(state.display, field) == value


def _set_off_by(by: str) -> Callable[[State], Wish]:
    return lambda _state: wishes.SetHeadsOff({"by": by})


def _is_off_by(by: str) -> Callable[[State], bool]:
    return lambda state: state.heads_off.by == by


def _zoom(direction: int) -> Callable[[State], Wish]:
    def zoom(state: State) -> Wish:
        now = min(range(len(ZOOM_STEPS)), key=lambda i: abs(ZOOM_STEPS[i] - state.display.zoom))
        return wishes.SetDisplay(
            {"zoom": ZOOM_STEPS[max(0, min(len(ZOOM_STEPS) - 1, now + direction))]}
        )

    return zoom


def _set_format(**changes: str) -> Callable[[State], Wish]:
    return lambda _state: wishes.SetFormat(dict(changes))


def _held_as(**wanted: str) -> Callable[[State], bool]:
    return lambda state: all(getattr(state.formats, each) == wanted[each] for each in wanted)


def _greedy(state: State) -> Wish:
    temperature = 0.8 if state.sampling.temperature == 0 else 0.0
    return wishes.SetSampling(replace(state.sampling, temperature=temperature))


COMMANDS: tuple[Command, ...] = (
    Command(
        "library",
        "File",
        "Models on this computer…",
        "List the models that are found on this computer, and open one.",
        ("Ctrl+O",),
    ),
    Command(
        "download",
        "File",
        "Download a model…",
        "Fetch a model from Hugging Face by the name of its repository.",
        ("Ctrl+Shift+D",),
    ),
    Command("open", "File", "Open folder…", "Open a folder that holds a model.", ("Ctrl+Shift+O",)),
    Command(
        "stop_opening",
        "File",
        "Stop",
        "Give up opening a model, and the one that is open stays; or stop measuring.",
        ("Esc",),
        _stop,
        enabled=_can_stop,
    ),
    Command("open_file", "File", "Open file…", "Open a GGUF file or a nanoGPT checkpoint."),
    Command(
        "training_lab",
        "File",
        "Training lab…",
        "Train a small model here and watch it learn, or look through a recorded training.",
        ("Ctrl+T",),
    ),
    Command(
        "save_picture", "File", "Save picture…", "Save the window as a PNG.", ("Ctrl+Shift+S",)
    ),
    Command("copy_picture", "File", "Copy picture", "Copy the window as a picture."),
    Command(
        "export_panel",
        "File",
        "Export panel…",
        "Write the panel in use to a file: its picture (PNG, SVG, PDF) or its numbers (CSV, NPZ).",
        ("Ctrl+Shift+E",),
    ),
    Command("quit", "File", "Quit", "Close the program.", ("Ctrl+Q",)),
    Command(
        "back",
        "Steps",
        "Step back",
        "Show the text one token shorter; nothing is forgotten.",
        ("PgUp",),
        lambda _state: wishes.StepBack(),
        enabled=_can_go_back,
    ),
    Command(
        "step",
        "Steps",
        "Step",
        "Go one token further.",
        ("PgDown",),
        lambda _state: wishes.Step(),
        enabled=_has_text,
    ),
    Command(
        "play",
        "Steps",
        "Play",
        "Go on token by token until stopped.",
        ("F5",),
        _toggle_play("play"),
        lambda state: bool(state.playing),
        _has_text,
    ),
    Command(
        "play_sentence",
        "Steps",
        "Play to the end of the sentence",
        "Go on until a full stop, an exclamation mark or a question mark.",
        ("F6",),
        _toggle_play("sentence"),
        enabled=_has_text,
    ),
    Command(
        "to_prompt",
        "Steps",
        "Back to the prompt",
        "Show the text as the prompt left it.",
        ("Shift+PgUp",),
        _go_to_prompt,
        enabled=_has_text,
    ),
    Command(
        "to_end",
        "Steps",
        "To the last token",
        "Show the text in full.",
        ("Shift+PgDown",),
        _go_to_end,
        enabled=_has_text,
    ),
    Command(
        "greedy",
        "Steps",
        "Greedy",
        "Always take the most probable token (temperature 0).",
        ("Ctrl+G",),
        _greedy,
        lambda state: state.sampling.temperature == 0,
        on_toolbar=True,
    ),
    Command(
        "mask",
        "Model",
        "Causal mask",
        "Queries see only keys up to themselves; off, every query sees every key.",
        ("Ctrl+M",),
        _toggle_mask,
        lambda state: state.mask.mask != "none",
        on_toolbar=True,
    ),
    Command(
        "window",
        "Model",
        "Window",
        "Queries see only the last few keys.",
        ("Ctrl+Shift+M",),
        _toggle_window,
        lambda state: state.mask.mask == "window",
        on_toolbar=True,
    ),
    Command(
        "cache",
        "Model",
        "KV cache",
        "Keep keys and values of earlier tokens; off, every pass computes them all again.",
        ("Ctrl+K",),
        lambda state: wishes.SetCache(not state.use_cache),
        lambda state: state.use_cache,
        on_toolbar=True,
    ),
    Command(
        "prefix",
        "Model",
        "Beginning token",
        "Put the token before the text that the model learnt to begin with (BOS), if it has one.",
        ("Ctrl+B",),
        lambda state: wishes.SetPrefix(not state.use_prefix),
        lambda state: state.use_prefix,
        _has_prefix,
    ),
    *(
        Command(
            f"format_{name}",
            "Model",
            f"Weights in {name}" if name in FORMATS else "Weights in the format that suits",
            sentence,
            (),
            _set_format(number_format=name),
            _held_as(number_format=name),
        )
        for name, sentence in FORMAT_SENTENCES.items()
    ),
    *(
        Command(
            f"device_{name}",
            "Model",
            f"Compute on {title}",
            f"Open the model again on torch's device {name!r}.",
            (),
            _set_format(device=name),
            _held_as(device=name),
        )
        for name, title in DEVICE_TITLES.items()
    ),
    Command(
        "head_off",
        "Heads",
        "Head off",
        "Run the model without what the selected head mixes; again to switch it on.",
        ("Ctrl+H",),
        _switch_head,
        lambda state: _selected_head(state) in state.heads_off.heads,
        _has_text,
    ),
    Command(
        "layer_off",
        "Heads",
        "Layer off",
        "Run the model without any head of the selected layer; again to switch them on.",
        ("Ctrl+Shift+H",),
        _switch_layer,
        _is_layer_off,
        _has_text,
    ),
    Command(
        "heads_on",
        "Heads",
        "All heads on",
        "Switch on whatever is off.",
        ("Ctrl+Alt+H",),
        lambda _state: all_on(),
        enabled=lambda state: bool(state.heads_off.heads),
    ),
    *(
        Command(
            f"off_by_{by}",
            "Heads",
            f"Replace by {title}",
            sentence,
            (),
            _set_off_by(by),
            _is_off_by(by),
        )
        for by, title, sentence in (
            ("zero", "zero", "A head that is off adds nothing to the residual."),
            (
                "mean",
                "the mean over positions",
                "A head that is off adds the mean of what it mixed where the query may look.",
            ),
        )
    ),
    Command(
        "measure_effects",
        "Heads",
        "What moves the answer most",
        "Switch each head off in turn, and measure what that does to loss and prediction.",
        ("F7",),
        lambda _state: wishes.MeasureEffects(),
        enabled=lambda state: _has_text(state) and not state.measuring,
    ),
    *(
        Command(
            f"shade_{shade}",
            "Heads",
            f"Shade heads by {title}",
            sentence,
            (),
            _set("shade", shade),
            _is("shade", shade),
        )
        for shade, title, sentence in (
            ("weights", "their weights", "Show where each head looks."),
            (
                "answer",
                "their effect on the answer",
                "How far the next token's distribution moves without each head, once measured.",
            ),
            (
                "loss",
                "their effect on the loss",
                "How much the mean loss of the text changes without each head, once measured.",
            ),
        )
    ),
    Command(
        "head_left",
        "Look",
        "Head to the left",
        "Select the head before this one.",
        ("Alt+Left",),
        _move_head(0, -1),
        enabled=_has_text,
    ),
    Command(
        "head_right",
        "Look",
        "Head to the right",
        "Select the head after this one.",
        ("Alt+Right",),
        _move_head(0, 1),
        enabled=_has_text,
    ),
    Command(
        "layer_up",
        "Look",
        "Layer above",
        "Select the same head one row higher.",
        ("Alt+Up",),
        _move_head(-1, 0),
        enabled=_has_text,
    ),
    Command(
        "layer_down",
        "Look",
        "Layer below",
        "Select the same head one row lower.",
        ("Alt+Down",),
        _move_head(1, 0),
        enabled=_has_text,
    ),
    Command(
        "query_left",
        "Look",
        "Query to the left",
        "Select the query one position earlier.",
        ("Ctrl+,",),
        _move_query(-1),
        enabled=_has_text,
    ),
    Command(
        "query_right",
        "Look",
        "Query to the right",
        "Select the query one position later.",
        ("Ctrl+.",),
        _move_query(1),
        enabled=_has_text,
    ),
    Command(
        "query_last",
        "Look",
        "Follow the last token",
        "Let the query be the last position.",
        ("Ctrl+E",),
        lambda _state: wishes.SelectPosition(None),
        lambda state: state.selection.query is None,
    ),
    Command(
        "heatmap",
        "View",
        "Heatmap",
        "Draw the head as a square, a row for each query.",
        ("Ctrl+1",),
        _set("drawing", "heatmap"),
        _is("drawing", "heatmap"),
    ),
    Command(
        "arcs",
        "View",
        "Links",
        "Draw the head as links from the selected query.",
        ("Ctrl+2",),
        _set("drawing", "arcs"),
        _is("drawing", "arcs"),
    ),
    Command(
        "scale_linear",
        "View",
        "Scale 0 to 1",
        "One colour scale for all heads, from 0 to 1.",
        ("Ctrl+Shift+1",),
        _set("scale", "linear"),
        _is("scale", "linear"),
    ),
    Command(
        "scale_log",
        "View",
        "Logarithmic scale",
        "Small weights keep their differences.",
        ("Ctrl+Shift+2",),
        _set("scale", "log"),
        _is("scale", "log"),
    ),
    Command(
        "scale_row",
        "View",
        "Scale per row",
        "Each query's largest weight has the full colour.",
        ("Ctrl+Shift+3",),
        _set("scale", "row"),
        _is("scale", "row"),
    ),
    Command(
        "leave_first_out",
        "View",
        "Leave the first token out",
        "Do not colour the weight on the first key, which often takes nearly all.",
        ("Ctrl+Shift+F",),
        _toggle("leave_first_out"),
        _is("leave_first_out", True),
    ),
    Command(
        "show_loss",
        "View",
        "Colour tokens by loss",
        "Shade each token by how surprised the model was, in nats.",
        ("Ctrl+Shift+L",),
        _toggle("show_loss"),
        _is("show_loss", True),
        on_toolbar=True,
    ),
    Command(
        "show_pass",
        "View",
        "Mark the latest pass",
        "Mark the tokens that the latest pass computed; the others it kept from the cache.",
        ("Ctrl+Shift+K",),
        _toggle("show_pass"),
        _is("show_pass", True),
        on_toolbar=True,
    ),
    Command(
        "motion",
        "View",
        "Flash what was recomputed",
        "Off: nothing moves by itself.",
        (),
        _toggle("motion"),
        _is("motion", True),
    ),
    *(
        Command(
            f"theme_{theme.name}",
            "View",
            f"{theme.title} theme",
            f"Use the {theme.name} look.",
            (f"Ctrl+Alt+{number}",),
            _set("theme", theme),
            _is("theme", theme),
        )
        for number, theme in enumerate(THEMES.values(), start=1)
    ),
    Command("zoom_in", "View", "Larger", "Make everything larger.", ("Ctrl++", "Ctrl+="), _zoom(1)),
    Command("zoom_out", "View", "Smaller", "Make everything smaller.", ("Ctrl+-",), _zoom(-1)),
    Command(
        "zoom_reset",
        "View",
        "Usual size",
        "Make everything as large as usual.",
        ("Ctrl+0",),
        _set("zoom", 1.0),
    ),
    Command(
        "head_alone",
        "View",
        "The middle alone",
        "Give one head, or two runs that are compared, the room of the panels around them; "
        "again to bring those back.",
        ("F9",),
    ),
    Command("full_screen", "View", "Full screen", "Use the whole screen.", ("F11",)),
    Command("reset_layout", "View", "Usual layout", "Put all panels back where they belong."),
    *(
        Command(
            f"example_{number}", "Examples", example.title, example.help, (), _write(example.text)
        )
        for number, example in enumerate(resources.examples(), start=1)
    ),
    *(
        Command(
            f"{PANEL_COMMAND}{panel.name}",
            "Panels",
            f"Go to {panel.title}",
            panel.help,
            _panel_keys(number),
        )
        for number, panel in enumerate(PANELS, start=1)
    ),
    Command("shortcuts", "Help", "Keyboard shortcuts", "List all commands and keys.", ("F1",)),
    Command("about", "Help", "About Attention Scope", "Version, model and licences."),
)
