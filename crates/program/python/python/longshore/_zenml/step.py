"""The command and the environment of a step."""

# mypy: disable-error-code="import-not-found,misc,no-any-return"
# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zenml.config.global_config import GlobalConfiguration
from zenml.constants import (
    ENV_ZENML_CONSOLE_LOGGING_FORMAT,
    ENV_ZENML_DEBUG,
    ENV_ZENML_LOCAL_STORES_PATH,
    ENV_ZENML_LOGGING_COLORS_DISABLED,
    ENV_ZENML_LOGGING_VERBOSITY,
)
from zenml.utils import source_utils

from .names import memory_quantity
from .settings import LongshoreOrchestratorSettings

#: Variables of this process that steps on the same machine need to find the same programs and modules.
_CALLER_VARIABLES = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH")

#: Variables of this process that choose the format of ZenML's log.
_LOG_VARIABLES = (
    ENV_ZENML_CONSOLE_LOGGING_FORMAT,
    ENV_ZENML_DEBUG,
    ENV_ZENML_LOGGING_COLORS_DISABLED,
    ENV_ZENML_LOGGING_VERBOSITY,
)

#: Starts ZenML's entrypoint in the folder of the code. The entrypoint itself changes to ``/app`` of an
#: image. The configuration folder is the step's own, because ZenML writes to it.
_START = """
import os, runpy, sys
folder = os.getcwd()
sys.path[0] = folder
os.environ["ZENML_CUSTOM_SOURCE_ROOT"] = folder
os.environ["ZENML_CONFIG_PATH"] = os.path.join(folder, ".zenml-config")
runpy.run_module("zenml.entrypoints.entrypoint", run_name="__main__", alter_sys=True)
"""


def step_command(python: str, arguments: list[str]) -> list[str]:
    """The command of a step whose code Longshore sends: ZenML's entrypoint with these arguments."""
    return [python, "-c", _START, *arguments]


def step_environment(environment: Mapping[str, str], on_this_machine: bool) -> dict[str, str]:
    """The variables of a step: those of this process that it needs, and those that ZenML sets."""
    passed = list(_LOG_VARIABLES)
    if on_this_machine:
        passed += _CALLER_VARIABLES
    found = {variable: os.environ[variable] for variable in passed if variable in os.environ}
    found.update(environment)
    if on_this_machine:
        found[ENV_ZENML_LOCAL_STORES_PATH] = GlobalConfiguration().local_stores_path
    return found


def step_resources(settings: LongshoreOrchestratorSettings, general: Any) -> dict[str, Any]:
    """The resources of the settings, otherwise those of ZenML's own ``ResourceSettings``.

    :param general: The ``ResourceSettings``, or ``None`` if the step has none.
    """
    found = {"cpu": settings.cpu, "memory": settings.memory, "gpus": settings.gpus}
    if general is not None:
        memory = general.memory and memory_quantity(general.memory)
        defaults = {"cpu": general.cpu_count, "memory": memory, "gpus": general.gpu_count or None}
        for name, value in found.items():
            found[name] = defaults[name] if value is None else value
    return found


def source_root() -> Path:
    """ZenML's source root: the folder that the steps import their modules from."""
    return Path(source_utils.get_source_root())
