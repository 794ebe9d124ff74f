"""Type stubs for the native extension module."""

import builtins
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, overload

from typing_extensions import Self, TypeVar

from ._kinds import Views
from .events import Generation, WatchEvent
from .results import Output
from .types import Event

__version__: str

_T = TypeVar("_T")
# The type of an object, as JSON. `View` without a type is a view of any kind.
_Object = TypeVar("_Object", default=Any)
_Object_co = TypeVar("_Object_co", covariant=True, default=Any)
# The same, for results whose kind only the caller knows: the annotation of the variable determines it.
_Other = TypeVar("_Other", default=dict[str, Any])

_PatchKind = Literal["strategic", "merge", "json", "apply"]
_Propagation = Literal["background", "foreground", "orphan"]
_Selector = str | Mapping[str, str]

class Cluster(Views):
    """A connection to a cluster.

    Without arguments, it is the cluster of the command ``longshore run`` and of ``longshore.run``: the one
    that ``LONGSHORE_CONTEXT``, ``LONGSHORE_KUBECONFIG`` or the current folder's ``longshore.toml`` names,
    in a pod that of the pod, otherwise the embedded cluster of this machine, which is started if needed.
    :meth:`from_kubeconfig` connects to the cluster that kubectl uses. ``context`` is one of ``[contexts]``
    in ``longshore.toml``, or of the kubeconfig. ``url`` is the URL of a server that requires no
    credentials, such as ``kubectl proxy``.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
    ) -> None: ...
    @classmethod
    def from_kubeconfig(cls, kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None) -> Self:
        """The cluster that kubectl uses: that of a kubeconfig or, in a pod, of the service account.

        :param kubeconfig: The file; default: those of `KUBECONFIG`, or `~/.kube/config`.
        :param context: A context of the kubeconfig; default: its current one.
        """
    def _facing(self, *, asyncio: bool) -> Cluster: ...
    @property
    def url(self) -> str:
        """The URL of the server."""
    @property
    def default_namespace(self) -> str:
        """The namespace of objects for which no other is given: that of the kubeconfig's context
        or of the pod, otherwise `default`.
        """
    @property
    def closed(self) -> bool:
        """Whether the connection was closed, or the embedded cluster stopped."""
    def close(self) -> None:
        """Closes the connection. Later requests raise `ClosedError`."""
    def lead(
        self,
        name: str,
        namespace: str | None = None,
        *,
        identity: str | None = None,
        lease_duration: float | None = None,
        renew_deadline: float | None = None,
        retry_interval: float | None = None,
    ) -> Leadership:
        """Waits until this process leads, of all that call this with the same name and namespace.
        They compete for a Lease, as with client-go's `leaderelection`, and need the permission
        to get, create and update it. All should have the same times.

        :param name: The name of the Lease.
        :param namespace: The namespace of the Lease; default: that of the cluster.
        :param identity: The name of this process, unique among all; default: the host's name,
            which is the pod's name, and a random part.
        :param lease_duration: After how many seconds without a renewal another process can
            lead; whole seconds, by default 15.
        :param renew_deadline: After how many seconds without a successful renewal this process
            loses the leadership, by default 10. Less than `lease_duration`.
        :param retry_interval: The seconds between two attempts, by default 2. Less than
            `renew_deadline`.
        """
    def proxy(self) -> Proxy:
        """Requests by path."""
    def item(self, data: Mapping[str, Any]) -> Item[_Other]:
        """An item of an object's JSON. Sends no request but for the kinds that the server has."""
    @overload
    def create(self, data: str, namespace: str | None = None) -> list[Item[_Other]]:
        """Creates the object of a mapping, or the objects of all documents in a YAML string.

        :param namespace: The namespace of objects that name none; default: that of the cluster.
        """
    @overload
    def create(self, data: Mapping[str, Any], namespace: str | None = None) -> Item[_Other]: ...
    @overload
    def apply(
        self, data: str, namespace: str | None = None, *, manager: str = "longshore", force: bool = False
    ) -> list[Item[_Other]]:
        """Applies the object of a mapping, or the objects of all documents in a YAML string, by
        server-side apply.

        :param namespace: The namespace of objects that name none; default: that of the cluster.
        :param manager: The name of the field manager.
        :param force: Take fields of other managers, instead of raising `ConflictError`.
        """
    @overload
    def apply(
        self, data: Mapping[str, Any], namespace: str | None = None, *, manager: str = "longshore", force: bool = False
    ) -> Item[_Other]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class View(Generic[_Object]):
    """The objects of one kind, in one namespace or in all. Iterating requests them page by page.

    ``len`` requests the current number of objects. Notebooks show the first objects as a table.
    """

    @property
    def kind(self) -> str:
        """The kind of the objects, such as `Pod`."""
    @property
    def api_version(self) -> str:
        """As in the field `apiVersion` of the objects."""
    @property
    def resource(self) -> str:
        """The plural name in paths."""
    @property
    def namespace(self) -> str | None:
        """The namespace of the objects; `None` for all namespaces."""
    def in_namespace(self, namespace: str) -> View[_Object]:
        """The same kind in one namespace."""
    def filter(
        self, *, labels: _Selector | None = None, fields: _Selector | None = None
    ) -> View[_Object]:
        """A view of only the objects that the selectors select.

        :param labels: A label selector, such as `"app=web,tier in (a, b)"`, or a mapping of
            labels to their values.
        :param fields: A field selector, such as `"status.phase=Running"`, or a mapping of
            fields to their values.
        """
    def dry_run(self) -> View[_Object]:
        """The same view whose changes the server only checks."""
    def list(self) -> builtins.list[Item[_Object]]:
        """All objects, as a list."""
    def fetch(self, name: str) -> Item[_Object]:
        """The object with this name. Raises `NotFoundError` if it does not exist."""
    def find(self, name: str) -> Item[_Object] | None:
        """As `fetch`, but returns `None` for an object that does not exist."""
    @overload
    def create(self: View[dict[str, Any]], data: Mapping[str, Any]) -> Item[_Object]:
        """Creates an object. Raises `AlreadyExistsError` if the name is taken."""
    @overload
    def create(self, data: _Object) -> Item[_Object]: ...
    @overload
    def replace(self: View[dict[str, Any]], name: str, data: Mapping[str, Any]) -> Item[_Object]:
        """Replaces an object. With its `resourceVersion`, raises `ConflictError` if it has changed
        since.
        """
    @overload
    def replace(self, name: str, data: _Object) -> Item[_Object]: ...
    def patch(self, name: str, body: Any, *, kind: _PatchKind = "strategic") -> Item[_Object]:
        """Changes fields.

        :param body: The patch: a mapping, or a list of operations for `"json"`.
        :param kind: `"strategic"` (lists such as containers are merged by name), `"merge"`
            (lists are replaced), `"json"` (operations) or `"apply"` (server-side apply).
        """
    @overload
    def apply(
        self: View[dict[str, Any]],
        data: Mapping[str, Any],
        *,
        manager: str = "longshore",
        force: bool = False,
    ) -> Item[_Object]:
        """Applies fields (server-side apply) as `manager`. Raises `ConflictError` for fields of another
        manager, unless `force` is set.
        """
    @overload
    def apply(
        self, data: _Object, *, manager: str = "longshore", force: bool = False
    ) -> Item[_Object]: ...
    def delete(
        self,
        name: str,
        *,
        propagation: _Propagation | None = None,
        grace_seconds: int | None = None,
        uid: str | None = None,
        version: str | None = None,
    ) -> None:
        """Deletes the object. Does nothing if it does not exist.

        :param propagation: What happens to the objects that it owns: `"background"` (deleted
            after it), `"foreground"` (deleted before it) or `"orphan"` (kept); default: that of
            the kind.
        :param grace_seconds: The seconds that a pod has to terminate; 0 deletes it immediately.
        :param uid: Delete only the object with this UID; another raises `ConflictError`.
        :param version: Delete only this resource version; another raises `ConflictError`.
        """
    def delete_all(self, *, propagation: _Propagation | None = None, grace_seconds: int | None = None) -> None:
        """Deletes all objects that the view selects. A view of a kind with namespaces must have
        one.

        :param propagation: As for `delete`.
        :param grace_seconds: As for `delete`.
        """
    def watch(self, *, since: str | None = None) -> Watch[_Object]:
        """Watches changes, starting now, or after a resource version. `"0"` starts with all
        objects as `ADDED`.
        """
    @overload
    def wait(self, name: str, until: Literal["deleted"], *, timeout: float | None = None) -> None:  # type: ignore[overload-overlap]
        """Waits until an object fulfils a condition, and returns its version then. An object that
        does not exist yet is waited for.

        `"ready"` means that a Pod or Node is ready, that a Deployment, StatefulSet, DaemonSet
        or ReplicaSet has all its pods, ready and of the current template, that a Job is
        complete, that a claim is bound, or that the kind of a CustomResourceDefinition is
        served; for other kinds, that the condition `Ready` or `Available` is true or that they
        have neither. `"finished"` means that a Job is complete or has failed, or that a Pod has
        succeeded or failed.

        :param until: `"ready"`, `"finished"`, `"deleted"` (then the result is `None`), the type
            of a condition whose status must be `"True"`, such as `"Available"`, or a function,
            which is called with each version until it returns true. Its exceptions are raised.
        :raises WaitTimeoutError: If the timeout expires; the message contains the last state.
        """
    @overload
    def wait(
        self, name: str, until: str | Callable[[Item[_Object]], object], *, timeout: float | None = None
    ) -> Item[_Object]: ...
    def cache(self) -> Cache[_Object]:
        """A copy of the objects that is kept up to date."""
    def count(self) -> int:
        """The current number of objects."""
    def __iter__(self) -> Iterator[Item[_Object]]: ...
    @overload
    def __getitem__(self, position: int) -> Item[_Object]: ...
    @overload
    def __getitem__(self, position: slice) -> builtins.list[Item[_Object]]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def _repr_html_(self) -> str: ...

