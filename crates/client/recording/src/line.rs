//! The lines of a recording. docs/recording.md describes the format.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::{Deserialize, Serialize};

use crate::{
    content::{Content, ContentFields},
    request::Request,
};

/// The version of the format.
pub(crate) const VERSION: u64 = 1;

/// Headers of responses that are recorded.
pub(crate) const RESPONSE_HEADERS: [&str; 4] =
    ["content-type", "location", "retry-after", "warning"];

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderLine {
    /// The version of the format.
    pub(crate) recording: u64,
    /// The namespace of the recorded context.
    pub(crate) namespace: String,
}

/// A line after the first: a request with its response, or a part of a stream.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// The number of the request, in the order in which requests arrived.
    pub(crate) id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<RequestFields>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<ResponseFields>,
    /// Milliseconds since the response began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<u64>,
    /// The content that the stream has sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sent: Option<ContentFields>,
    /// The side that ended the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<End>,
}

/// The side that ended a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum End {
    Server,
    Client,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestFields {
    method: String,
    path: String,
    /// `name=value`, decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    query: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<ContentFields>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseFields {
    status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<ContentFields>,
    /// True if the body follows in separate lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// The beginning of a response.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

/// The body of a response in a line.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    Whole(Option<Content>),
    Stream,
}

fn fields_of(content: Option<Content>) -> Option<ContentFields> {
    content.map(|content| Content::into_fields(Some(content)))
}

fn content_of(fields: Option<ContentFields>) -> Result<Option<Content>, String> {
    match fields {
        Some(fields) => fields.into_content(),
        None => Ok(None),
    }
}

impl Line {
    /// A request with its response.
    pub(crate) fn exchange(id: u64, request: &Request, head: &Head, body: ResponseBody) -> Self {
        let mut headers = BTreeMap::new();
        for name in RESPONSE_HEADERS {
            let values = head.headers.get_all(name).iter();
            let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
            if !values.is_empty() {
                let value = values.join(", ");
                let value = crate::secrets::redact_text(&value).unwrap_or(value);
                headers.insert(name.to_owned(), value);
            }
        }
        let (body, stream) = match body {
            ResponseBody::Whole(content) => (fields_of(content), false),
            ResponseBody::Stream => (None, true),
        };
        let response = ResponseFields {
            status: head.status.as_u16(),
            headers,
            body,
            stream,
        };
        Self {
            id,
            request: Some(RequestFields::of(request)),
            response: Some(response),
            ..Self::default()
        }
    }

    /// A part of a stream.
    pub(crate) fn sent(id: u64, after: u64, content: Content) -> Self {
        Self {
            id,
            after: Some(after),
            sent: fields_of(Some(content)),
            ..Self::default()
        }
    }

    /// The end of a stream.
    pub(crate) fn end(id: u64, after: u64, end: End) -> Self {
        Self {
            id,
            after: Some(after),
            end: Some(end),
            ..Self::default()
        }
    }
}

impl RequestFields {
    fn of(request: &Request) -> Self {
        let query = request.query.iter();
        Self {
            method: request.method.to_string(),
            path: request.path.clone(),
            query: query
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            headers: request.headers.clone(),
            body: fields_of(request.body.clone()),
        }
    }

    /// The request; the error is the problem.
    pub(crate) fn into_request(self) -> Result<Request, String> {
        let method = Method::from_bytes(self.method.as_bytes());
        let method = method.map_err(|_| format!("the method {:?} is not valid", self.method))?;
        if !self.path.starts_with('/') {
            return Err(format!("the path {:?} does not begin with /", self.path));
        }
        let query = self
            .query
            .into_iter()
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (pair, String::new()),
            });
        Ok(Request {
            method,
            path: self.path,
            query: query.collect(),
            headers: self.headers,
            body: content_of(self.body)?,
        })
    }
}

impl ResponseFields {
    /// The response; the error is the problem.
    pub(crate) fn into_response(self) -> Result<(Head, ResponseBody), String> {
        let status = StatusCode::from_u16(self.status).ok();
        // No client expects an informational status in place of a response.
        let status = status.filter(|status| !status.is_informational() || *status == 101);
        let status = status.ok_or_else(|| format!("the status {} is not valid", self.status))?;
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            if !RESPONSE_HEADERS.contains(&name.as_str()) {
                return Err(format!("the header {name:?} is not one that is recorded"));
            }
            let parsed = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(&value),
            );
            let (Ok(parsed_name), Ok(parsed_value)) = parsed else {
                return Err(format!("the header {name} is not valid"));
            };
            headers.insert(parsed_name, parsed_value);
        }
        let body = content_of(self.body)?;
        let body = match (self.stream, body) {
            (true, None) => ResponseBody::Stream,
            (true, Some(_)) => return Err("a stream has no body of its own".to_owned()),
            (false, body) => ResponseBody::Whole(body),
        };
        Ok((Head { status, headers }, body))
    }
}
