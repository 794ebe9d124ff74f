"""Progress of runs in notebooks."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from typing import Any

_STATES = ("pending", "running", "succeeded", "failed")


def progress(name: str) -> Callable[[dict[str, Any]], None]:
    """Shows the progress of a run below the current cell. Elsewhere, it does nothing.

    :returns: A function that takes the events of the run.
    """
    handle = _display()
    if handle is None:
        return lambda event: None
    state: dict[str, Any] = {"roles": [], "note": ""}

    def show(event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "progress":
            state["roles"], state["note"] = event["roles"], ""
        elif kind == "waiting":
            state["note"] = event["cause"]
        elif kind == "finished":
            state["note"] = event["reason"]
        else:
            return
        handle.update(_Html(table(name, state["roles"], state["note"])))

    return show


def table(name: str, roles: list[dict[str, Any]], note: str) -> str:
    """The tasks of each role, as HTML. The names and causes are untrusted text."""
    rows = [["role", *_STATES], *([role["role"], *(role[state] for state in _STATES)] for role in roles)]
    cells = ["".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<p><b>{html.escape(name)}</b> {html.escape(note)}</p><table>{body}</table>"


class _Html:
    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return self.text


def _display() -> Any:
    """A display of the current notebook cell; ``None`` outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # Terminals with IPython have a shell, but no kernel, and cannot update a display.
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return display(_Html(""), display_id=True)