class Item(Generic[_Object_co]):
    """An object at one resource version. Methods that change the object return its new version.

    ``wait`` waits until the object is ``"ready"``, ``"finished"`` or ``"deleted"``, until it has a
    condition such as ``"Available"``, or until a function of its current version returns true. Its
    error after the timeout names the last state. Logs, exec, attach, port-forward, copies and evictions
    are those of pods.
    """

    @property
    def name(self) -> str:
        """The name."""
    @property
    def namespace(self) -> str | None:
        """The namespace; `None` for kinds without namespaces."""
    @property
    def uid(self) -> str:
        """The UID, which no other object has, not even a later one of the same name."""
    @property
    def version(self) -> str:
        """The resource version."""
    @property
    def kind(self) -> str:
        """The kind, such as `Pod`."""
    @property
    def link(self) -> str:
        """The path of the object on the server."""
    @property
    def labels(self) -> dict[str, str]:
        """The labels. Each call returns a new copy."""
    @property
    def annotations(self) -> dict[str, str]:
        """The annotations. Each call returns a new copy."""
    @property
    def raw(self) -> _Object_co:
        """The whole object. Each call returns a new copy."""
    def field(self, *path: str) -> Any:
        """One field by its path, or `None` if the object lacks it. Parses only this field."""
    def spec(self) -> dict[str, Any]:
        """The fields that are needed to create the object again."""
    def fetch(self) -> Item[_Object_co]:
        """The newest version of the object."""
    def patch(self, body: Any, *, kind: _PatchKind = "strategic") -> Item[_Object_co]:
        """Changes fields, and returns the new version.

        :param body: The patch: a mapping, or a list of operations for `"json"`.
        :param kind: `"strategic"`, `"merge"`, `"json"` or `"apply"`, as for `View.patch`.
        """
    def replace(self, data: Mapping[str, Any]) -> Item[_Object_co]:
        """Replaces the object, if it still has this version, and returns the new version.

        :param data: The new object, such as a changed `raw`. A `metadata.resourceVersion` replaces
            this version.
        :raises ConflictError: If the object has changed since.
        """
    def patch_status(self, body: Any, *, kind: _PatchKind = "strategic") -> Item[_Object_co]:
        """Changes fields of the status, and returns the new version.

        :param body: The patch, as for `patch`: a mapping with the key `status`.
        :param kind: As for `patch`.
        """
    def delete(
        self,
        *,
        propagation: _Propagation | None = None,
        grace_seconds: int | None = None,
        uid: str | None = None,
        version: str | None = None,
    ) -> None:
        """Deletes the object. Does nothing if it does not exist.

        :param propagation: What happens to the objects that it owns: `"background"`,
            `"foreground"` or `"orphan"`, as for `View.delete`.
        :param grace_seconds: The seconds that a pod has to terminate; 0 deletes it immediately.
        :param uid: Delete only the object with this UID; another raises `ConflictError`.
        :param version: Delete only this resource version; another raises `ConflictError`.
        """
    def watch(self) -> Watch[_Object_co]:
        """Watches changes to this object, after its version."""
    @overload
    def wait(self, until: Literal["deleted"], *, timeout: float | None = None) -> None:  # type: ignore[overload-overlap]
        """Waits until the object fulfils a condition, and returns its version then.

        :param until: `"ready"`, `"finished"`, `"deleted"`, the type of a condition, such as
            `"Available"`, or a function of the object, as for `View.wait`.
        :raises WaitTimeoutError: If the timeout expires; the message contains the last state.
        """
    @overload
    def wait(
        self, until: str | Callable[[Item[_Object_co]], object], *, timeout: float | None = None
    ) -> Item[_Object_co]: ...
    def owners(self) -> list[Item[dict[str, Any]]]:
        """The objects that own this one."""
    def children(self, view: View[_Other]) -> list[Item[_Other]]:
        """The objects of a view that this one owns."""
    def events(self) -> list[Item[Event]]:
        """The events about the object, oldest first."""
    def scale(self, replicas: int) -> int:
        """Sets the number of replicas, and returns it."""
    @overload
    def logs(
        self,
        *,
        container: str | None = None,
        all_containers: Literal[False] = False,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        timestamps: bool = False,
    ) -> Stream[str]:
        """The lines of a container's log. With `all_containers`, pairs of the container's name and
        the line.

        :param container: The container; required if the pod has several.
        :param all_containers: Read the logs of all containers at the same time.
        :param follow: Wait for further lines until the container terminates.
        :param previous: Read the log of the previous instance of the container, before its
            restart.
        :param tail_lines: Only this number of lines from the end.
        :param since_seconds: Only lines of the last seconds.
        :param timestamps: Begin each line with its time.
        """
    @overload
    def logs(
        self,
        *,
        container: str | None = None,
        all_containers: Literal[True],
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        timestamps: bool = False,
    ) -> Stream[tuple[str, str]]: ...
    def exec(
        self,
        command: Sequence[str],
        *,
        container: str | None = None,
        input: bytes | None = None,
        timeout: float | None = None,
    ) -> Output:
        """Runs a command in a container to its end. Returns a `longshore.Output`: exit code,
        standard output and standard error as bytes.

        :param container: The container; required if the pod has several.
        :param input: The standard input; default: none.
        :param timeout: The seconds after which the command must have ended. Then the connection to
            it is closed.
        :raises WaitTimeoutError: If the timeout expires.
        """
    def open_exec(self, command: Sequence[str], *, container: str | None = None, tty: bool = False) -> Session:
        """Starts a command in a container, and returns the `Session` with it.

        :param container: The container; required if the pod has several.
        :param tty: Run it in a terminal. Its standard error is then part of the standard
            output.
        """
    def attach(self, *, container: str | None = None, stdin: bool = False, tty: bool = False) -> Session:
        """Attaches to the main process of a container, and returns the `Session` with it.

        :param container: The container; required if the pod has several.
        :param stdin: Connect the standard input, which the container must have.
        :param tty: The container has a terminal.
        """
    def port_forward(self, port: int, *, local_port: int = 0) -> PortForward:
        """Forwards connections from a port of this machine to a port of the pod.

        :param local_port: The port of 127.0.0.1; default: a free one.
        """
    def copy_in(self, source: str | os.PathLike[str], target: str, *, container: str | None = None) -> Path:
        """Copies a file or folder of this machine into a container, which needs `tar`. Returns the
        path in the container.

        :param container: The container; required if the pod has several.
        """
    def copy_out(self, source: str, target: str | os.PathLike[str], *, container: str | None = None) -> Path:
        """Copies a file or folder of a container, which needs `tar`, to this machine. Returns the
        path here.

        :param container: The container; required if the pod has several.
        """
    def evict(self, *, grace_seconds: int | None = None) -> None:
        """Asks for the pod's eviction, which a PodDisruptionBudget may refuse.

        :param grace_seconds: The seconds that the pod has to terminate; default: those of the
            pod.
        """
    def __hash__(self) -> int: ...

