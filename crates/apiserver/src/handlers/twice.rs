//! Fields that a body names twice: of JSON text only, where the last one
//! counts. Told as a warning, refused, or passed over, as `fieldValidation`
//! has it.

use longshore_engine::{FieldValidation, WriteOptions};
use longshore_model::{KindInfo, StatusReason};
use longshore_schema::unknown_fields;
use serde_json::Value;

use crate::fault::{Fault, invalid};

/// The warnings about an object in whose body these were `found`; 400 under
/// `Strict`.
pub(super) fn in_object(
    mut found: Vec<String>,
    kind: &KindInfo,
    options: &WriteOptions,
    object: &Value,
) -> Result<Vec<String>, Fault> {
    match options.field_validation {
        FieldValidation::Ignore => return Ok(Vec::new()),
        FieldValidation::Strict if !found.is_empty() => {}
        _ => return Ok(found),
    }
    // Both sorts of mistakes are told at once.
    found.extend(unknown_fields(&kind.gvk, object));
    let name = &kind.gvk.kind;
    Err(Fault::bad_request(format!(
        "{name} in version {:?} cannot be handled as a {name}: strict decoding error: {}",
        kind.gvk.version,
        found.join(", ")
    )))
}

/// The warnings about a patch in whose `body` these were `found`; 422 under
/// `Strict`.
pub(super) fn in_patch(
    found: Vec<String>,
    body: &[u8],
    options: &WriteOptions,
) -> Result<Vec<String>, Fault> {
    match options.field_validation {
        FieldValidation::Ignore => return Ok(Vec::new()),
        FieldValidation::Strict if !found.is_empty() => {}
        _ => return Ok(found),
    }
    let text = String::from_utf8_lossy(body);
    let why = format!("strict decoding error: {}", found.join(", "));
    let cause = invalid("patch", text, &why);
    let mut fault = Fault::new(
        StatusReason::Invalid,
        format!(" \"\" is invalid: patch: {}", cause.message),
    );
    fault.set_details(longshore_model::StatusDetails {
        causes: vec![cause],
        ..longshore_model::StatusDetails::default()
    });
    Err(fault)
}
