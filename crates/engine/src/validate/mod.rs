//! Validation: what the rules of a kind refuse, each with the field's path and
//! the words the real server uses.

mod address;
mod at;
mod cause;
mod config;
mod definition;
mod job;
mod meta;
mod pod;
mod service;

use longshore_model::{KindInfo, StatusCause};

pub(crate) use cause::Cause;
pub(crate) use meta::deletion;

use crate::json::{self, Object};

/// What is wrong with an object by itself.
pub(crate) fn object(kind: &KindInfo, object: &Object) -> Vec<StatusCause> {
    let mut causes = meta::object(kind, object);
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Pod") => pod::object(object, &mut causes),
        ("", "Service") => service::object(object, &mut causes),
        ("", "Secret") => config::secret(object, &mut causes),
        ("", "ConfigMap") => config::config_map(object, &mut causes),
        ("", "Event") => event(object, &mut causes),
        ("batch", "Job") => job::object(object, &mut causes),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            definition::object(object, &mut causes);
        }
        ("coordination.k8s.io", "Lease") => lease(object, &mut causes),
        _ => {}
    }
    causes
}

/// What is wrong with a change.
pub(crate) fn change(kind: &KindInfo, before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = meta::change(before, after);
    match (&*kind.gvk.group, &*kind.gvk.kind) {
        ("", "Pod") => pod::change(before, after, &mut causes),
        ("", "Service") => service::change(before, after, &mut causes),
        ("", "Secret") => config::secret_change(before, after, &mut causes),
        ("", "ConfigMap") => config::config_map_change(before, after, &mut causes),
        ("batch", "Job") => job::change(before, after, &mut causes),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            definition::change(before, after, &mut causes);
        }
        _ => {}
    }
    causes
}

/// What is wrong with a change of the status.
pub(crate) fn status(kind: &KindInfo, before: &Object, after: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let _ = (kind, before, after, &mut causes);
    causes
}

/// An event is about an object of its own namespace.
fn event(event: &Object, causes: &mut Vec<StatusCause>) {
    if crate::events::is_timed(event) {
        return crate::events::timed(event, causes);
    }
    let namespace = json::text(event, "metadata.namespace");
    let about = json::text(event, "involvedObject.namespace");
    if about != namespace && !(about.is_empty() && namespace == "default") {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            about,
            "does not match event.namespace",
        ));
    }
}

fn lease(lease: &Object, causes: &mut Vec<StatusCause>) {
    for field in ["spec.leaseDurationSeconds", "spec.leaseTransitions"] {
        let least = i64::from(field == "spec.leaseDurationSeconds");
        if let Some(number) = json::number(lease, field).filter(|number| *number < least) {
            let rule = if least == 1 {
                "must be greater than 0"
            } else {
                "must be greater than or equal to 0"
            };
            causes.push(Cause::invalid(field, number, rule));
        }
    }
}
