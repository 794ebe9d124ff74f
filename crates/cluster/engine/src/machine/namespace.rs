//! Rules of namespaces: may objects be created in a namespace, and is it protected?

use longshore_model::{KindInfo, StatusCause};

use crate::{Error, Subject, state::State};

/// Checks that an object may be created in a namespace: it exists and is not
/// terminating.
pub(crate) fn check(
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
        .field(&kinds.entry(id).rules, "status.phase")
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

/// Returns true if a namespace must not be deleted.
pub(super) fn is_protected(name: &str) -> bool {
    matches!(name, "default" | "kube-system" | "kube-public")
}