class Watch(Generic[_Object_co]):
    """Changes to objects, in order, each exactly once. Iterating waits for the next change."""

    def next(self, timeout: float | None = None) -> _WatchEvent[_Object_co]:
        """The next change. Raises `WaitTimeoutError` if none occurs within the timeout."""
    def close(self) -> None:
        """Ends the watch, also for those who wait for a change."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _WatchEvent[_Object_co]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class _WatchEvent(WatchEvent, Generic[_Object_co]):
    """A ``WatchEvent`` of objects of one type. The class exists only for type checkers."""

    @property
    def item(  # pyright: ignore[reportIncompatibleVariableOverride]
        self,
    ) -> Item[_Object_co] | None: ...
    @property
    def items(  # pyright: ignore[reportIncompatibleVariableOverride]
        self,
    ) -> list[Item[_Object_co]] | None: ...

class Stream(Generic[_T]):
    """What arrives piece by piece, such as the lines of a log. ``next`` returns ``None`` at the end."""

    def next(self, timeout: float | None = None) -> _T | None:
        """The next element, or `None` at the end. Raises `WaitTimeoutError` if none arrives within
        the timeout.
        """
    def close(self) -> None:
        """Ends the iteration, also for those who wait."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _T: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Cache(Generic[_Object_co]):
    """A copy of a view's objects that a watch keeps up to date. Reading it sends no request.

    ``changes`` yields pairs: ``"UPSERT"`` with each object, first all that exist, or ``"GONE"`` with a
    deleted one. A slow reader gets the newest state of each object.
    """

    def get(self, name: str, namespace: str | None = None) -> Item[_Object_co] | None:
        """The object with this name, or `None`.

        :param namespace: The namespace of the object, if its kind has namespaces; default: that of
            the view.
        """
    def list(
        self, *, labels: _Selector | None = None, namespace: str | None = None
    ) -> builtins.list[Item[_Object_co]]:
        """The objects, or those that a label selector selects."""
    def changes(self) -> Stream[tuple[Literal["UPSERT", "GONE"], Item[_Object_co]]]:
        """The changes: first all objects as `UPSERT`, then each change. Only the newest state of
        an object is kept for a slow reader.
        """
    def __iter__(self) -> Iterator[Item[_Object_co]]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...

