"""The repository that a pipeline runs in."""

import json
import os


class Repository:
    __instance__ = None

    def __init__(self, path):
        # Like ZenML's own, it must be a git repository.
        if not os.path.isdir(os.path.join(path, ".git")):
            raise ValueError(path + " is not a git repository")
        with open(os.path.join(path, ".zenml", ".zenml_config")) as file:
            self.settings = json.load(file)
        self.path = path

    @staticmethod
    def get_instance(path=None):
        if Repository.__instance__ is None:
            Repository.__instance__ = Repository(path or os.getcwd())
        return Repository.__instance__
