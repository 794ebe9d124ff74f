//! Content negotiation: selects the shape of the response by the `Accept`
//! header. The first entry that can be served wins.

use http::{HeaderMap, header};

use crate::status_error::StatusError;

/// The shape of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The objects themselves.
    Object,
    /// Rows of a table, in this version of `meta.k8s.io`.
    Table(&'static str),
    /// Metadata only, in this version of `meta.k8s.io`.
    Metadata(&'static str),
    /// A list of metadata only, in this version of `meta.k8s.io`.
    MetadataList(&'static str),
    /// Aggregated discovery in this version.
    Discovery(&'static str),
}

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// The result of the negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Negotiated {
    pub(crate) shape: Shape,
    pub(crate) encoding: Encoding,
}

/// An entry of an `Accept` header.
#[derive(Debug, Clone, PartialEq)]
struct Clause {
    media_type: String,
    parameters: Vec<(String, String)>,
    quality: f32,
}

impl Clause {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next()?.to_ascii_lowercase();
        let parameters: Vec<(String, String)> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| {
                (
                    key.trim().to_ascii_lowercase(),
                    value.trim().trim_matches('"').to_owned(),
                )
            })
            .collect();
        let quality = parameters
            .iter()
            .find(|(key, _)| key == "q")
            .and_then(|(_, value)| value.parse().ok())
            .filter(|quality: &f32| quality.is_finite())
            .unwrap_or(1.0);
        Some(Self {
            media_type,
            parameters,
            quality,
        })
    }

    fn get(&self, key: &str) -> &str {
        self.parameters
            .iter()
            .find(|(k, _)| k == key)
            .map_or("", |(_, value)| value.as_str())
    }

    fn encoding(&self) -> Option<Encoding> {
        match self.media_type.as_str() {
            "application/json" | "*/*" | "application/*" => Some(Encoding::Json),
            "application/yaml" => Some(Encoding::Yaml),
            _ => None,
        }
    }

    fn shape(&self) -> Option<Shape> {
        let version = |known: &[&'static str]| known.iter().copied().find(|v| *v == self.get("v"));
        match (self.get("as"), self.get("g")) {
            ("", _) => Some(Shape::Object),
            ("Table", "meta.k8s.io") => version(&["v1", "v1beta1"]).map(Shape::Table),
            ("PartialObjectMetadata", "meta.k8s.io") => {
                version(&["v1", "v1beta1"]).map(Shape::Metadata)
            }
            ("PartialObjectMetadataList", "meta.k8s.io") => {
                version(&["v1", "v1beta1"]).map(Shape::MetadataList)
            }
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io") => {
                version(&["v2", "v2beta1"]).map(Shape::Discovery)
            }
            _ => None,
        }
    }
}

/// Returns the entries of `Accept` by preference; an absent or empty header
/// accepts anything. Like the real server, an invalid quality is 1, and an
/// entry with quality 0 comes last but counts.
fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|text| !text.trim().is_empty())
        .filter_map(Clause::parse)
        .collect();
    let says_nothing = headers
        .get_all(header::ACCEPT)
        .iter()
        .all(|value| value.as_bytes().trim_ascii().is_empty());
    if says_nothing {
        clauses.extend(Clause::parse("*/*"));
    }
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// Returns the first acceptable entry whose shape `serves` supports; 406 if no entry is acceptable.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    serves: impl Fn(Shape) -> bool,
) -> Result<Negotiated, StatusError> {
    clauses(headers)
        .iter()
        .find_map(|clause| {
            let wanted = Negotiated {
                encoding: clause.encoding()?,
                shape: clause.shape()?,
            };
            serves(wanted.shape).then_some(wanted)
        })
        .ok_or_else(StatusError::not_acceptable)
}

/// Returns true if `Accept` names any of `media_types`, before or after JSON.
pub(crate) fn asks_for(headers: &HeaderMap, media_types: &[&str]) -> bool {
    clauses(headers)
        .iter()
        .any(|clause| media_types.contains(&clause.media_type.as_str()))
}

/// Returns true if the client accepts gzip.
pub(crate) fn reads_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Clause::parse)
        .any(|clause| clause.quality > 0.0 && matches!(clause.media_type.as_str(), "gzip" | "*"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn ask(accept: &str) -> Option<Negotiated> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        negotiate(&headers, |shape| !matches!(shape, Shape::Discovery(_))).ok()
    }

    #[test]
    fn accept_headers_of_common_clients() {
        let json = |shape| {
            Some(Negotiated {
                shape,
                encoding: Encoding::Json,
            })
        };
        for (accept, expected) in [
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                json(Shape::Table("v1")),
            ),
            (
                "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
                json(Shape::Object),
            ),
            ("application/json;as=Table;v=v9;g=meta.k8s.io", None),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                json(Shape::Object),
            ),
            ("application/vnd.kubernetes.protobuf", None),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
                json(Shape::MetadataList("v1")),
            ),
            ("application/json;stream=watch", json(Shape::Object)),
            ("*/*", json(Shape::Object)),
            (
                "application/yaml",
                Some(Negotiated {
                    shape: Shape::Object,
                    encoding: Encoding::Yaml,
                }),
            ),
            ("text/html", None),
            (
                "application/yaml;q=0.5, application/json",
                json(Shape::Object),
            ),
            ("application/json;q=0", json(Shape::Object)),
            ("application/json;q=x", json(Shape::Object)),
            ("", json(Shape::Object)),
            (",,,", None),
            ("*", None),
        ] {
            assert_eq!(ask(accept), expected, "{accept}");
        }
        assert!(negotiate(&HeaderMap::new(), |_| true).is_ok());
    }

    proptest! {
        #[test]
        fn never_panics(text in "[ -~]{0,60}") {
            let _ = ask(&text);
        }
    }
}
