//! The admission of a connection through a proxy, for which requests of each method are `CONNECT`.

use longshore_engine::Target;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde_json::json;

use crate::{
    call::Call,
    handlers::admission::{self, Place, RequestOptions},
    status_error::StatusError,
    webhooks::Operation,
};

/// Characters that a path cannot contain.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Executes admission on the options of a proxied request. Returns the path, which webhooks and
/// policies can change.
pub(in crate::handlers) async fn admit(
    call: &Call,
    target: &Target,
    path: Option<String>,
) -> Result<Option<String>, StatusError> {
    let place = Place {
        kind: &target.kind,
        namespace: target.namespace.as_deref(),
        name: &target.name,
        subresource: "proxy",
    };
    let admission = admission::of(call, &[Operation::Connect], place, RequestOptions::default);
    let Some(admission) = admission else {
        return Ok(path);
    };
    let kind = format!("{}ProxyOptions", target.kind.gvk.kind);
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    if let Some(path) = path.as_deref().filter(|path| !path.is_empty()) {
        options["path"] = percent_decode_str(path).decode_utf8_lossy().into();
    }
    let admitted = admission.admit(Operation::Connect, options.clone()).await?;
    if admitted["path"] == options["path"] {
        return Ok(path);
    }
    let changed = admitted["path"].as_str().unwrap_or_default();
    let slash = if changed.starts_with('/') { "" } else { "/" };
    Ok(Some(format!(
        "{slash}{}",
        utf8_percent_encode(changed, ESCAPED)
    )))
}
