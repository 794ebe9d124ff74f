"""Runs a pipeline in this process."""

import importlib

from zenml.repo.repo import Repository


class OrchestratorBaseBackend:
    def run(self, config):
        module, function = config["pipeline"]["source"].rsplit(".", 1)
        pipeline = getattr(importlib.import_module(module), function)
        pipeline(config, Repository.get_instance().path)
