//! The error of a request that a policy denies.

use longshore_model::{Status, StatusCause, StatusDetails, StatusReason};

use crate::webhooks::{attributes::Attributes, message::Objects};

/// Returns the error of a request that is forbidden with a message.
pub(super) fn forbidden(attributes: &Attributes, objects: &Objects, message: &str) -> Status {
    let resource = &attributes.resource;
    let qualified = match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    };
    let name = name(attributes, objects);
    let mut status = Status::failure(
        StatusReason::Forbidden,
        format!("{qualified} {name:?} is forbidden: {message}"),
    );
    status.details = Some(StatusDetails {
        name,
        group: resource.group.clone(),
        kind: resource.plural.clone(),
        ..StatusDetails::default()
    });
    status
}

/// Adds a cause with a message.
pub(super) fn add_cause(status: &mut Status, message: String) {
    let details = status.details.get_or_insert_default();
    details.causes.push(StatusCause {
        message,
        ..StatusCause::default()
    });
}

fn name(attributes: &Attributes, objects: &Objects) -> String {
    let object = objects.object.as_ref();
    let text = |path: &str| {
        let text = object.and_then(|object| object.pointer(path)?.as_str());
        text.filter(|text| !text.is_empty())
    };
    let own = Some(attributes.name.as_str()).filter(|name| !name.is_empty());
    own.or_else(|| text("/metadata/name"))
        .or_else(|| text("/metadata/generateName"))
        .unwrap_or("Unknown")
        .to_owned()
}
