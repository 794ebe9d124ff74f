"""Types of the objects of built-in kinds, such as ``Pod``, ``PodSpec`` and ``ObjectMeta``.

The types exist for type checkers, which read them from ``types.pyi``. When a program runs, each of them
is ``dict``, so that importing the module takes no time. Type checkers report names that do not exist;
here, every name that begins with a capital letter does.

>>> from longshore.types import Container, PodSpec
>>> container: Container = {"name": "main", "image": "nginx"}
>>> PodSpec(containers=[container])
{'containers': [{'name': 'main', 'image': 'nginx'}]}
"""

from __future__ import annotations


def __getattr__(name: str) -> type[dict[str, object]]:
    if name[:1].isupper():
        return dict
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
