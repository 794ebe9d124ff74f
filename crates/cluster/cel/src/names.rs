//! Names with a meaning in the expressions of policies.

/// The variable with which expressions check permissions.
pub(crate) const AUTHORIZER: &str = "authorizer";
/// The check of the request itself, a variable whose name has a dot.
pub(crate) const REQUEST_RESOURCE: &str = "requestResource";
/// The type of objects that expressions construct, and the start of the names of the
/// types of their fields.
pub(crate) const OBJECT: &str = "Object";
/// The type of the operations of JSON patches that expressions construct.
pub(crate) const JSON_PATCH: &str = "JSONPatch";
