//! Request bodies: read with a limit, decoded from JSON, YAML or protobuf, and
//! checked against the kind that the URL names.

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited, combinators::UnsyncBoxBody};
use longshore_engine::NESTING;
use longshore_model::{Gvk, KindInfo, StatusReason};
use longshore_schema::{parse, protobuf};
use serde_json::{Map, Value};

use crate::{
    duplicate_fields::DuplicateFields, limits, offload::offload, status_error::StatusError, yaml,
};

/// A request body of any origin.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// A request body ended prematurely.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BodyError(pub(crate) Box<dyn std::error::Error + Send + Sync>);

/// The error if the server has no memory left for a body.
#[derive(Debug, thiserror::Error)]
#[error("too many large requests are being received: try again")]
pub(crate) struct NoRoom;

/// Boxes a body of any type.
pub(crate) fn boxed<B>(body: B) -> RequestBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    body.map_err(|error| BodyError(error.into())).boxed_unsync()
}

/// The media types that an object may have.
const OBJECT_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// Reads a complete body.
pub(crate) async fn read(body: RequestBody) -> Result<Bytes, StatusError> {
    let limited = Limited::new(body, limits::REQUEST_BODY);
    let read = tokio::time::timeout(limits::BODY_TIME, limited.collect()).await;
    match read {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(StatusError::too_large(limits::REQUEST_BODY))
        }
        Ok(Err(error)) => match error.downcast_ref::<BodyError>() {
            Some(BodyError(inner)) if inner.is::<NoRoom>() => {
                Err(StatusError::too_many(inner.to_string()))
            }
            _ => Err(StatusError::bad_request(format!(
                "the request body could not be read: {error}"
            ))),
        },
        Err(_) => Err(StatusError::new(
            StatusReason::Timeout,
            "the request body did not arrive within a minute",
        )),
    }
}

/// Returns the media type of a request body without parameters; empty if the
/// client specifies none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return String::new();
    };
    let named = value.to_str().unwrap_or_default();
    let named = named.split(';').next().unwrap_or_default().trim();
    match named {
        // The header has a value that is not a media type.
        "" => "?".into(),
        named => named.to_ascii_lowercase(),
    }
}

/// Reads a body and decodes the object and its duplicate fields; `kind` is used
/// in messages. Large bodies are parsed on another thread, so that other
/// requests do not wait.
pub(crate) async fn object(
    headers: &HeaderMap,
    body: RequestBody,
    kind: &str,
) -> Result<(Value, DuplicateFields), StatusError> {
    let bytes = read(body).await?;
    let media_type = media_type(headers);
    if bytes.len() < limits::PARSE_OFFLOAD {
        return decode(&media_type, &bytes, kind);
    }
    let kind = kind.to_owned();
    offload(move || decode(&media_type, &bytes, &kind)).await?
}

/// Decodes an object and its duplicate fields by the media type.
pub(crate) fn decode(
    media_type: &str,
    body: &Bytes,
    kind: &str,
) -> Result<(Value, DuplicateFields), StatusError> {
    let unrecognized = |problem: String| {
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {problem} ({})",
            summary(body)
        ))
    };
    let mut duplicate_fields = DuplicateFields::default();
    let value: Value = match media_type {
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(body).map_err(|error| unrecognized(error.to_string()))?
        }
        media_type if yaml::is_named(media_type) => {
            let (value, found) = yaml::read(body).map_err(unrecognized)?;
            duplicate_fields = DuplicateFields::in_yaml(found);
            value
        }
        "application/json" | "" => {
            let (value, found) = parse(body).map_err(|error| {
                unrecognized(format!(
                    "couldn't get version/kind; json parse error: {}",
                    json_problem(&error)
                ))
            })?;
            duplicate_fields = DuplicateFields::in_object_text(found, body);
            value
        }
        _ => return Err(StatusError::unsupported_media_type(OBJECT_TYPES)),
    };
    let value = match value {
        // Like the real server, treat null as an empty object.
        Value::Null => Value::Object(Map::new()),
        Value::Object(fields) => match type_problem(&fields) {
            Some(problem) => return Err(unrecognized(problem)),
            None => Value::Object(fields),
        },
        other => {
            return Err(unrecognized(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into an object",
                type_word(&other)
            )));
        }
    };
    Ok((value, duplicate_fields))
}

/// Returns the error in the type of an object, if any.
fn type_problem(fields: &Map<String, Value>) -> Option<String> {
    for name in ["apiVersion", "kind"] {
        match fields.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                return Some(format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{name} of type string",
                    type_word(other)
                ));
            }
        }
    }
    let version = word(fields, "apiVersion");
    (version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {version}"))
}

fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the message of a JSON error; the most common ones use the wording of
/// Go's parser.
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if error.is_eof() {
        "unexpected end of JSON input".into()
    } else if text.starts_with("recursion limit exceeded") {
        format!("exceeded max depth: objects may be nested {NESTING} levels deep")
    } else {
        text
    }
}

/// Fills in the kind if the body omits it, and rejects a different kind.
pub(crate) fn check_kind(object: &mut Value, info: &KindInfo) -> Result<(), StatusError> {
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    let sent = Gvk::from_api_version(word(fields, "apiVersion"), word(fields, "kind"));
    let expected = info.api_version();
    let kind_differs = !sent.kind.is_empty() && sent.kind != info.gvk.kind;
    let version_differs = !sent.version.is_empty() && sent.api_version() != expected;
    if kind_differs {
        return Err(StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}",
            sent.kind, sent.version, info.gvk.kind
        )));
    }
    if version_differs {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            sent.api_version()
        )));
    }
    fields.insert("apiVersion".into(), expected.into());
    fields.insert("kind".into(), info.gvk.kind.as_ref().into());
    Ok(())
}

