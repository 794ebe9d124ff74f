//! Query strings, decoded once, and the parsing rules of parameters.

use std::num::{IntErrorKind, ParseIntError};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{route::has_sound_escapes, status_error::StatusError};

/// The parameters of a request, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query string. Like the real server, ignores a part with an
    /// invalid escape or a semicolon, and rejects text that is not UTF-8.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, StatusError> {
        let decode = |part: &str| {
            percent_decode_str(&part.replace('+', " "))
                .decode_utf8()
                .map(|text| text.into_owned())
                .map_err(|_| {
                    StatusError::bad_request(format!("query parameter {part:?} is not UTF-8 text"))
                })
        };
        text.unwrap_or_default()
            .split('&')
            .filter(|part| !part.is_empty() && !part.contains(';') && has_sound_escapes(part))
            .map(|part| {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                Ok((decode(key)?, decode(value)?))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Appends the query to a path.
    pub(crate) fn append_to(&self, path: &mut String) {
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        for (index, (key, value)) in self.0.iter().enumerate() {
            path.push(if index == 0 { '?' } else { '&' });
            path.extend(encode(key));
            path.push('=');
            path.extend(encode(value));
        }
    }

    /// Returns the first value of `key`, even if it is empty.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the first non-empty value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.first(key).filter(|value| !value.is_empty())
    }

    /// Returns all values of `key`.
    pub(crate) fn all(&self, key: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(k, _)| k == key)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// Replaces all values of `key`.
    pub(crate) fn set(&mut self, key: &str, values: Vec<String>) {
        self.0.retain(|(known, _)| known != key);
        let values = values.into_iter();
        self.0.extend(values.map(|value| (key.to_owned(), value)));
    }

    /// Parses a boolean: a present parameter is true unless its value is
    /// `false` or `0`.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let value = self.first(key)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Parses an integer. Like the real server, rejects an empty value.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, StatusError> {
        let Some(text) = self.first(key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            StatusError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn query_strings_of_common_clients() {
        let query = Query::parse(Some(
            "labelSelector=a%3Db%2Cc+in+%28d%29&watch&x=&limit=5&dryRun=All&dryRun=None",
        ))
        .unwrap();
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(query.flag("watch"), Some(true));
        assert_eq!(query.flag("nope"), None);
        assert_eq!((query.first("x"), query.get("x")), (Some(""), None));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.all("dryRun"), ["All", "None"]);
    }

    #[test]
    fn flags_are_false_only_for_false_and_0() {
        for (text, expected) in [
            ("false", false),
            ("False", false),
            ("0", false),
            ("true", true),
            ("x", true),
        ] {
            assert_eq!(
                Query::parse(Some(&format!("f={text}"))).unwrap().flag("f"),
                Some(expected)
            );
        }
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        for (text, message) in [
            (
                "limit=many",
                "strconv.ParseInt: parsing \"many\": invalid syntax",
            ),
            ("limit=", "strconv.ParseInt: parsing \"\": invalid syntax"),
            (
                "limit=99999999999999999999",
                "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            let error = Query::parse(Some(text))
                .unwrap()
                .number("limit")
                .unwrap_err();
            assert_eq!(
                (error.status().code, &*error.status().message),
                (400, message)
            );
        }
    }

    #[test]
    fn invalid_parts_are_ignored() {
        let query = Query::parse(Some("%zz&a=%z&b;c=1&&=&d=%")).unwrap();
        assert_eq!(query.all(""), [""]);
        for key in ["a", "b", "c", "d", "%zz"] {
            assert_eq!(query.first(key), None, "{key}");
        }
        assert!(Query::parse(Some("a=%ff")).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,80}") {
            let _ = Query::parse(Some(&text));
        }
    }
}
