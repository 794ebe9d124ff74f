"""The order in which the steps of a pipeline run."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class Order:
    """The order of steps: which are waiting, and which are active.

    >>> order = Order({"load": [], "train": ["load"], "test": ["load"], "report": ["train", "test"]})
    >>> order.ready()
    ['load']
    >>> order.start("load")
    >>> order.ready()
    []
    >>> order.end("load", succeeded=True)
    >>> order.ready()
    ['train', 'test']
    >>> order.start("train")
    >>> order.end("train", succeeded=False)
    >>> order.ready(), order.waiting
    (['test'], ['test', 'report'])
    """

    def __init__(self, upstream: Mapping[str, Collection[str]]) -> None:
        # Upstream steps that ZenML took from its cache are not in the pipeline any more.
        self._missing = {
            name: {other for other in others if other in upstream} for name, others in upstream.items()
        }
        self.active: set[str] = set()

    @property
    def waiting(self) -> list[str]:
        """The steps that were not started."""
        return list(self._missing)

    def ready(self) -> list[str]:
        """The steps that can start: all their upstream steps have succeeded."""
        return [name for name, others in self._missing.items() if not others]

    def start(self, name: str) -> None:
        """Records that a step was started."""
        del self._missing[name]
        self.active.add(name)

    def end(self, name: str, *, succeeded: bool) -> None:
        """Records that a step has ended."""
        self.active.discard(name)
        if succeeded:
            for others in self._missing.values():
                others.discard(name)
