//! The query parameters of operations and their types.

/// A parameter: name, type, description.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

const DRY_RUN: Parameter = (
    "dryRun",
    "string",
    "`All` runs every stage of the request and keeps nothing.",
);
const FIELD_MANAGER: Parameter = (
    "fieldManager",
    "string",
    "The name of who makes the change, for managedFields.",
);
const FIELD_VALIDATION: Parameter = (
    "fieldValidation",
    "string",
    "What becomes of unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
);
const FORCE: Parameter = (
    "force",
    "boolean",
    "Apply takes over fields that another manager owns.",
);

/// Parameters of operations that read an object.
pub(super) const READ: &[Parameter] = &[];

/// Parameters of lists and watches.
pub(super) const LIST: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean", "Watches send bookmarks."),
    (
        "continue",
        "string",
        "The token of the next page, from the page before.",
    ),
    ("fieldSelector", "string", "Only objects with these fields."),
    ("labelSelector", "string", "Only objects with these labels."),
    ("limit", "integer", "The most objects of a page."),
    (
        "resourceVersion",
        "string",
        "The version to read, or to watch from.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion is meant: Exact or NotOlderThan.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "A watch begins with the objects that there are.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "The longest that the request may last.",
    ),
    (
        "watch",
        "boolean",
        "Answers with changes, instead of a list.",
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
        "How long the object may take to go, in seconds.",
    ),
    (
        "orphanDependents",
        "boolean",
        "Superseded by propagationPolicy.",
    ),
    (
        "propagationPolicy",
        "string",
        "What becomes of dependents: Background, Foreground or Orphan.",
    ),
];

/// Parameters of reading a log.
pub(super) const LOG: &[Parameter] = &[
    (
        "container",
        "string",
        "The container; may be left out if there is only one.",
    ),
    ("follow", "boolean", "Goes on until the container ends."),
    ("limitBytes", "integer", "The most bytes to send."),
    (
        "previous",
        "boolean",
        "The log of the container's run before this one.",
    ),
    ("sinceSeconds", "integer", "Only lines of the last seconds."),
    (
        "sinceTime",
        "string",
        "Only lines since a time, in RFC 3339.",
    ),
    ("tailLines", "integer", "Only the last lines."),
    ("timestamps", "boolean", "Each line begins with its time."),
];

/// Parameters of attach and exec.
pub(super) const ATTACH: &[Parameter] = &[
    (
        "container",
        "string",
        "The container; may be left out if there is only one.",
    ),
    ("stderr", "boolean", "Its standard error is wanted."),
    ("stdin", "boolean", "It is given standard input."),
    ("stdout", "boolean", "Its standard output is wanted."),
    ("tty", "boolean", "It has a terminal."),
];

/// Parameters of exec in addition to [`ATTACH`].
pub(super) const EXEC: &[Parameter] = &[(
    "command",
    "string",
    "The command, each word as a parameter of its own.",
)];

/// Parameters of port forwarding.
pub(super) const PORT_FORWARD: &[Parameter] = &[(
    "ports",
    "integer",
    "The ports, where the protocol does not name them later.",
)];