class Leadership:
    """The leadership of this process, of all that called ``lead`` with the same name.

    It is renewed in the background until ``resign``, the end of a ``with`` block, or until it is lost:
    ``lost`` waits for that, at most ``timeout`` seconds, and returns whether it is lost.
    """

    @property
    def identity(self) -> str:
        """The name of this process among those that want to lead."""
    @property
    def is_leading(self) -> bool:
        """Whether this process leads."""
    def lost(self, timeout: float | None = None) -> bool:
        """Waits until this process no longer leads. Returns whether it has lost the leadership.

        :param timeout: Return after this number of seconds at the latest.
        """
    def resign(self) -> None:
        """Releases the Lease, so that another process can lead at once."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Session:
    """The connection to a process in a container. ``read`` returns ``b""`` at the end of the output."""

    def write(self, data: bytes) -> None:
        """Sends bytes to the standard input."""
    def close_input(self) -> None:
        """Ends the standard input, so that the process reads its end."""
    def read(self, timeout: float | None = None) -> bytes:
        """The next bytes of the standard output; empty at its end. Raises `WaitTimeoutError` if there
        are none within the timeout.
        """
    def read_error(self, timeout: float | None = None) -> bytes:
        """The next bytes of the standard error; empty at its end, and with a terminal. Raises
        `WaitTimeoutError` if there are none within the timeout.
        """
    def resize(self, columns: int, rows: int) -> None:
        """Sets the size of the terminal."""
    def wait(self, timeout: float | None = None) -> int:
        """Closes the input, discards further output, and returns the exit code. Raises
        `WaitTimeoutError` if the process has not ended within the timeout; it can be waited for
        again.
        """

class PortForward:
    """A port of 127.0.0.1 that leads to a port of a pod, until ``close``."""

    @property
    def local_port(self) -> int:
        """The port of 127.0.0.1."""
    @property
    def problems(self) -> list[str]:
        """Why the last 100 connections that failed did, oldest first."""
    def close(self) -> None:
        """Closes the port and its connections."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Proxy:
    """Sends requests by path. ``longshore.kube.APIServerProxy`` wraps it."""

    def urljoin(self, path: Sequence[str]) -> str:
        """The URL of a path."""
    def request(
        self,
        method: str,
        path: Sequence[str],
        params: Sequence[tuple[str, str]],
        body: Any = None,
        kind: str | None = None,
    ) -> Any:
        """Sends a request with an optional JSON body, and returns the JSON of the response.
        A `PATCH` has a kind.
        """
    def watch(
        self,
        path: Sequence[str],
        params: Sequence[tuple[str, str]],
        fields: Sequence[tuple[str, str]] | None = None,
    ) -> Stream[dict[str, Any]]:
        """Watches a path; only events of objects with these values of fields are returned."""

