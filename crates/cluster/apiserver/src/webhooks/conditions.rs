//! Match conditions of webhooks: CEL expressions that decide whether a webhook is called. Match
//! conditions of webhooks are evaluated only here.

use longshore_cel::{AdmissionInputs, Matched};
use serde_json::Value;

use super::{
    attributes::{Attributes, Operation, Resource},
    configuration::Webhook,
    message::{self, Objects},
};

/// Returns true if the conditions of a webhook match a request.
///
/// # Errors
/// A condition has no value. The webhook's failure policy decides whether the request is refused or
/// the webhook is not called.
pub(super) fn matches(
    webhook: &Webhook,
    operation: Operation,
    attributes: &Attributes,
    resource: &Resource,
    objects: &Objects,
) -> Result<bool, String> {
    let Some(conditions) = &webhook.conditions else {
        return Ok(true);
    };
    let request = Value::Object(message::request(attributes, operation, resource));
    let inputs = AdmissionInputs {
        request: Some(&request),
        object: objects.object.as_ref(),
        old_object: objects.old_object.as_ref(),
        authorizer: Some(attributes.authorization()),
        ..AdmissionInputs::default()
    };
    match conditions.evaluate(&inputs) {
        Matched::Yes => Ok(true),
        Matched::No { .. } => Ok(false),
        Matched::Unknown { error } => Err(error),
    }
}
