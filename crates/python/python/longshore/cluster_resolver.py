"""``KubernetesClusterResolver``, TensorFlow's and more.

Where TensorFlow can be imported the class is a ``tf.distribute.cluster_resolver.ClusterResolver``
and gives ``tf.train.ClusterSpec``; elsewhere it gives ``longshore.ClusterSpec``, which
behaves the same.
"""

import enum

from . import _native, pods
from .errors import NotATaskError

try:
    import tensorflow as _tf

    _Base = _tf.distribute.cluster_resolver.ClusterResolver
except ImportError:
    _tf = None
    _Base = object

__all__ = ["ExecutableLocation", "KubernetesClusterResolver"]

_DEFAULT_MAPPING = {"worker": ["job-name=tensorflow"]}


class ExecutableLocation(enum.Enum):
    """Where the program runs. It is found out; the argument is accepted."""

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


def cluster_def(spec, plain):
    """TensorFlow's ``ClusterDef`` of a spec, or ``plain`` without TensorFlow."""
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


class KubernetesClusterResolver(_Base):
    """The tasks of a distributed job, from label selectors over pods.

    >>> import longshore
    >>> resolver = longshore.KubernetesClusterResolver(
    ...     {"worker": ["job-name=train"], "ps": ["job-name=ps-1", "job-name=ps-2"]},
    ...     override_client=cluster, order="natural")
    >>> resolver.cluster_spec().as_dict()
    {'ps': [], 'worker': ['10.0.0.1:8470', '10.0.0.2:8470']}

    The first five arguments are those of TensorFlow's class of the same name.

    job_to_label_mapping: job name to label selectors; the pods of a job's selectors come
        in the selectors' order.
    tf_server_port: a number, or the name of a container's port.
    rpc_layer: the scheme of ``master()``.
    override_client: a ``longshore.Cluster``, or an object shaped like the official
        client's ``CoreV1Api``; without it the kubeconfig or the pod's own service account
        leads to the cluster, when it is first asked.
    executable_location: accepted; where the program runs is found out.
    namespace: where to look; without it the cluster's default, in a pod the pod's own.
    all_namespaces: look everywhere, as TensorFlow's class does.
    address: ``pod_ip``, ``host_ip`` (what TensorFlow's class gives), ``dns``, ``hostname``.
    family: ``primary``, ``ipv4`` or ``ipv6``, where pods have two addresses.
    order: ``natural`` (completion index, then numbers as numbers), ``lexical`` (TensorFlow's),
        ``index``.
    not_running: ``fail``, ``skip_finished``, ``skip`` or ``keep``.
    ready: whether pods that run must be ready, too.
    once: count a pod that two selectors match once, instead of refusing it.
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
        }
        # What is wrong with them is known before any request.
        _native.assemble([], self._options)
        if override_client is not None and not (
            isinstance(override_client, _native.Cluster) or pods.is_client(override_client)
        ):
            raise TypeError(
                "override_client must be a longshore.Cluster or have the functions of the official "
                f"client's CoreV1Api, but is {override_client!r}"
            )
        self._client = override_client
        self._native = None
        self._task_type = None
        self._task_id = None
        self._looked = False
        self._rpc_layer = rpc_layer

    def _resolver(self):
        """Asks through our own client, which connects when first asked."""
        if self._native is None:
            client = self._client
            if client is None:
                client = _native.Cluster()
            if not isinstance(client, _native.Cluster):
                raise TypeError(
                    "only a longshore.Cluster can wait for tasks, follow them and know the own one, "
                    f"not {client!r}"
                )
            self._native = _native.Resolver(client, self._mapping, self._scope, self._options)
        return self._native

    def tasks(self):
        """The tasks as they are now: roles, indices, addresses, pods, accelerators."""
        if self._client is not None and not isinstance(self._client, _native.Cluster):
            selected = pods.select(self._client, self._mapping, **self._scope)
            return _native.assemble(selected, self._options)
        return self._resolver().tasks()

    def _spec(self, tasks):
        spec = tasks.spec()
        return spec if _tf is None else _tf.train.ClusterSpec(spec.as_dict())

    def cluster_spec(self):
        """The addresses of the tasks as they are now. Asks the cluster each time."""
        return self._spec(self.tasks())

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The URL of a task; of this one where nothing is given; ``''`` when either is missing."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        layer = self.rpc_layer if rpc_layer is None else rpc_layer
        return self.tasks().master(task_type, task_id, layer or "")

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """Device to how many of them a task has: ``{'GPU': 2}``.

        From the limits of its pod; no session is needed. Of a role, or of all tasks where
        nothing is given: what every one of them has.
        """
        del config_proto
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        return self.tasks().num_accelerators(task_type, task_id)

    def accelerators(self):
        """The accelerators of each task by resource name, and which model its node has."""
        return self._resolver().accelerators()

    def find_own_task(self):
        """Sets ``task_type`` and ``task_id`` to those of the pod that this runs in."""
        self.task_type, self.task_id = self._resolver().own_task()
        return self

    def wait(self, needed, timeout=None):
        """Waits until each role has so many tasks: ``{'worker': 4}``; gives the spec.

        Raises ``MissingTasksError``, which says who is missing and why, after ``timeout``
        seconds.
        """
        return self._spec(self._resolver().wait(needed, timeout))

    def watch(self):
        """Follows who comes and goes: iterates ``Generation``; ``next(timeout)`` waits no longer."""
        return self._resolver().watch()

    @property
    def environment(self):
        """Always empty."""
        return ""

    def _own(self):
        """In a pod, who this is; looked up once, where it was not said."""
        if self._task_type is None and self._task_id is None and not self._looked:
            asks = self._client is None or isinstance(self._client, _native.Cluster)
            if asks and pods.in_a_pod():
                try:
                    self.find_own_task()
                except NotATaskError:
                    pass
            self._looked = True

    @property
    def task_type(self):
        """The role of this task: what was set, in a pod also what is found out."""
        self._own()
        return self._task_type

    @task_type.setter
    def task_type(self, task_type):
        self._task_type = task_type

    @property
    def task_id(self):
        """The index of this task: what was set, in a pod also what is found out."""
        self._own()
        return self._task_id

    @task_id.setter
    def task_id(self, task_id):
        self._task_id = task_id

    @property
    def rpc_layer(self):
        """The scheme of ``master()``."""
        return self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer):
        self._rpc_layer = rpc_layer
