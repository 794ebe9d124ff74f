//! Query strings, decoded once, and the rules by which parameters are read.

use std::num::{IntErrorKind, ParseIntError};

use percent_encoding::percent_decode_str;

use crate::{fault::Fault, route::has_sound_escapes};

/// The parameters of a request, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query string. As by the real server, a part with a percent
    /// sign that begins no escape, or with a semicolon, is as good as not
    /// there; what is no UTF-8 is refused.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Fault> {
        let decode = |part: &str| {
            percent_decode_str(&part.replace('+', " "))
                .decode_utf8()
                .map(|text| text.into_owned())
                .map_err(|_| {
                    Fault::bad_request(format!("query parameter {part:?} is no UTF-8 text"))
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

    /// The first value of `key`, also when empty.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of `key` that says anything.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.first(key).filter(|value| !value.is_empty())
    }

    /// All values of `key`.
    pub(crate) fn all(&self, key: &str) -> Vec<String> {
        self.0
            .iter()
            .filter(|(k, _)| k == key)
            .map(|(_, value)| value.clone())
            .collect()
    }

    /// A truth: present means true, unless it says `false` or `0`.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let value = self.first(key)?;
        Some(value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number. A parameter that says nothing is wrong, too, as by the
    /// real server.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, Fault> {
        let Some(text) = self.first(key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Fault::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_clients_send() {
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
    fn flags_are_false_only_when_they_say_so() {
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
    fn bad_numbers_are_refused() {
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
            let fault = Query::parse(Some(text))
                .unwrap()
                .number("limit")
                .unwrap_err();
            assert_eq!(
                (fault.status().code, &*fault.status().message),
                (400, message)
            );
        }
    }

    #[test]
    fn broken_parts_are_not_there() {
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
