//! Responses: JSON, `Status` for errors, warnings, compression.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Body as _;
use serde_json::Value;

use crate::{
    body::{self, Body},
    limits,
    negotiate::{self, Encoding},
    pretty,
    status_error::StatusError,
};

/// The result of a handler.
pub(crate) type Reply = Result<Response<Body>, StatusError>;

/// Creates a response with a body of a media type.
pub(crate) fn with_type(code: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Creates a JSON response.
pub(crate) fn json(code: StatusCode, body: Body) -> Response<Body> {
    with_type(code, "application/json", body)
}

/// Serializes an object with its kind and version first, like Go.
pub(crate) fn ordered(object: &Value) -> Bytes {
    let fields = object.as_object().into_iter().flatten();
    let first = ["kind", "apiVersion", "metadata"];
    let rest = fields.filter(|(name, _)| !first.contains(&name.as_str()));
    let first = first
        .iter()
        .filter_map(|name| Some((*name, object.get(*name)?)));
    let all = first.chain(rest.map(|(name, value)| (name.as_str(), value)));
    let members: Vec<String> = all
        .map(|(name, value)| format!("{}:{value}", Value::from(name)))
        .collect();
    format!("{{{}}}", members.join(",")).into()
}

/// Creates a JSON response from a value.
pub(crate) fn value(code: StatusCode, value: &Value) -> Response<Body> {
    json(code, Body::line(value.to_string().into()))
}

/// Creates a response with a small complete document in the requested encoding.
pub(crate) fn document(code: StatusCode, encoding: Encoding, document: Bytes) -> Reply {
    match encoding {
        Encoding::Json => Ok(json(code, Body::line(document))),
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(&document).map_err(StatusError::internal)?;
            let text = longshore_model::yaml::write(&value);
            Ok(with_type(code, "application/yaml", Body::full(text)))
        }
    }
}

/// Creates the response for an error.
pub(crate) fn status_error(error: &StatusError) -> Response<Body> {
    let status = error.status();
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::to_vec(status).unwrap_or_default();
    let mut response = json(code, Body::line(body.into()));
    let seconds = status
        .details
        .as_ref()
        .map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(Ok(methods)) = error.allow().map(HeaderValue::from_str) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    warn(&mut response, error.warnings());
    response
}

/// Maximum number of characters of all warnings of a response before they are shortened, and of
/// each shortened warning (as in Kubernetes).
const MAX_WARNING_CHARACTERS: usize = 4096;
const SHORT_WARNING_CHARACTERS: usize = 256;

/// Adds `Warning` headers. Warnings are shortened if there are many.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let count = |text: &String| text.chars().count();
    let given = response.headers().get_all(header::WARNING).iter();
    let given: usize = given.map(HeaderValue::len).sum();
    let mut left = MAX_WARNING_CHARACTERS.saturating_sub(given);
    let fit = warnings.iter().map(count).sum::<usize>() <= left;
    for warning in warnings {
        let most = if fit {
            usize::MAX
        } else {
            SHORT_WARNING_CHARACTERS
        };
        let warning: String = warning.chars().take(most).collect();
        let Some(rest) = left.checked_sub(count(&warning)) else {
            return;
        };
        left = rest;
        let text: String = warning
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .flat_map(|c| {
                matches!(c, '"' | '\\')
                    .then_some('\\')
                    .into_iter()
                    .chain([c])
            })
            .collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// Indents a JSON response; streams are left unchanged.
pub(crate) fn indent(response: &mut Response<Body>) {
    let json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    if !response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(json)
    {
        return;
    }
    let body = std::mem::replace(response.body_mut(), Body::empty());
    *response.body_mut() = match body.into_chunks() {
        Ok(chunks) => Body::chunks(pretty::indent(chunks), None),
        Err(body) => body,
    };
}

/// Completes a response: adds common headers and compresses large bodies.
pub(crate) fn finish(response: &mut Response<Body>, request: &HeaderMap) {
    let large = response.body().size_hint().lower() >= limits::COMPRESS_FROM;
    let headers = response.headers_mut();
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert_with(|| HeaderValue::from_static("no-cache, private"));
    if large && !headers.contains_key(header::CONTENT_ENCODING) && negotiate::reads_gzip(request) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        let body = std::mem::replace(response.body_mut(), Body::empty());
        *response.body_mut() = match body.into_chunks() {
            Ok(chunks) => Body::chunks(body::gzip(chunks), None),
            Err(body) => body,
        };
    }
}
