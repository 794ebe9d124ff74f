"""Names, labels and quantities of the runs of steps."""

from __future__ import annotations

import re

#: The variable of a step with the ID of ZenML's orchestrator run.
RUN_ID = "LONGSHORE_ZENML_RUN_ID"

#: The label of the Longshore runs of a pipeline run. The value is the ID of the pipeline run.
PIPELINE_RUN_LABEL = "zenml-run"

#: The label with the name of the step.
STEP_LABEL = "zenml-step"

#: The label with the name of a Longshore run.
RUN_LABEL = "longshore.dev/run"

#: Units of memory in ZenML's resource settings, and the suffixes of quantities in Kubernetes.
_MEMORY_UNITS = {"B": "", "KB": "k", "KIB": "Ki"} | {
    unit + suffix: unit + end for unit in "MGTP" for suffix, end in (("B", ""), ("IB", "i"))
}


def run_name(text: str) -> str:
    """A name of a run, which is a DNS label.

    >>> run_name("Training_digits-load data")
    'training-digits-load-data'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "step"


def label_value(text: str) -> str:
    """A value of a label: at most 63 letters, digits, dashes, underscores and dots.

    >>> label_value("load data")
    'load-data'
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:63].strip("-_.")


def memory_quantity(memory: str) -> str:
    """ZenML's amount of memory as a quantity of Kubernetes.

    >>> memory_quantity("512MB"), memory_quantity("4GiB"), memory_quantity("64KB")
    ('512M', '4Gi', '64k')
    """
    number, unit = re.fullmatch(r"([0-9]+)([A-Za-z]+)", memory).groups()  # type: ignore[union-attr]
    return number + _MEMORY_UNITS[unit.upper()]
