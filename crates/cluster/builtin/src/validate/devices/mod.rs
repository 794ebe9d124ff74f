//! Validation of the kinds of resource.k8s.io. Expressions that select devices are
//! not compiled.

mod allocation;
mod claim;
mod requests;
mod slice;
mod taint;

use longshore_model::StatusCause;

pub(crate) use allocation::claim_status;
pub(crate) use claim::{claim, class, fixed_spec, template};
pub(crate) use slice::{slice, slice_change};
pub(crate) use taint::taint_rule;

use super::field_value::{Causes, FieldValue, element};
use crate::cause::Cause;

/// Maximum size of the parameters of a driver in bytes.
const MAX_PARAMETERS: usize = 10 << 10;

/// Reports a list with more than `limit` items.
fn at_most(list: &FieldValue<'_>, limit: usize, causes: &mut Causes<'_>) {
    if list.len() > limit {
        causes.0.push(too_many(list, limit));
    }
}

fn too_many(list: &FieldValue<'_>, limit: usize) -> StatusCause {
    let message = format!("Too many: {}: must have at most {limit} items", list.len());
    Cause::plain(&list.path, "FieldValueTooMany", message)
}

/// Requires a name that is a DNS subdomain.
fn subdomain(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    match name.text() {
        "" => causes.required(name, ""),
        _ => causes.subdomain(name),
    }
}

/// Requires the name of a pool: DNS subdomains, separated by slashes.
fn pool_name(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if name.text().is_empty() {
        return causes.required(name, "");
    }
    if name.text().len() > 253 {
        causes.0.push(Cause::too_long(&name.path, 253));
    }
    for part in name.text().split('/') {
        super::meta::subdomain(&name.path, part, causes.0);
    }
}

/// Validates the configuration of devices for a driver.
fn configuration(config: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        return causes.required(&opaque, "");
    }
    super::storage::driver_name(&opaque.get("driver"), causes);
    let parameters = opaque.get("parameters");
    match parameters.raw() {
        None => causes.required(&parameters, ""),
        Some(value) if !value.is_object() => {
            causes.0.push(Cause::invalid(
                &parameters.path,
                "<value omitted>",
                "must be a valid JSON object",
            ));
        }
        Some(value) if value.to_string().len() > MAX_PARAMETERS => {
            causes
                .0
                .push(Cause::too_long(&parameters.path, MAX_PARAMETERS));
        }
        Some(_) => {}
    }
}

/// Validates the qualified name of an attribute with its domain.
fn attribute(name: &FieldValue<'_>, causes: &mut Causes<'_>) {
    causes.qualified(name);
    if !name.text().contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        causes.invalid(name, detail);
    }
}

/// The path of an entry of a list.
fn index(list: &FieldValue<'_>, number: usize) -> String {
    element(&list.path, &number.to_string())
}
