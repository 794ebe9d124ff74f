"""``OrchestratorKubernetesBackend``, ZenML 0.3's, on Longshore's launcher.

Where ZenML 0.3 can be imported the class is one of its orchestrator backends, for
``pipeline.run(backend=…)``; ZenML is not needed to launch a config.
"""

import copy
import json
import logging
import os
from pathlib import Path

from . import _native

try:
    from zenml.backends.orchestrator.base.orchestrator_base_backend import OrchestratorBaseBackend as _Base
    from zenml.repo.repo import Repository as _Repository
except ImportError:
    _Base = object
    _Repository = None

__all__ = ["OrchestratorKubernetesBackend", "PipelineRun"]

_log = logging.getLogger("longshore.zenml")


def _texts(mapping):
    """Labels or annotations: all values as texts."""
    return {str(key): str(value) for key, value in (mapping or {}).items()}


def _json(config):
    """The config as the pod reads it. Nothing is lost on the way, or it is refused."""
    return json.dumps(config, allow_nan=False)


class PipelineRun:
    """A pipeline that was launched.

    ``name`` and ``namespace`` are those of its Job; ``config`` is a copy of the config
    with the place of the code in it, which ``launch_job`` takes; ``exit_code`` is
    ``None`` until ``wait`` has come to the end.
    """

    def __init__(self, native, config):
        self._native = native
        self.config = config
        self.exit_code = None
        self.reason = None

    @property
    def name(self):
        """The name of the run and of its Job."""
        return self._native.name

    @property
    def namespace(self):
        """The Job's namespace."""
        return self._native.namespace

    def follow(self, *, logs=True):
        """What happens, as it happens: iterates a dict an event, the last ``finished``."""
        return self._native.follow(logs=logs)

    def wait(self, *, logs=True):
        """Waits for the end and gives the exit code; prints what the pipeline writes.

        Ctrl-C ends the waiting, not the run.
        """
        for event in self.follow(logs=logs):
            if event["event"] == "log":
                print(event["line"], flush=True)
            elif event["event"] == "waiting":
                _log.warning("%s waits: %s; %s", self.name, event["cause"], event["remedy"])
            elif event["event"] == "finished":
                self.exit_code, self.reason = event["exitCode"], event["reason"]
                if self.exit_code:
                    _log.error("%s: %s; %s", self.name, self.reason, event["remedy"])
        return self.exit_code

    def cancel(self):
        """Stops it and keeps its record."""
        self._native.cancel()

    def __repr__(self):
        return f"PipelineRun({self.name!r}, namespace={self.namespace!r})"


class OrchestratorKubernetesBackend(_Base):
    """Runs ZenML pipelines as Jobs of a Kubernetes cluster.

    >>> import longshore
    >>> backend = longshore.OrchestratorKubernetesBackend(image="registry.example/zenml:1")
    >>> config = {"pipeline": {"args": {"name": "training_Digits"}}}
    >>> job = backend.create_job_object(config)
    >>> job["metadata"]["name"], job["metadata"]["labels"]["pipeline"]
    ('zenml-training-digits', 'training_Digits')

    image: with Python, ZenML, what the pipeline needs, and the program ``longshore``.
    job_prefix: what stands before the pipeline's name in the Job's.
    extra_labels: labels of the Job and its pods; ZenML's own win over them.
    extra_annotations: annotations of the Job.
    namespace: ``default`` without it.
    image_pull_policy: ``Always``, ``Never`` or ``IfNotPresent``.
    kubernetes_config_path: the kubeconfig.
    settings: the path of a longshore.toml, for all that the others have no word for:
        resources, variables, volumes, a launcher image, a pod template.
    """

    BACKEND_TYPE = "orchestrator"

    def __init__(
        self,
        image="python:3-slim",
        job_prefix="zenml-",
        extra_labels=None,
        extra_annotations=None,
        namespace=None,
        image_pull_policy="IfNotPresent",
        kubernetes_config_path="~/.kube/config",
        *,
        settings=None,
    ):
        self.image = image
        self.job_prefix = job_prefix
        self.extra_labels = extra_labels
        self.extra_annotations = extra_annotations
        self.namespace = namespace
        self.image_pull_policy = image_pull_policy
        self.kubernetes_config_path = kubernetes_config_path
        self.settings = settings
        # What ZenML writes into a config, and reads again.
        self._kwargs = {
            name: value if value is None or isinstance(value, (str, dict)) else os.fspath(value)
            for name, value in vars(self).items()
        }
        self._source = f"{__name__}.OrchestratorKubernetesBackend"
        self._immutable = False
        #: What was launched last: ZenML's ``pipeline.run`` does not hand it on.
        self.last_run = None
        # What is wrong with the parameters is known at once.
        self._backend()

    def _backend(self):
        # Made each time: attributes may be set, as in ZenML's class.
        return _native.PipelineBackend({
            "image": self.image,
            "job_prefix": self.job_prefix,
            "extra_labels": _texts(self.extra_labels),
            "extra_annotations": _texts(self.extra_annotations),
            "namespace": self.namespace,
            "image_pull_policy": self.image_pull_policy,
            "kubernetes_config_path": self.kubernetes_config_path,
            "settings": self.settings,
        })

    def create_job_object(self, config):
        """The Job that ``launch_job`` creates, as a dict. Asks nobody."""
        return self._backend().create_job_object(_json(config))

    def launch_job(self, config):
        """Launches a pipeline: with the code that ``run`` has sent before where the config
        names it, else with the image's own. Gives a ``PipelineRun``."""
        return self._launched(self._backend().launch_job(_json(config)), config)

    def run(self, config, follow=False):
        """Packs the current repository, sends it to the config's artifact store, and
        launches the pipeline. The config is not changed. Gives a ``PipelineRun``.

        follow: print what the pipeline writes, and come back at its end.
        """
        run = self._launched(self._backend().run(_repository(), _json(config)), config)
        if follow:
            run.wait()
        return run

    def _launched(self, native, config):
        told = native.packed
        if told is not None:
            left_out = ", ".join(told["left_out_examples"][:3])
            _log.info("packed %s files, %s bytes; left out: %s", told["files"], told["bytes"], left_out or "nothing")
        for warning in native.warnings:
            _log.warning("%s", warning)
        _log.info("launched %s", native.name)
        self.last_run = PipelineRun(native, _with_tar_path(config, native.tar_path))
        return self.last_run


def _with_tar_path(config, tar_path):
    """A copy of the config with the place of the code in it."""
    config = inner = copy.deepcopy(config)
    if tar_path is not None:
        for key in ("backend", "args"):
            if inner.get(key) is None:
                inner[key] = {}
            inner = inner[key]
        inner["tar_path"] = tar_path
    return config


def _repository():
    """The folder that is packed: that of ``.zenml``, from the current one upwards."""
    if _Repository is not None:
        return _Repository.get_instance().path
    here = Path.cwd()
    return next((folder for folder in [here, *here.parents] if (folder / ".zenml").is_dir()), here)
