"""``KubernetesClusterResolver``, compatible with TensorFlow's class of the same name.

If TensorFlow is installed, the class derives from
``tf.distribute.cluster_resolver.ClusterResolver`` and returns ``tf.train.ClusterSpec``. Otherwise
it returns ``longshore.ClusterSpec``, which behaves the same.
"""

import enum
import logging

from . import _clusters, _native, pods
from .errors import NotATaskError

try:
    import tensorflow as _tf

    _Base = _tf.distribute.cluster_resolver.ClusterResolver
except ImportError:
    _tf = None
    _Base = object

__all__ = ["ExecutableLocation", "KubernetesClusterResolver"]

_log = logging.getLogger("longshore.resolver")

_DEFAULT_MAPPING = {"worker": ["job-name=tensorflow"]}


class ExecutableLocation(enum.Enum):
    """Where the program runs. The resolver detects this and ignores the argument."""

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


def cluster_def(spec, plain):
    """TensorFlow's ``ClusterDef`` for a spec, or ``plain`` if TensorFlow is not installed."""
    return plain if _tf is None else _tf.train.ClusterSpec(spec).as_cluster_def()


def _selectors(role, selectors):
    """The selectors of a role, as a list."""
    if isinstance(selectors, (str, dict)):
        return [selectors]
    try:
        return list(selectors)
    except TypeError:
        raise TypeError(
            f"the selectors of job {role!r} must be a list of label selectors, but are {selectors!r}"
        ) from None


