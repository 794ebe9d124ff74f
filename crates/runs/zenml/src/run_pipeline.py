"""Runs a ZenML pipeline in its pod, with the local backend.

The pipeline's config is the file beside this one; the code is in the current folder.
"""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
# Where code is that was sent along.
WORK = "/longshore/work"
MISSING = "longshore: the image has no ZenML 0.3 (%s): give an `image` that has"
LOCAL = "zenml.backends.orchestrator.base.orchestrator_base_backend"


def read_config():
    """The config. ZenML's parser reads a YAML file, which may have values that JSON lacks."""
    path = os.path.join(HERE, "pipeline.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    import yaml

    with open(os.path.join(HERE, "pipeline.yaml"), encoding="utf-8") as file:
        return yaml.load(file.read(), Loader=yaml.FullLoader)


def local_config(config):
    """The config as the pipeline shall see it: without the settings of the launcher."""
    # ZenML requires a backend.
    if not config.get("backend"):
        config["backend"] = {"type": "orchestrator", "source": LOCAL + ".OrchestratorBaseBackend", "args": {}}
    backend = config["backend"]
    (backend.get("args") or {}).pop("tar_path", None)
    # The image need not have the backend that launched this.
    if str(backend.get("source", "")).startswith("longshore."):
        backend.update(source=LOCAL + ".OrchestratorBaseBackend", args={})
    return config


def make_repository(folder, config):
    """What ZenML wants to find beside the code, and what is not sent along."""
    if not os.path.exists(os.path.join(folder, ".git")) and shutil.which("git"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.call(["git", "init", "--quiet", folder], **quiet)
    state = os.path.join(folder, ".zenml")
    if not os.path.exists(state) and "artifact_store" in config and "metadata" in config:
        settings = {key: config[key] for key in ("artifact_store", "metadata")}
        settings["pipelines_dir"] = os.path.join(folder, "pipelines")
        os.mkdir(state, 0o700)
        # ZenML reads YAML, which JSON is.
        with open(os.path.join(state, ".zenml_config"), "w", encoding="utf-8") as file:
            json.dump(settings, file)


def main():
    folder = os.getcwd()
    # The files beside this one are not modules.
    sys.path[:] = [path for path in sys.path if os.path.realpath(path or folder) != HERE]
    sys.path.append(folder)
    try:
        config = local_config(read_config())
    except ImportError as error:
        sys.exit(MISSING % error)
    # A folder of the image is as it shall be.
    if folder == WORK:
        make_repository(folder, config)
    try:
        from zenml.backends.orchestrator.base.orchestrator_base_backend import OrchestratorBaseBackend
        from zenml.repo.repo import Repository
    except ImportError as error:
        if (error.name or "").split(".")[0] != "zenml":
            raise
        sys.exit(MISSING % error)
    Repository.get_instance(folder)
    OrchestratorBaseBackend().run(config)


if __name__ == "__main__":
    main()
