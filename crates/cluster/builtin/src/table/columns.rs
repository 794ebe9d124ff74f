//! The columns of each kind: name, type, format, priority, description.

use super::Column;

pub(crate) const fn column(
    name: &'static str,
    r#type: &'static str,
    format: &'static str,
    priority: u8,
    description: &'static str,
) -> Column {
    Column {
        name,
        r#type,
        format,
        priority,
        description,
    }
}

pub(crate) const NAME: Column = column(
    "Name",
    "string",
    "name",
    0,
    "The object's name, unique in its namespace and kind.",
);
pub(crate) const AGE: Column = column(
    "Age",
    "string",
    "",
    0,
    "How long ago the object was created.",
);

/// The default columns: name and age.
pub const ANY: &[Column] = &[NAME, AGE];

#[rustfmt::skip]
pub(crate) const POD: &[Column] = &[
    NAME,
    column("Ready", "string", "", 0, "Containers that are ready, of all that should be."),
    column("Status", "string", "", 0, "What the pod's containers are at, in one word."),
    column("Restarts", "string", "", 0, "How often the containers were restarted, and how long ago the last time was."),
    AGE,
    column("IP", "string", "", 1, "The pod's address."),
    column("Node", "string", "", 1, "The node that runs the pod."),
    column("Nominated Node", "string", "", 1, "The node that is being cleared for the pod."),
    column("Readiness Gates", "string", "", 1, "Readiness gates that have passed, of all."),
];

#[rustfmt::skip]
pub(crate) const JOB: &[Column] = &[
    NAME,
    column("Status", "string", "", 0, "What the job is at, in one word."),
    column("Completions", "string", "", 0, "Pods that succeeded, of those that must."),
    column("Duration", "string", "", 0, "How long the job took, or has been running."),
    AGE,
    column("Containers", "string", "", 1, "Names of the containers."),
    column("Images", "string", "", 1, "Images of the containers."),
    column("Selector", "string", "", 1, "Labels of the job's pods."),
];

#[rustfmt::skip]
pub(crate) const NODE: &[Column] = &[
    NAME,
    column("Status", "string", "", 0, "Whether the node is ready and takes pods."),
    column("Roles", "string", "", 0, "Roles, from the node's labels."),
    AGE,
    column("Version", "string", "", 0, "Version of the node's agent."),
    column("Internal-IP", "string", "", 1, "Address inside the cluster."),
    column("External-IP", "string", "", 1, "Address from outside."),
    column("OS-Image", "string", "", 1, "The operating system."),
    column("Kernel-Version", "string", "", 1, "The kernel's version."),
    column("Container-Runtime", "string", "", 1, "What runs the containers."),
];

#[rustfmt::skip]
pub(crate) const SERVICE: &[Column] = &[
    NAME,
    column("Type", "string", "", 0, "How the service is reached."),
    column("Cluster-IP", "string", "", 0, "Address inside the cluster."),
    column("External-IP", "string", "", 0, "Addresses from outside."),
    column("Port(s)", "string", "", 0, "Ports and their protocols."),
    AGE,
    column("Selector", "string", "", 1, "Labels of the pods behind the service."),
];

#[rustfmt::skip]
pub(crate) const NAMESPACE: &[Column] = &[
    NAME,
    column("Status", "string", "", 0, "The phase of the namespace's life."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const CONFIG_MAP: &[Column] = &[
    NAME,
    column("Data", "string", "", 0, "How many entries it holds."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const SECRET: &[Column] = &[
    NAME,
    column("Type", "string", "", 0, "What the secret is used for."),
    column("Data", "string", "", 0, "How many entries it holds."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const SERVICE_ACCOUNT: &[Column] = &[
    NAME,
    column("Secrets", "string", "", 0, "How many secrets it lists."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const EVENT: &[Column] = &[
    column("Last Seen", "string", "", 0, "How long ago it happened last."),
    column("Type", "string", "", 0, "Normal or Warning."),
    column("Reason", "string", "", 0, "Why, in one word."),
    column("Object", "string", "", 0, "The object it is about."),
    column("Subobject", "string", "", 1, "The part of the object it is about."),
    column("Source", "string", "", 1, "Who reported it."),
    column("Message", "string", "", 0, "What happened, for people."),
    column("First Seen", "string", "", 1, "How long ago it happened first."),
    column("Count", "string", "", 1, "How often it happened."),
    column("Name", "string", "name", 1, "The event's own name."),
];

#[rustfmt::skip]
pub(crate) const LEASE: &[Column] = &[
    NAME,
    column("Holder", "string", "", 0, "Who holds the lease."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const DEFINITION: &[Column] = &[
    NAME,
    column("Created At", "date", "", 0, "When the definition was made."),
];
