"""What a panel says while there is nothing that it could draw."""

from gui.view import View


def absence(view: View, then: str) -> str:
    """One sentence, or "" if there is a text that the model has read.

    `then` says what will be seen here once there is one.
    """
    if view.n_tokens:
        return ""
    if view.reading is not None:
        return f"There is no text yet. Type something to see {then}."
    if view.state.phase == "failed":
        return view.state.notice or "No model could be loaded."
    return "The model is being loaded."