class EmbeddedCluster:
    """A cluster in this process. With ``pods=False``, only the API server, for tests.

    ``nodes`` is the number of nodes, which all run their pods on this machine: ``longshore``,
    ``longshore-2`` and so on.
    Other programs connect to it with ``kubeconfig``. With a ``data_dir``, its objects persist.
    With a ``clock``, time stands still until ``advance``: it is the first time, or ``"manual"``
    for the current time. ``image_entrypoints`` has the command by image, for containers without a
    command, and ``image_users`` the user (``UID`` or ``UID:GID``), for containers without ``runAsUser``:
    pods are processes of this machine, which has no images.
    """

    def __init__(
        self,
        *,
        pods: bool = True,
        nodes: int = 1,
        data_dir: str | os.PathLike[str] | None = None,
        snapshot: Snapshot | None = None,
        clock: datetime | str | None = None,
        image_entrypoints: Mapping[str, str] | None = None,
        image_users: Mapping[str, str | int] | None = None,
    ) -> None: ...
    @property
    def cluster(self) -> Cluster:
        """An in-process connection to the cluster, without sockets."""
    @property
    def faults(self) -> Faults:
        """Faults of the server, for tests."""
    @property
    def url(self) -> str:
        """The URL of the server, a free port of 127.0.0.1."""
    @property
    def kubeconfig(self) -> Path:
        """The path of the kubeconfig for other clients and programs."""
    def snapshot(self) -> Snapshot:
        """Takes a snapshot of all objects, in microseconds for any number of objects.

        ``EmbeddedCluster(snapshot=...)`` starts another cluster with these objects, and
        ``restore`` returns to them.
        """
    def restore(self, snapshot: Snapshot) -> None:
        """Returns to a snapshot: all objects become those of the snapshot.

        Watches end with ``410 Expired``, so that clients list again; pods that are not in
        the snapshot end.
        """
    @property
    def now(self) -> datetime:
        """The time of the cluster's clock, in UTC."""
    def advance(self, seconds: float) -> datetime:
        """Advances a manual clock by some seconds, in one step. Returns the new time.

        Controllers and nodes then act on the new time, as on a change of an object: wait for
        what they do, or call ``settle``.
        """
    def settle(self, timeout: float = 30.0) -> None:
        """Waits until the controllers of the cluster have nothing to do at the current time of a
        manual clock. Containers run by the system's clock and are not awaited.

        :raises WaitTimeoutError: If controllers still have work to do after the timeout.
        """
    def stop(self) -> None:
        """Stops the pods and the cluster. Further calls do nothing."""
    def __enter__(self) -> EmbeddedCluster: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Replay:
    """The responses of a recording of ``longshore record``, without a cluster.

    Other programs connect to it with ``kubeconfig``. docs/recording.md describes which requests
    match.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        strict: bool = False,
        timing: bool = False,
        ignore_bodies: bool = False,
    ) -> None: ...
    @property
    def cluster(self) -> Cluster:
        """A client, with the namespace of the recording."""
    @property
    def url(self) -> str:
        """The URL of the server, a free port of 127.0.0.1."""
    @property
    def kubeconfig(self) -> Path:
        """The path of the kubeconfig for other clients and programs."""
    @property
    def served(self) -> int:
        """How many requests were answered from the recording."""
    @property
    def not_recorded(self) -> list[dict[str, Any]]:
        """The requests that were not recorded, each with ``request``, ``reason`` and ``count``."""
    @property
    def unused(self) -> list[str]:
        """The recorded requests that were not made."""
    def stop(self) -> None:
        """Stops the server. Further calls do nothing."""
    def __enter__(self) -> Replay: ...
    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None: ...

class Snapshot:
    """The objects of an embedded cluster at a point in time: see ``EmbeddedCluster.snapshot``."""

    @property
    def resource_version(self) -> str:
        """The resource version at which it was taken."""

class Faults:
    """Faults that an embedded cluster injects into requests. docs/faults.md describes the rules."""

    def add(self, rule: Mapping[str, Any]) -> str:
        """Adds a rule, with the fields that docs/faults.md describes. Returns its ID."""
    def fired(self, id: str) -> int:
        """How many requests a rule has affected."""
    def list(self) -> builtins.list[dict[str, Any]]:
        """The rules, with the counters `matched` and `fired`."""
    def remove(self, id: str) -> bool:
        """Removes a rule. Returns whether it existed."""
    def clear(self) -> None:
        """Removes all rules."""
    def expire_history(self) -> None:
        """Forgets old versions: clients in the middle of a list, or with an old watch, get 410."""

class ClusterSpec:
    """The tasks of a job and their addresses. It has the methods of ``tf.train.ClusterSpec``."""

    def __init__(self, cluster: Any) -> None: ...
    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Dense jobs are lists; sparse jobs are dicts that map indices to addresses. A job without
        tasks is an empty dict, as in TensorFlow.
        """
    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, sorted."""
    def num_tasks(self, job_name: str) -> int:
        """The number of tasks of a job."""
    def task_indices(self, job_name: str) -> list[int]:
        """The indices of the tasks of a job, in order."""
    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""
    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses by index, with `None` for indices without a task."""
    def as_cluster_def(self) -> Any:
        """TensorFlow's `ClusterDef` if TensorFlow is installed, and otherwise a dict with the
        same fields.
        """
    def __bool__(self) -> bool: ...
    def __hash__(self) -> int: ...

