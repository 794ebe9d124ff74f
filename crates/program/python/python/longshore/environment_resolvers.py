"""TensorFlow's other cluster resolvers: from the variables of ``TF_CONFIG``, Slurm and SageMaker,
and the union of several.

If TensorFlow is installed, the classes derive from
``tf.distribute.cluster_resolver.ClusterResolver`` and return ``tf.train.ClusterSpec``.
"""

import os

from . import _native
from .cluster_resolver import _Base, _tf

__all__ = ["SageMakerClusterResolver", "SlurmClusterResolver", "TFConfigClusterResolver", "UnionResolver"]


def _typed(spec):
    """A spec as TensorFlow's class, if TensorFlow is installed."""
    return spec if _tf is None else _tf.train.ClusterSpec(spec.as_dict())


def _url(address, rpc_layer):
    return f"{rpc_layer}://{address}" if rpc_layer else address


def _visible_accelerators():
    """The GPUs that this process may use, if a variable says so."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = [device for device in (visible or "").split(",") if device.strip() not in ("", "-1")]
    return {"GPU": len(devices)} if devices else {}


class _EnvironmentResolver(_Base):  # pyright: ignore[reportGeneralTypeIssues]
    """A resolver whose tasks are in the environment variables of this process."""

    def __init__(self, task_type=None, task_id=None, rpc_layer=None):
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer

    def _read(self):
        """The spec, the own task, the scheme of URLs, the URL of the master, and the environment."""
        raise NotImplementedError

    def cluster_spec(self):
        """The addresses of the tasks. Reads the variables on each call."""
        return _typed(self._read()[0])

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The URL of a task. The defaults are this task's own type and ID. Empty if there is only one
        task, as in TensorFlow."""
        spec, _, _, session_master, _ = self._read()
        if session_master is not None:
            return session_master
        jobs = spec.jobs
        if not jobs or (len(jobs) == 1 and spec.num_tasks(jobs[0]) == 1):
            return ""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return _url(spec.task_address(task_type, task_id), layer)

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """The accelerators of this process: TensorFlow's devices if it is installed, and otherwise
        those of ``CUDA_VISIBLE_DEVICES``."""
        if _tf is not None:
            return super().num_accelerators(task_type, task_id, config_proto)
        return _visible_accelerators()

    @property
    def environment(self):
        """TensorFlow's name of the environment; usually empty."""
        return self._read()[4]

    @property
    def task_type(self):
        """The role of this task: the value that was set, or that of the variables."""
        if self._task_type is not None:
            return self._task_type
        task = self._read()[1]
        return task and task[0]

    @task_type.setter
    def task_type(self, task_type):
        self._task_type = task_type

    @property
    def task_id(self):
        """The index of this task: the value that was set, or that of the variables."""
        if self._task_id is not None:
            return self._task_id
        task = self._read()[1]
        return task and task[1]

    @task_id.setter
    def task_id(self, task_id):
        self._task_id = task_id

    @property
    def rpc_layer(self):
        """The URL scheme of ``master()``: the value that was set, or that of the variables."""
        return self._read()[2] if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer):
        self._rpc_layer = rpc_layer


class TFConfigClusterResolver(_EnvironmentResolver):
    """The tasks of the variable ``TF_CONFIG``, as TensorFlow's class of the same name.

    >>> import os, longshore
    >>> os.environ["TF_CONFIG"] = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    >>> resolver = longshore.TFConfigClusterResolver(rpc_layer="grpc")
    >>> resolver.cluster_spec().as_dict(), resolver.task_id, resolver.master()
    ({'worker': ['a:1', 'b:1']}, 1, 'grpc://b:1')
    >>> del os.environ["TF_CONFIG"]

    task_type: the role of this task, instead of that of the variable.
    task_id: its index.
    rpc_layer: the URL scheme of ``master()``.
    environment: TensorFlow's name of the environment.
    """

    def __init__(self, task_type=None, task_id=None, rpc_layer=None, environment=None):
        super().__init__(task_type, None if task_id is None else int(task_id), rpc_layer)
        self._environment = environment

    def _read(self):
        return _native.read_tf_config(os.environ.get("TF_CONFIG", ""))

    @property
    def environment(self):
        """The value that was set, or that of the variable."""
        return self._read()[4] if self._environment is None else self._environment


