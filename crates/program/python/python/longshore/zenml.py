"""``OrchestratorKubernetesBackend`` of ZenML 0.3, implemented with Longshore's launcher.

If ZenML 0.3 is installed, the class is one of its orchestrator backends, for
``pipeline.run(backend=…)``. Launching a pipeline config does not require ZenML.
"""

import copy
import json
import logging
# pyright: reportMissingImports=false

import os
from pathlib import Path

from . import _native
from ._following import until_end
from ._itself import refuse_while_importing

try:
    from zenml.backends.orchestrator.base.orchestrator_base_backend import OrchestratorBaseBackend as _Base
    from zenml.repo.repo import Repository as _Repository
except ImportError:
    _Base = object
    _Repository = None

__all__ = ["OrchestratorKubernetesBackend", "PipelineRun"]

_log = logging.getLogger("longshore.zenml")


def _texts(mapping):
    """Labels or annotations, with all values converted to strings."""
    return {str(key): str(value) for key, value in (mapping or {}).items()}


def _json(config):
    """The config as JSON for the pod. Raises ``ValueError`` for values that JSON cannot represent."""
    return json.dumps(config, allow_nan=False)


class PipelineRun:
    """A launched pipeline.

    ``name`` and ``namespace`` are those of its Job. ``config`` is a copy of the config that
    includes the location of the code; ``launch_job`` accepts it. ``exit_code`` is ``None``
    until ``wait`` returns.
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
        """The events of the run as they occur, one dict per event. The last is ``finished``."""
        return self._native.follow(logs=logs)

    def wait(self, *, timeout=None, logs=True):
        """Waits until the run ends and returns its exit code. Prints the pipeline's output.

        Ctrl-C stops waiting; the run continues. After ``timeout`` seconds, raises ``WaitTimeoutError``.
        """
        for event in until_end(self._native, logs, timeout):
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
        """Stops the run and keeps its record."""
        self._native.cancel()

    def __repr__(self):
        return f"PipelineRun({self.name!r}, namespace={self.namespace!r})"


class OrchestratorKubernetesBackend(_Base):  # pyright: ignore[reportGeneralTypeIssues]
    """Runs ZenML pipelines as Jobs in a Kubernetes cluster.

    >>> import longshore
    >>> backend = longshore.OrchestratorKubernetesBackend(image="registry.example/zenml:1")
    >>> config = {"pipeline": {"args": {"name": "training_Digits"}}}
    >>> job = backend.create_job_object(config)
    >>> job["metadata"]["name"], job["metadata"]["labels"]["pipeline"]
    ('zenml-training-digits', 'training_Digits')

    image: an image with Python, ZenML, the pipeline's dependencies, and the ``longshore``
        program.
    job_prefix: the prefix of the Job's name, before the pipeline's name.
    extra_labels: labels for the Job and its pods. ZenML's own labels take precedence.
    extra_annotations: annotations for the Job.
    namespace: the Job's namespace; the default is ``default``.
    image_pull_policy: ``Always``, ``Never`` or ``IfNotPresent``.
    kubernetes_config_path: the path of the kubeconfig.
    settings: the path of a longshore.toml, for settings that have no parameter here:
        resources, environment variables, volumes, a launcher image, a pod template.
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
        # ZenML writes these attributes into a config and reads them back.
        self._kwargs = {
            name: value if value is None or isinstance(value, (str, dict)) else os.fspath(value)
            for name, value in vars(self).items()
        }
        self._source = f"{__name__}.OrchestratorKubernetesBackend"
        self._immutable = False
        #: The last launched run, because ZenML's ``pipeline.run`` does not return it.
        self.last_run = None
        # Validates the parameters.
        self._backend()

    def _backend(self):
        # Created on each call, because callers may set attributes, as with ZenML's class.
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

    def to_config(self):
        """The block ``backend`` of a pipeline's config, as ZenML's base class writes it."""
        return {"type": self.BACKEND_TYPE, "source": self._source, "args": dict(self._kwargs)}

    def create_job_object(self, config):
        """The Job that ``launch_job`` creates, as a dict. Sends no request."""
        return self._backend().create_job_object(_json(config))

    def launch_job(self, config):
        """Launches a pipeline and returns a ``PipelineRun``. The code is the upload of an earlier
        ``run`` if the config names one, and otherwise the code in the image."""
        return self._launched(lambda: self._backend().launch_job(_json(config)), config)

    def run(self, config, follow=False):
        """Packs the current repository, uploads it to the config's artifact store, launches
        the pipeline, and returns a ``PipelineRun``. Does not change the config.

        follow: print the pipeline's output and return when the run ends.
        """
        run = self._launched(lambda: self._backend().run(_repository(), _json(config)), config)
        if follow:
            run.wait()
        return run

    def _launched(self, launch, config):
        # A pod imports the modules of a pipeline's steps.
        refuse_while_importing()
        native = launch()
        packed = native.packed
        if packed is not None:
            left_out = ", ".join(packed["left_out_examples"][:3]) or "nothing"
            _log.info("packed %s files, %s bytes; left out: %s", packed["files"], packed["bytes"], left_out)
        for warning in native.warnings:
            _log.warning("%s", warning)
        _log.info("launched %s", native.name)
        self.last_run = PipelineRun(native, _with_tar_path(config, native.tar_path))
        return self.last_run


def _with_tar_path(config, tar_path):
    """A copy of the config that includes the location of the code."""
    config = inner = copy.deepcopy(config)
    if tar_path is not None:
        for key in ("backend", "args"):
            if inner.get(key) is None:
                inner[key] = {}
            inner = inner[key]
        inner["tar_path"] = tar_path
    return config


def _repository():
    """The folder to pack: the nearest one with ``.zenml``, from the current folder upwards."""
    if _Repository is not None:
        return _Repository.get_instance().path
    here = Path.cwd()
    return next((folder for folder in [here, *here.parents] if (folder / ".zenml").is_dir()), here)