class Tasks:
    """The tasks of a job at one point in time. Iterating yields one dict per task."""

    def spec(self) -> ClusterSpec:
        """The addresses of the tasks."""
    def num_accelerators(self, task_type: str | None = None, task_id: int | None = None) -> dict[str, int]:
        """The accelerators of one task, or those that all tasks of a role have."""
    def master(self, task_type: str | None, task_id: int | None, rpc_layer: str) -> str:
        """The URL of a task."""
    def render(self, format: str, task_type: str | None = None, task_id: int | None = None) -> str:
        """The tasks in one of the formats of `longshore resolve`."""
    def variables(self, task_type: str, task_id: int) -> dict[str, str]:
        """The environment variables of one task for all frameworks."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...

class Resolver:
    """Queries a cluster for tasks. ``KubernetesClusterResolver`` wraps it."""

    def __init__(
        self,
        cluster: Cluster,
        mapping: Sequence[tuple[str, Sequence[_Selector]]],
        scope: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None: ...
    def tasks(self) -> Tasks: ...
    def unmatched(self, tasks: Tasks) -> list[tuple[str, str]]:
        """A sentence about each role without tasks."""
    def own_task(self) -> tuple[str, int]:
        """The role and index of the task in whose pod this process runs."""
    def accelerators(self) -> list[dict[str, Any]]:
        """The accelerators of each task, and their models."""
    def wait(self, needed: Mapping[str, int], timeout: float | None = None) -> Tasks:
        """Waits until each role has the number of tasks that it needs."""
    def watch(self) -> Generations: ...

class Generations:
    """The tasks after each change. ``next`` returns ``None`` if no change occurs within the timeout."""

    def next(self, timeout: float | None = None) -> Generation | None:
        """The next generation, or `None` if none arrives within the timeout."""
    def __iter__(self) -> Generations: ...
    def __next__(self) -> Generation: ...

class PipelineBackend:
    """Launches pipelines from configs in JSON. ``OrchestratorKubernetesBackend`` wraps it."""

    def __init__(self, parameters: Mapping[str, Any]) -> None: ...
    def create_job_object(self, config: str) -> dict[str, Any]:
        """The Job, as a dict."""
    def launch_job(self, config: str) -> Run: ...
    def run(self, repository: str | os.PathLike[str], config: str) -> Run:
        """Packs and uploads the repository, and launches the pipeline."""

class Run:
    """A launched run. ``longshore.Run`` and ``PipelineRun`` wrap it."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def tar_path(self) -> str | None:
        """The location of the uploaded code of a pipeline."""
    @property
    def warnings(self) -> list[str]: ...
    @property
    def packed(self) -> dict[str, Any] | None:
        """What was packed and what was left out."""
    def follow(self, *, logs: bool = True, timeout: float | None = None) -> Stream[dict[str, Any]]:
        """Follows the run to its end: its events, each a dict. Raises `WaitTimeoutError` if the first
        requests take longer than the timeout.
        """
    def why(self) -> dict[str, Any]:
        """The state of the run and its cause, as a dict."""
    def summary(self) -> dict[str, Any]:
        """The summary of the run in a list, as a dict."""
    def usage(self, series: bool = True) -> dict[str, Any]:
        """What the tasks use, as a dict."""
    def tag(self, changes: Sequence[tuple[str, str | None]]) -> None:
        """Changes tags: those without a value are removed."""
    def set_note(self, text: str | None = None) -> None:
        """Replaces the note, or removes it."""
    def compare(self, other: Run) -> dict[str, Any]:
        """What differs between this run and another one, as a dict."""
    def outputs(
        self, to: str | os.PathLike[str] | None = None, task: str | None = None, force: bool = False
    ) -> list[dict[str, Any]]:
        """The outputs of the tasks, each a dict; with a folder, writes the files to it."""
    def metrics(self, logs: bool = True) -> dict[str, Any]:
        """The last values of the metrics of the tasks, as a dict."""
    def sweep(self, logs: bool = True) -> dict[str, Any]:
        """The combinations of the sweep with their states and metrics, as a dict."""
    def retry(self) -> Run:
        """Runs the failed combinations of the sweep again."""
    def cancel(self) -> None:
        """Stops the run and keeps its record."""
    def remove(self) -> None:
        """Removes the run with its record."""

