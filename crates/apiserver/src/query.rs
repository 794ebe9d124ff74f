//! Query strings, decoded once, and the rules by which parameters are read.

use percent_encoding::percent_decode_str;

use crate::fault::Fault;

/// The parameters of a request, in order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query string; what is no UTF-8 is refused.
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
            .filter(|part| !part.is_empty())
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

    /// A whole number.
    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>, Fault> {
        let Some(text) = self.get(key) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            Fault::bad_request(format!(
                "invalid query parameter {key}: parsing {text:?}: invalid syntax"
            ))
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
        let query = Query::parse(Some("limit=many")).unwrap();
        assert_eq!(query.number("limit").unwrap_err().status().code, 400);
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,80}") {
            let _ = Query::parse(Some(&text));
        }
    }
}
