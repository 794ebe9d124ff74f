//! Bodies as they are recorded: JSON as JSON, other text as text, and the rest in base64; all
//! without secrets. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use longshore_model::yaml;
use longshore_schema::protobuf;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    json::Json,
    resource::Sensitivity,
    secrets::{contains_token, redact, redact_text},
};

/// The content of a body, of an event of a watch, or of a part of a log.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Json(Box<RawValue>),
    Text(String),
    Bytes(Bytes),
    /// Content that was not recorded, with the reason.
    Omitted(String),
}

/// The fields of a content in the file; at most one is set.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) omitted: Option<String>,
}

impl Content {
    /// The content of a body with a media type, without secrets; `None` for an empty body.
    pub(crate) fn of(body: &[u8], media_type: &str, sensitivity: Sensitivity) -> Option<Self> {
        if body.is_empty() {
            return None;
        }
        if let Some(json) = decode(body, media_type) {
            let mut redacted = json.clone();
            redact(&mut redacted, sensitivity);
            // Text that happens to be JSON, such as the line of a log, is not changed.
            let is_text = !is_declared(body, media_type);
            if is_text && sensitivity == Sensitivity::None && redacted == json {
                return Some(Self::Text(String::from_utf8_lossy(body).into_owned()));
            }
            let raw = serde_json::to_string(&redacted).and_then(RawValue::from_string);
            if let Ok(raw) = raw {
                return Some(Self::Json(raw));
            }
        }
        if sensitivity != Sensitivity::None {
            return Some(Self::Omitted(
                "the format of the body is unknown, and it may contain a secret".to_owned(),
            ));
        }
        match std::str::from_utf8(body) {
            Ok(text) => Some(Self::Text(
                redact_text(text).unwrap_or_else(|| text.to_owned()),
            )),
            Err(_) if contains_token(body) => Some(Self::Omitted(
                "the format of the body is unknown, and it contains a token".to_owned(),
            )),
            Err(_) => Some(Self::Bytes(Bytes::copy_from_slice(body))),
        }
    }

    /// The content of a body that exceeds the limit.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::Omitted(format!("it has more than {limit} bytes (--body-limit)"))
    }

    /// Returns the bytes to send. JSON ends with a newline, as in Kubernetes.
    pub(crate) fn to_bytes(&self) -> Bytes {
        match self {
            Self::Json(raw) => Bytes::from(format!("{}\n", raw.get())),
            Self::Text(text) => Bytes::from(text.clone()),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Omitted(_) => Bytes::new(),
        }
    }

    /// The value, if it is JSON.
    pub(crate) fn value(&self) -> Option<Value> {
        match self {
            Self::Json(raw) => serde_json::from_str(raw.get()).ok(),
            _ => None,
        }
    }

    pub(crate) fn into_fields(content: Option<Self>) -> ContentFields {
        let mut fields = ContentFields::default();
        match content {
            Some(Self::Json(raw)) => fields.json = Some(raw),
            Some(Self::Text(text)) => fields.text = Some(text),
            Some(Self::Bytes(bytes)) => fields.base64 = Some(STANDARD.encode(bytes)),
            Some(Self::Omitted(reason)) => fields.omitted = Some(reason),
            None => {}
        }
        fields
    }
}

impl ContentFields {
    /// The content; the error is the problem.
    pub(crate) fn into_content(self) -> Result<Option<Content>, String> {
        let json = self.json.map(Content::Json);
        let text = self.text.map(Content::Text);
        let bytes = match self.base64.map(|text| STANDARD.decode(text)) {
            Some(Ok(bytes)) => Some(Content::Bytes(bytes.into())),
            Some(Err(_)) => return Err("base64 is not valid".to_owned()),
            None => None,
        };
        let omitted = self.omitted.map(Content::Omitted);
        let mut found = [json, text, bytes, omitted].into_iter().flatten();
        match (found.next(), found.next()) {
            (_, Some(_)) => {
                Err("expected at most one of json, text, base64 and omitted".to_owned())
            }
            (content, None) => Ok(content),
        }
    }
}

/// Returns true if a body is declared to be JSON, or a format that is recorded as JSON.
fn is_declared(body: &[u8], media_type: &str) -> bool {
    media_type.contains("json") || media_type.contains("yaml") || protobuf::is_protobuf(body)
}

/// The JSON of a body in JSON, YAML or Kubernetes' protobuf.
fn decode(body: &[u8], media_type: &str) -> Option<Json> {
    if protobuf::is_protobuf(body) {
        return protobuf::decode(body).ok().map(Json::from);
    }
    if let Ok(json) = serde_json::from_slice(body) {
        return Some(json);
    }
    if media_type.contains("yaml") && yaml::check(body).is_ok() {
        let json = serde_yaml_ng::from_slice(body).ok();
        return json.filter(|json| matches!(json, Json::Object(_) | Json::List(_)));
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(body: &[u8], media_type: &str, sensitivity: Sensitivity) -> ContentFields {
        Content::into_fields(Content::of(body, media_type, sensitivity))
    }

    #[test]
    fn bodies_are_readable_where_possible() {
        let plain = Sensitivity::None;
        let json = of(b"{\"b\":1, \"a\":2}\n", "application/json", plain);
        assert_eq!(json.json.unwrap().get(), r#"{"b":1,"a":2}"#);
        let yaml = of(b"b: 1\na: x\n", "application/apply-patch+yaml", plain);
        assert_eq!(yaml.json.unwrap().get(), r#"{"b":1,"a":"x"}"#);
        assert_eq!(of(b"ok", "text/plain", plain).text.unwrap(), "ok");
        for log in ["1\n", "{\"a\": 1}\n", "[1,  2]"] {
            let text = of(log.as_bytes(), "text/plain", plain).text;
            assert_eq!(text.unwrap(), log);
        }
        assert_eq!(of(b"\xff\x00", "", plain).base64.unwrap(), "/wA=");
        assert!(Content::of(b"", "application/json", plain).is_none());
    }

    #[test]
    fn protobuf_is_decoded() {
        // A ConfigMap with the name "a".
        let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a";
        let media_type = "application/vnd.kubernetes.protobuf";
        let json = of(body, media_type, Sensitivity::None).json.unwrap();
        let value: Value = serde_json::from_str(json.get()).unwrap();
        assert_eq!(value["metadata"]["name"], "a");
        assert_eq!(value["kind"], "ConfigMap");
    }

    #[test]
    fn a_secret_in_an_unknown_format_is_not_recorded() {
        for body in [&b"password"[..], b"\xff\x00", b"k8s\0broken"] {
            let fields = of(body, "application/cbor", Sensitivity::Secret);
            assert!(fields.omitted.is_some() && fields.text.is_none());
            assert!(fields.base64.is_none() && fields.json.is_none());
        }
    }

    #[test]
    fn json_with_a_secret_is_redacted_also_if_it_is_not_declared() {
        let body = br#"{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}"#;
        for media_type in ["", "text/plain", "application/x-www-form-urlencoded"] {
            let json = of(body, media_type, Sensitivity::None).json.unwrap();
            assert_eq!(json.get(), r#"{"kind":"Secret","data":{"a":"REDACTED"}}"#);
        }
    }

    #[test]
    fn yaml_of_a_secret_is_redacted() {
        let body = b"kind: Secret\nstringData: {a: hunter2}\n";
        let json = of(body, "application/yaml", Sensitivity::Secret).json;
        assert!(!json.unwrap().get().contains("hunter2"));
    }
}
