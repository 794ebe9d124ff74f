//! Fields that a body names twice: of JSON text only, where the last one
//! counts. Told as a warning, refused, or passed over, as `fieldValidation`
//! has it.

use http::HeaderMap;
use longshore_engine::{FieldValidation, WriteOptions};
use longshore_model::{KindInfo, StatusReason};
use longshore_schema::{duplicate_fields, unknown_fields};
use serde_json::Value;

use crate::{
    fault::{Fault, invalid},
    input,
};

/// The warnings about an object's body; 400 under `Strict`.
pub(super) fn in_object(
    headers: &HeaderMap,
    body: &[u8],
    kind: &KindInfo,
    options: &WriteOptions,
    object: &Value,
) -> Result<Vec<String>, Fault> {
    let is_json = matches!(input::media_type(headers).as_str(), "application/json" | "");
    if !is_json || options.field_validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let mut found = duplicate_fields(body);
    if found.is_empty() || options.field_validation != FieldValidation::Strict {
        return Ok(found);
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

/// The warnings about a patch's body; 422 under `Strict`.
pub(super) fn in_patch(body: &[u8], options: &WriteOptions) -> Result<Vec<String>, Fault> {
    if options.field_validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let found = duplicate_fields(body);
    if found.is_empty() || options.field_validation != FieldValidation::Strict {
        return Ok(found);
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