/// Like [`check_kind`], for custom kinds, whose objects must specify their
/// kind.
pub(crate) fn check_custom_kind(object: &mut Value, info: &KindInfo) -> Result<(), StatusError> {
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    let (version, name) = (&info.gvk.version, &info.gvk.kind);
    for (field, what) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if word(fields, field).is_empty() {
            return Err(StatusError::bad_request(format!(
                "{name} in version {version:?} cannot be handled as a {name}: Object '{what}' is missing in the body"
            )));
        }
    }
    let kind = word(fields, "kind").to_owned();
    if kind == info.gvk.kind {
        return check_kind(object, info);
    }
    let given = object["metadata"]["name"].as_str().unwrap_or_default();
    let cause = crate::status_error::invalid("kind", kind.as_str(), &format!("must be {name}"));
    let mut error = StatusError::new(
        StatusReason::Invalid,
        format!(
            "{kind}.{} {given:?} is invalid: kind: {}",
            info.gvk.group, cause.message
        ),
    );
    error.set_details(longshore_model::StatusDetails {
        name: given.to_owned(),
        group: info.gvk.group.to_string(),
        kind,
        causes: vec![cause],
        ..longshore_model::StatusDetails::default()
    });
    Err(error)
}

/// Rejects an object whose name or namespace differs from the URL.
pub(crate) fn check_name(
    object: &Value,
    name: &str,
    namespace: Option<&str>,
) -> Result<(), StatusError> {
    let field = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match field("name") {
        "" => {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        sent if sent != name => {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({sent}) does not match the name on the URL ({name})"
            )));
        }
        _ => {}
    }
    match (field("namespace"), namespace) {
        (sent, Some(namespace)) if !sent.is_empty() && sent != namespace => {
            Err(StatusError::bad_request(format!(
                "the namespace of the object ({sent}) does not match the namespace on the request ({namespace})"
            )))
        }
        _ => Ok(()),
    }
}

fn word<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the start of a body for error messages: text if it looks like JSON,
/// otherwise hexadecimal.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let start = &body[..body.len().min(SHOWN)];
    let text = match start.first() {
        None => return "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN {
        format!("{text} ...")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::kind::builtin;
    use serde_json::json;

    use super::*;

    fn message(result: Result<impl std::fmt::Debug, StatusError>) -> String {
        result.unwrap_err().status().message.clone()
    }

    #[test]
    fn kinds() {
        let pod = builtin("", "Pod").unwrap();
        let mut bare = json!({"metadata": {"name": "a"}});
        check_kind(&mut bare, pod).unwrap();
        assert_eq!(
            (&bare["kind"], &bare["apiVersion"]),
            (&json!("Pod"), &json!("v1"))
        );
        let wrong = |object: Value| message(check_kind(&mut object.clone(), pod));
        assert_eq!(
            wrong(json!({"kind": "Secret", "apiVersion": "v1"})),
            "Secret in version \"v1\" cannot be handled as a Pod"
        );
        assert_eq!(
            wrong(json!({"kind": "Pod", "apiVersion": "v2"})),
            "the API version in the data (v2) does not match the expected API version (v1)"
        );
    }

    #[test]
    fn names() {
        let object = json!({"metadata": {"name": "a", "namespace": "x"}});
        assert!(check_name(&object, "a", Some("x")).is_ok());
        assert!(
            message(check_name(&object, "b", None))
                .contains("(a) does not match the name on the URL (b)")
        );
        assert!(
            message(check_name(&object, "a", Some("y"))).contains("namespace on the request (y)")
        );
        assert!(message(check_name(&json!({}), "a", None)).contains("undeterminable"));
    }

    #[test]
    fn bodies() {
        let typed = |media_type: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, media_type.parse().unwrap());
            super::media_type(&headers)
        };
        assert_eq!(
            decode("", &Bytes::from_static(b"{}"), "Pod").unwrap().0,
            json!({})
        );
        assert_eq!(
            decode("", &Bytes::from_static(b"null"), "Pod").unwrap().0,
            json!({})
        );
        assert_eq!(
            decode("application/yaml", &Bytes::from_static(b"a: 1"), "Pod")
                .unwrap()
                .0,
            json!({"a": 1})
        );
        for other in ["text/html", ";;", " ; charset=utf-8"] {
            let refused = decode(&typed(other), &Bytes::from_static(b"{}"), "Pod").unwrap_err();
            assert_eq!(refused.status().code, 415, "{other}");
        }
        for (body, part) in [
            (&b"{x"[..], "({x)"),
            (b"", "unexpected end of JSON input (<empty>)"),
            (b"[]", "cannot unmarshal array"),
            (b"{\"kind\": 1}", "field .kind of type string"),
            (
                b"{\"apiVersion\": \"a/b/c\"}",
                "unexpected GroupVersion string: a/b/c",
            ),
            (b"\x00\x01", "(0001)"),
        ] {
            let json = typed("application/json; charset=utf-8");
            let message = message(decode(&json, &Bytes::copy_from_slice(body), "Pod"));
            assert!(
                message.contains("must be of type Pod") && message.contains(part),
                "{message}"
            );
        }
    }
}