class SlurmClusterResolver(_EnvironmentResolver):
    """The tasks of a job step of Slurm, as TensorFlow's class of the same name.

    Ranks follow the hosts in Slurm's order, as with its distribution ``block``; TensorFlow's class sorts
    the names of the hosts, so that ``n10`` comes before ``n2``. Sets no variable: Slurm's
    ``--gpus-per-task`` sets ``CUDA_VISIBLE_DEVICES``.

    jobs: the number of tasks of each role, such as ``{"worker": 3, "ps": 1}``; the default is one role
        ``worker`` with all tasks.
    port_base: the port of the first task on a host; each further task there has the next one.
    gpus_per_node: not needed; accepted for programs that pass it.
    gpus_per_task: the number of GPUs that ``num_accelerators()`` returns.
    tasks_per_node: the number of tasks on each host, if not that of Slurm.
    auto_set_gpu: must be ``False``, if given: see above.
    rpc_layer: the URL scheme of ``master()``.
    """

    def __init__(
        self,
        jobs=None,
        port_base=8888,
        gpus_per_node=None,
        gpus_per_task=None,
        tasks_per_node=None,
        auto_set_gpu=False,
        rpc_layer="grpc",
    ):
        del gpus_per_node
        super().__init__(rpc_layer=rpc_layer)
        if auto_set_gpu:
            raise ValueError("auto_set_gpu: this class sets no variable; use srun --gpus-per-task, which sets CUDA_VISIBLE_DEVICES")
        self._jobs = sorted(dict(jobs or {}).items())
        self._port_base = port_base
        self._gpus_per_task = gpus_per_task
        self._tasks_per_node = tasks_per_node

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """The number of GPUs of each task: ``gpus_per_task``, or those of this process."""
        if self._gpus_per_task is not None:
            return {"GPU": self._gpus_per_task}
        return super().num_accelerators(task_type, task_id, config_proto)

    def _read(self):
        variables = {name: value for name, value in os.environ.items() if name.startswith("SLURM_")}
        return _native.read_slurm(variables, self._jobs, self._port_base, self._tasks_per_node)

    def get_task_info(self):
        """The role and the index of this task."""
        return self.task_type, self.task_id


class SageMakerClusterResolver(_EnvironmentResolver):
    """The tasks of a training job of Amazon SageMaker, as TensorFlow's class of the same name: one role
    ``worker`` with a task per host, in the order of their names.

    port: the port of the tasks.
    task_type: the role of this task, instead of ``worker``.
    task_id: its index.
    rpc_layer: the URL scheme of ``master()``; there is none by default.
    environment: TensorFlow's name of the environment.
    """

    def __init__(self, port=2223, task_type=None, task_id=None, rpc_layer=None, environment=None):
        super().__init__(task_type, None if task_id is None else int(task_id), rpc_layer)
        self._port = int(port)
        self._environment = environment

    def _read(self):
        variables = {name: value for name, value in os.environ.items() if name.startswith("SM_")}
        return _native.read_sagemaker(variables, self._port)

    @property
    def environment(self):
        """The value that was set; empty otherwise."""
        return self._read()[4] if self._environment is None else self._environment


class UnionResolver(_Base):  # pyright: ignore[reportGeneralTypeIssues]
    """The tasks of several resolvers, as TensorFlow's class of the same name.

    The tasks of a job that several resolvers have are appended in their order. If one of them has a job
    with missing indices, all keep their indices; an index that two of them have raises ``KeyError``.
    The other properties are those of the first resolver.

    resolvers: the resolvers: Longshore's, TensorFlow's, or objects with their methods.
    rpc_layer: the URL scheme of ``master(task_type, task_id)``, which has none by default.
    task_type: the role of this task, likewise.
    task_id: its index, likewise.
    """

    def __init__(self, *resolvers, rpc_layer=None, task_type=None, task_id=None):
        if not resolvers:
            raise ValueError("at least one cluster resolver is required")
        for resolver in resolvers:
            if not hasattr(resolver, "cluster_spec"):
                raise TypeError(f"all arguments must be cluster resolvers, but one is {resolver!r}")
        self._resolvers = resolvers
        self._rpc_layer = rpc_layer
        self._task_type = task_type
        self._task_id = task_id

    def cluster_spec(self):
        """The tasks of all resolvers, which it queries on each call."""
        specs = [_native.ClusterSpec(resolver.cluster_spec()).as_dict() for resolver in self._resolvers]
        sparse = {job for spec in specs for job, tasks in spec.items() if tasks and isinstance(tasks, dict)}
        merged = {}
        for spec in specs:
            for job, tasks in spec.items():
                if job not in sparse:
                    merged.setdefault(job, []).extend(tasks)
                    continue
                known = merged.setdefault(job, {})
                indexed = tasks if isinstance(tasks, dict) else dict(enumerate(tasks))
                twice = sorted(known.keys() & indexed.keys())
                if twice:
                    raise KeyError(f"two resolvers have the tasks {twice} of job {job!r}")
                known.update(indexed)
        return _typed(_native.ClusterSpec(merged))

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The URL of a task; without one, that of the first resolver."""
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
            # As in TensorFlow, not the layer of the first resolver.
            return _url(address, rpc_layer or self._rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """The accelerators of a task, as the first resolver says."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self):
        """The environment of the first resolver."""
        return self._resolvers[0].environment

    @property
    def task_type(self):
        """The role of this task: the value that was set, or that of the first resolver."""
        return self._resolvers[0].task_type if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, task_type):
        self._task_type = task_type

    @property
    def task_id(self):
        """The index of this task: the value that was set, or that of the first resolver."""
        return self._resolvers[0].task_id if self._task_id is None else self._task_id

    @task_id.setter
    def task_id(self, task_id):
        self._task_id = task_id

    @property
    def rpc_layer(self):
        """The URL scheme of ``master()``: the value that was set, or that of the first resolver."""
        return self._resolvers[0].rpc_layer if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer):
        self._rpc_layer = rpc_layer
