"""The names of the package by subject, and where they are defined."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .members import members
from .signatures import Writer
from .sources import PACKAGE, File, Module

#: The names of the package by subject, in the order of the reference. Errors have a section of their own.
SUBJECTS = {
    "Client": [
        "Cluster", "View", "Item", "Watch", "WatchEvent", "WatchEventType", "Cache", "Stream", "Leadership",
        "Output", "Session", "PortForward", "Proxy",
    ],
    "Embedded cluster": ["EmbeddedCluster", "Faults", "Replay", "Snapshot"],
    "Runs": [
        "run", "task", "find_run", "runs", "compare", "Run", "Task", "Result", "LogLine", "RunSummary", "Outputs",
        "OutputFile", "Combination", "Usage", "TaskUsage", "RecordedUsage", "GpuUsage", "UsagePoint",
    ],
    "Cluster specs": [
        "KubernetesClusterResolver", "ExecutableLocation", "ClusterSpec", "Tasks", "Generations",
        "Generation", "TFConfigClusterResolver", "SlurmClusterResolver", "SageMakerClusterResolver",
        "UnionResolver",
    ],
    "ZenML pipelines": ["OrchestratorKubernetesBackend", "PipelineRun"],
}

#: Names that are no class and no function.
OTHERS = {"__version__", "errors"}

#: Classes of objects that the package returns, without a name in the package.
UNNAMED = {"Proxy"}

#: Classes whose objects functions return: their constructors are not for users. The value names functions
#: whose annotation does not say that they return the class.
RETURNED = {"Run": [], "PipelineRun": [], "Task": ["task"], "TestCluster": ["the fixtures of pytest"]}


class Contents:
    """The names of the package, and where they are defined."""

    def __init__(self) -> None:
        names = ["_native", "cluster_resolver", "environment_resolvers", "errors", "events", "results", "_runs", "_tracking", "zenml"]
        self.modules = {name: Module(name) for name in names}
        self.names = listed(File(PACKAGE / "__init__.py"))
        self.errors = [name for name in self.modules["errors"].definitions if name in self.names]
        given = {*self.errors, *OTHERS, *[name for names in SUBJECTS.values() for name in names]}
        if given != {*self.names, *UNNAMED}:
            difference = ", ".join(sorted(given ^ {*self.names, *UNNAMED}))
            raise SystemExit(f"SUBJECTS of reference/contents.py and longshore.__all__ differ: {difference}")

    def module(self, name: str) -> Module:
        """The module that defines a public name."""
        found = [module for module in self.modules.values() if name in module.definitions]
        return next(module for module in found if self.is_own(module, name))

    def is_own(self, module: Module, name: str) -> bool:
        # The native run is wrapped.
        return module.name != "_native" or name not in self.modules["_runs"].definitions

    def functions(self) -> Iterator[tuple[str, str]]:
        """The functions and methods, with what they return."""
        for name in [name for names in SUBJECTS.values() for name in names]:
            module = self.module(name)
            node = module.definitions[name]
            if isinstance(node, ast.ClassDef):
                for member in members(module, name):
                    yield f"{name}.{member.name}", member.returns
            else:
                yield name, Writer(module).annotation(node.returns)

    def returned_by(self, name: str) -> str:
        """A sentence that names the functions that return a class."""
        found = [function for function, returns in self.functions() if re.search(rf"\b{name}\b", returns)]
        found = [function for function in found if not function.startswith(f"{name}.")]
        found = [f"`{function}`" for function in found] + [
            one if " " in one else f"`{one}`" for one in RETURNED.get(name, [])
        ]
        if not found:
            return ""
        if len(found) > 4:
            return f"Returned by {', '.join(found[:3])} and other methods."
        return f"Returned by {' and '.join(filter(None, [', '.join(found[:-1]), found[-1]]))}."


def listed(file: File) -> list[str]:
    """The ``__all__`` of a file."""
    assigned = [node for node in file.tree.body if isinstance(node, ast.Assign)]
    (value,) = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    return list(ast.literal_eval(value))
