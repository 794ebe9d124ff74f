//! Rules of namespaces: what may be made in them, and which stay.

use longshore_model::{KindInfo, StatusCause};

use crate::{Error, Subject, state::State};

/// Whether an object may be made in a namespace: it is there, and stays.
pub(super) fn check(
    state: &State,
    kind: &KindInfo,
    namespace: &str,
    name: &str,
) -> Result<(), Error> {
    let kinds = &state.kinds;
    let Some(id) = kinds.builtin_id("", "Namespace") else {
        return Ok(());
    };
    let info = &kinds.entry(id).info;
    let Some(object) = state.table(id).objects.get(namespace) else {
        return Err(Error::NotFound(Subject::new(info, namespace)));
    };
    let terminating = object
        .field(&kinds.entry(id).facts, "status.phase")
        .as_deref()
        == Some("Terminating");
    if !terminating {
        return Ok(());
    }
    Err(Error::Forbidden {
        subject: Subject::new(kind, name),
        reason: format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        ),
        causes: vec![StatusCause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        }],
    })
}

/// Whether a namespace must stay forever.
pub(super) fn is_protected(name: &str) -> bool {
    matches!(name, "default" | "kube-system" | "kube-public")
}