class KubernetesClusterResolver(_Base):  # pyright: ignore[reportGeneralTypeIssues]
    """The tasks of a distributed job, from label selectors over pods.

    >>> import longshore
    >>> resolver = longshore.KubernetesClusterResolver(
    ...     {"worker": ["job-name=train"], "ps": ["job-name=ps-1", "job-name=ps-2"]},
    ...     override_client=cluster, order="natural")
    >>> resolver.cluster_spec().as_dict()
    {'ps': {}, 'worker': ['10.0.0.1:8470', '10.0.0.2:8470']}

    The first five arguments are those of TensorFlow's class of the same name.

    job_to_label_mapping: maps job names to label selectors. The pods of a job are in the
        order of its selectors.
    tf_server_port: a port number, or the name of a container port.
    rpc_layer: the URL scheme of ``master()``.
    override_client: a ``longshore.Cluster``, a ``longshore.kube.Cluster``, or an object with the
        methods of the official client's ``CoreV1Api``. Without it, the resolver connects on first use, with the
        kubeconfig or, in a pod, with the pod's service account.
    executable_location: accepted for compatibility and ignored. The resolver detects where
        the program runs.
    namespace: the namespace of the pods. The default is the cluster's default namespace or,
        in a pod, the pod's own namespace. The official client has no default namespace: with it,
        the default outside of a pod is all namespaces, as in TensorFlow's class.
    all_namespaces: select pods in all namespaces, as TensorFlow's class does.
    address: ``pod_ip``, ``host_ip`` (as TensorFlow's class), ``dns`` or ``hostname``.
    family: ``primary``, ``ipv4`` or ``ipv6``, for pods with two addresses.
    order: ``natural`` (by completion index, then by name, with numbers compared as numbers),
        ``lexical`` (as TensorFlow's class) or ``index``.
    not_running: ``fail``, ``skip_finished``, ``skip`` or ``keep``.
    ready: whether running pods must also be ready.
    once: if two selectors match a pod, count it once instead of raising ``PodError``.
    tensorflow: select pods as TensorFlow's class does: host IPs, names in byte order, all
        namespaces unless one is given, only the phase of pods, and a pod once for each selector
        that matches it. Replaces ``address``, ``order``, ``not_running``, ``ready`` and ``once``.

    A job without pods is not an error. The logger ``longshore.resolver`` warns about it, and names
    the namespaces in which pods do match.
    """

    def __init__(
        self,
        job_to_label_mapping=None,
        tf_server_port=8470,
        rpc_layer="grpc",
        override_client=None,
        executable_location=ExecutableLocation.WITHIN_CLUSTER,
        *,
        namespace=None,
        all_namespaces=False,
        address="pod_ip",
        family="primary",
        order="natural",
        not_running="fail",
        ready=False,
        once=False,
        tensorflow=False,
    ):
        # TensorFlow's own enumeration has the same names.
        location = getattr(executable_location, "name", executable_location)
        if location not in ExecutableLocation.__members__:
            raise ValueError(
                f"The executable location provided is invalid: {executable_location!r}; "
                "it must be ExecutableLocation.WITHIN_CLUSTER or .OFF_CLUSTER"
            )
        if namespace is not None and all_namespaces:
            raise ValueError("give a namespace or all_namespaces, not both")
        given = {"address": address, "order": order, "not_running": not_running, "ready": ready, "once": once}
        defaults = {"address": "pod_ip", "order": "natural", "not_running": "fail", "ready": False, "once": False}
        if tensorflow:
            changed = [name for name, value in given.items() if value != defaults[name]]
            if changed:
                raise ValueError(f"tensorflow=True replaces {', '.join(changed)}: give one or the other")
            all_namespaces = all_namespaces or namespace is None
        mapping = job_to_label_mapping or _DEFAULT_MAPPING
        self._mapping = [(role, _selectors(role, mapping[role])) for role in mapping]
        self._scope = {"namespace": namespace, "all_namespaces": bool(all_namespaces)}
        self._options = {
            "port": str(tf_server_port),
            "address": address,
            "family": family,
            "order": order,
            "not_running": not_running,
            "ready": bool(ready),
            "once": bool(once),
            "tensorflow": bool(tensorflow),
        }
        # Validates the options before any request.
        _native.assemble([], self._options)
        native = _clusters.connection(override_client)
        if override_client is not None and native is None and not pods.is_client(override_client):
            raise TypeError(
                "override_client must be a longshore.Cluster, a longshore.kube.Cluster, or have the functions of "
                f"the official client's CoreV1Api, but is {override_client!r}"
            )
        self._client = native or override_client
        self._native = None
        # The jobs without tasks that were warned about.
        self._warned = set()
        self._task_type = None
        self._task_id = None
        self._own_task_checked = False
        self._rpc_layer = rpc_layer

    def _resolver(self):
        """The native resolver. It connects to the cluster on first use."""
        if self._native is None:
            client = self._client
            if client is None:
                client = _native.Cluster.from_kubeconfig()
            if not isinstance(client, _native.Cluster):
                raise TypeError(
                    "only a longshore.Cluster can wait for tasks, follow them and know the own one, "
                    f"not {client!r}"
                )
            self._native = _native.Resolver(client, self._mapping, self._scope, self._options)
        return self._native

    def tasks(self):
        """The current tasks: roles, indices, addresses, pods, accelerators."""
        if self._client is not None and not isinstance(self._client, _native.Cluster):
            selected = pods.select(self._client, self._mapping, **self._scope)
            tasks = _native.assemble(selected, self._options)
            self._warn(tasks, lambda: pods.unmatched(self._client, self._mapping, tasks.spec().as_dict(), **self._scope))
            return tasks
        tasks = self._resolver().tasks()
        self._warn(tasks, lambda: self._resolver().unmatched(tasks))
        return tasks

    def _warn(self, tasks, explain):
        """Warns once about each job that has no tasks, until it has some."""
        empty = {role for role, found in tasks.spec().as_dict().items() if not found}
        if empty - self._warned:
            try:
                sentences = explain()
            except Exception as error:  # noqa: BLE001 - a failed explanation must not hide the tasks
                sentences = [(role, f"the job {role} has no tasks; the reason is not known: {error}") for role in empty]
            for role, sentence in sentences:
                if role not in self._warned:
                    _log.warning("%s", sentence)
        self._warned = empty

    def _spec(self, tasks):
        spec = tasks.spec()
        return spec if _tf is None else _tf.train.ClusterSpec(spec.as_dict())

    def cluster_spec(self):
        """The current addresses of the tasks. Queries the cluster on each call."""
        return self._spec(self.tasks())

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The URL of a task. The defaults are this task's own type and ID; without them, ``''``."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return self.tasks().master(task_type, task_id, layer or "")

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """The number of accelerators of a task per device type: ``{'GPU': 2}``.

        The numbers come from the resource limits of the task's pod; no session is needed. For
        a role, or for all tasks if no task is given, the numbers are those that every task has.
        """
        del config_proto
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        return self.tasks().num_accelerators(task_type, task_id)

    def accelerators(self):
        """The accelerators of each task by resource name, and the model on its node."""
        return self._resolver().accelerators()

    def find_own_task(self):
        """Sets ``task_type`` and ``task_id`` to those of the pod in which this process runs."""
        self.task_type, self.task_id = self._resolver().own_task()
        return self

    def wait(self, needed, timeout=None):
        """Waits until each role has the given number of tasks, such as ``{'worker': 4}``.

        Returns the cluster spec. After ``timeout`` seconds, raises ``MissingTasksError``, which
        lists the missing tasks and the reasons.
        """
        return self._spec(self._resolver().wait(needed, timeout))

    def watch(self):
        """Watches the tasks: an iterator of ``Generation``, with ``next(timeout)`` to limit a wait."""
        return self._resolver().watch()

    @property
    def environment(self):
        """Always empty."""
        return ""

    def _detect_own_task(self):
        """Finds this process's own task once, if it runs in a pod and the caller set no task."""
        if self._task_type is None and self._task_id is None and not self._own_task_checked:
            can_query = self._client is None or isinstance(self._client, _native.Cluster)
            if can_query and pods.in_a_pod():
                try:
                    self.find_own_task()
                except NotATaskError:
                    pass
            self._own_task_checked = True

    @property
    def task_type(self):
        """The role of this task: the value that was set or, in a pod, the detected one."""
        self._detect_own_task()
        return self._task_type

    @task_type.setter
    def task_type(self, task_type):
        self._task_type = task_type

    @property
    def task_id(self):
        """The index of this task: the value that was set or, in a pod, the detected one."""
        self._detect_own_task()
        return self._task_id

    @task_id.setter
    def task_id(self, task_id):
        self._task_id = task_id

    @property
    def rpc_layer(self):
        """The URL scheme of ``master()``."""
        return self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer):
        self._rpc_layer = rpc_layer