def launch(
    cluster: Cluster,
    folder: str | os.PathLike[str],
    *,
    command: str | Sequence[str],
    roles: Sequence[str],
    env: Sequence[str],
    cpu: str | None = None,
    memory: str | None = None,
    gpu: str | None = None,
    context: str | None = None,
    options: dict[str, Any],
) -> Run: ...
def selected_cluster(
    folder: str | os.PathLike[str], context: str | None = None, *, asyncio: bool = False
) -> tuple[Cluster, str | None]: ...
def find_run(cluster: Cluster, name: str, namespace: str | None = None, all_users: bool = False) -> Run: ...
def list_runs(
    cluster: Cluster,
    *,
    namespace: str | None,
    all_namespaces: bool,
    states: Sequence[str],
    tags: Sequence[tuple[str, str | None]],
    name: str | None,
    since: str | timedelta | datetime | None,
    mine: bool,
    all_users: bool,
    limit: int | None,
) -> list[tuple[Run, dict[str, Any]]]: ...
def settings_keys() -> list[str]: ...
def nearest(word: str, candidates: Sequence[str]) -> str | None: ...
def assemble(selected: Sequence[tuple[str, Sequence[Sequence[Any]]]], options: Mapping[str, Any]) -> Tasks: ...
def read_sagemaker(
    variables: Mapping[str, str], port: int
) -> tuple[ClusterSpec, tuple[str, int] | None, str | None, str | None, str]: ...
def read_slurm(
    variables: Mapping[str, str], jobs: Sequence[tuple[str, int]], port: int, tasks_per_node: int | None = None
) -> tuple[ClusterSpec, tuple[str, int] | None, str | None, str | None, str]: ...
def read_tf_config(text: str) -> tuple[ClusterSpec, tuple[str, int] | None, str | None, str | None, str]: ...
def check_label(key: str, value: str | None = None) -> None: ...
def quantity(text: str) -> float: ...
