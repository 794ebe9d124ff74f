//! The query parameters of operations and their types.

/// A parameter: name, type, description.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "When present, indicates that modifications should not be persisted. Valid values are: All: all dry run stages will be processed.",
);
const FIELD_MANAGER: Parameter = (
    "fieldManager",
    "string",
    "The name of the actor or entity that makes the changes, for managedFields. The value must have at most 128 characters.",
);
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "How the server handles unknown and duplicate fields in the object. Valid values are: Ignore, Warn (the default), and Strict.",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Forces apply requests. The user will re-acquire conflicting fields owned by other managers. Must be unset for non-apply patch requests.",
);

/// Parameters of operations that read an object.
pub(super) const READ: &[Parameter] = &[];

/// Parameters of lists and watches.
pub(super) const LIST: &[Parameter] = &[
    (
        "allowWatchBookmarks",
        "boolean",
        "Requests watch events with type BOOKMARK.",
    ),
    (
        "continue",
        "string",
        "The continue token of a previous list response. The server returns the next page of that list.",
    ),
    (
        "fieldSelector",
        "string",
        "A selector to restrict the list of returned objects by their fields. Defaults to everything.",
    ),
    (
        "labelSelector",
        "string",
        "A selector to restrict the list of returned objects by their labels. Defaults to everything.",
    ),
    (
        "limit",
        "integer",
        "The maximum number of objects to return for a list call. If more objects exist, the response contains a continue token.",
    ),
    (
        "resourceVersion",
        "string",
        "Sets a constraint on what resource versions a request may be served from.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "Determines how resourceVersion is applied to list calls: Exact or NotOlderThan.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "If true, a watch begins with synthetic ADDED events for all current objects, followed by a bookmark.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "Timeout for the list or watch call. This limits the duration of the call, regardless of any activity or inactivity.",
    ),
    (
        "watch",
        "boolean",
        "Watch for changes to the described resources and return them as a stream of add, update, and remove notifications.",
    ),
];

/// Parameters of create and replace.
pub(super) const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

/// Parameters of patches.
pub(super) const PATCH: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];

/// Parameters of deletes.
pub(super) const DELETE: &[Parameter] = &[
    DRY_RUN,
    (
        "gracePeriodSeconds",
        "integer",
        "The duration in seconds before the object should be deleted. Zero means delete immediately. Defaults to a per-object value if not specified.",
    ),
    (
        "orphanDependents",
        "boolean",
        "Deprecated: use propagationPolicy. Whether dependent objects should be orphaned.",
    ),
    (
        "propagationPolicy",
        "string",
        "Whether and how garbage collection will be performed. Acceptable values are: Orphan, Background, and Foreground.",
    ),
];

/// Parameters of reading a log.
pub(super) const LOG: &[Parameter] = &[
    (
        "container",
        "string",
        "The container for which to stream logs. Defaults to the only container if there is one container in the pod.",
    ),
    (
        "follow",
        "boolean",
        "Follow the log stream of the pod. Defaults to false.",
    ),
    (
        "limitBytes",
        "integer",
        "The maximum number of bytes to read from the server before terminating the log output.",
    ),
    (
        "previous",
        "boolean",
        "Return previous terminated container logs. Defaults to false.",
    ),
    (
        "sinceSeconds",
        "integer",
        "A relative time in seconds before the current time from which to show logs.",
    ),
    (
        "sinceTime",
        "string",
        "An RFC 3339 timestamp from which to show logs.",
    ),
    (
        "tailLines",
        "integer",
        "The number of lines from the end of the logs to show.",
    ),
    (
        "timestamps",
        "boolean",
        "If true, add an RFC 3339 timestamp at the beginning of every line of log output. Defaults to false.",
    ),
];

/// Parameters of attach and exec.
pub(super) const ATTACH: &[Parameter] = &[
    (
        "container",
        "string",
        "The container in which to execute the command. Defaults to the only container if there is only one container in the pod.",
    ),
    (
        "stderr",
        "boolean",
        "Redirect the standard error stream of the container for this call.",
    ),
    (
        "stdin",
        "boolean",
        "Redirect the standard input stream of the container for this call.",
    ),
    (
        "stdout",
        "boolean",
        "Redirect the standard output stream of the container for this call.",
    ),
    (
        "tty",
        "boolean",
        "If true, a TTY is allocated for the call. Defaults to false.",
    ),
];

/// Parameters of exec in addition to [`ATTACH`].
pub(super) const EXEC: &[Parameter] = &[(
    "command",
    "string",
    "The remote command to execute: one parameter per argument. Not executed within a shell.",
)];

/// Parameters of port forwarding.
pub(super) const PORT_FORWARD: &[Parameter] = &[(
    "ports",
    "integer",
    "List of ports to forward. Required when using WebSockets.",
)];
