//! Validation of Events.

use longshore_model::{CauseList, name};

use crate::{
    cause::Cause,
    json::{self, Object},
};

/// Maximum length of `reportingInstance`, `action` and `reason`, in bytes.
const MAX_FIELD_LENGTH: usize = 128;
/// Maximum length of `note`, in bytes.
const MAX_NOTE_LENGTH: usize = 1024;

/// Validates an Event. Its namespace must be the namespace of the object that it refers to.
pub(crate) fn object(event: &Object, causes: &mut CauseList) {
    if !json::text(event, "eventTime").is_empty() {
        return timed(event, causes);
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

/// Validates Events that have an `eventTime`, in both groups.
fn timed(event: &Object, causes: &mut CauseList) {
    let namespace = json::text(event, "metadata.namespace");
    let about = json::text(event, "involvedObject.namespace");
    if about.is_empty() && !matches!(namespace, "default" | "kube-system") {
        let why = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", about, why));
    }
    let controller = json::text(event, "reportingComponent");
    if controller.is_empty() {
        causes.push(Cause::required("reportingComponent", ""));
    }
    if controller.is_empty() {
        let why = "name part must be non-empty";
        causes.push(Cause::invalid("reportingComponent", controller, why));
    }
    if name::label_key(controller).is_err() {
        let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        causes.push(Cause::invalid("reportingComponent", controller, why));
    }
    for field in ["reportingInstance", "action", "reason"] {
        match json::text(event, field).len() {
            0 => causes.push(Cause::required(field, "")),
            length if length > MAX_FIELD_LENGTH => {
                let why = format!("can have at most {MAX_FIELD_LENGTH} characters");
                causes.push(Cause::invalid(field, "", &why));
            }
            _ => {}
        }
    }
    if json::text(event, "message").len() > MAX_NOTE_LENGTH {
        let why = format!("can have at most {MAX_NOTE_LENGTH} characters");
        causes.push(Cause::invalid("message", "", &why));
    }
}
