//! Finds duplicate fields in JSON text. Parsing to a `Value` loses them, so the
//! text is searched.
//!
//! If the type of the object is known, unknown fields are reported as well, in
//! the order of the text.

use std::{collections::HashSet, fmt};

use longshore_model::{Gvk, MessageList};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::{
    graph::{Shape, TypeRef},
    registry,
};

/// The duplicate fields of a JSON text, with the messages of API servers:
/// `duplicate field "spec.foo"`. Returns none for invalid JSON, which the
/// parser reports.
pub(crate) fn duplicate_fields(json: &[u8]) -> Vec<String> {
    search(json, None)
}

/// The duplicate and unknown fields of a JSON text in the order of the text, as
/// the strict decoder of Kubernetes reports them. Each is reported once. For
/// kinds that are not built in, only duplicates are reported.
///
/// ```
/// use longshore_model::Gvk;
/// let pod = br#"{"spec": {"colour": "red", "nodeName": "a", "nodeName": "b"}}"#;
/// assert_eq!(
///     longshore_schema::strict_mistakes(&Gvk::from_api_version("v1", "Pod"), pod),
///     [r#"unknown field "spec.colour""#, r#"duplicate field "spec.nodeName""#],
/// );
/// ```
#[must_use]
pub fn strict_mistakes(gvk: &Gvk, json: &[u8]) -> Vec<String> {
    search(json, registry().root(gvk))
}

fn search(json: &[u8], root: Option<TypeRef>) -> Vec<String> {
    let mut search = Search::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    match Walk(&mut search, root).deserialize(&mut deserializer) {
        Ok(()) => search.found.into_vec(),
        Err(_) => Vec::new(),
    }
}

#[derive(Default)]
struct Search {
    path: String,
    found: MessageList,
    seen: HashSet<String>,
}

impl Search {
    /// Records a mistake at the current path.
    fn record(&mut self, mistake: &str) {
        if self.found.is_full() {
            // The text is not needed.
            self.found.push(String::new());
            return;
        }
        let text = format!("{mistake} field \"{}\"", self.path);
        if self.seen.insert(text.clone()) {
            self.found.push(text);
        }
    }
}

/// Traverses a value, with its type if fields must be known.
struct Walk<'a>(&'a mut Search, Option<TypeRef>);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(search, kind) = self;
        let length = search.path.len();
        let has_fields = |kind: &TypeRef| matches!(kind.shape(), Shape::Object | Shape::Map);
        let kind = kind.filter(has_fields);
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if length > 0 {
                search.path.push('.');
            }
            search.path.push_str(&name);
            let inner = kind.map(|kind| kind.field(&name));
            let mistake = match inner {
                Some(None) => Some("unknown"),
                _ => (!seen.insert(name)).then_some("duplicate"),
            };
            match mistake {
                None => map.next_value_seed(Walk(search, inner.flatten()))?,
                Some(mistake) => {
                    search.record(mistake);
                    map.next_value::<IgnoredAny>()?;
                }
            }
            search.path.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self(search, kind) = self;
        let inner = kind.and_then(|kind| kind.items());
        let length = search.path.len();
        for index in 0_usize.. {
            search.path.push_str(&format!("[{index}]"));
            let item = items.next_element_seed(Walk(search, inner))?;
            search.path.truncate(length);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::Gvk;

    use super::{duplicate_fields, strict_mistakes};

    #[test]
    fn unknown_fields_are_reported_in_text_order() {
        let json =
            br#"{"x": 1, "metadata": {"labels": {"a": "b", "a": "c"}}, "spec": {"y": {"z": 1,
            "z": 1}, "replicas": 2, "replicas": 3, "y": 2, "template": {"spec": {"containers":
            [{"name": "a", "w": 1, "env": [{"v": 1}]}]}}}}"#;
        assert_eq!(
            strict_mistakes(&Gvk::from_api_version("apps/v1", "Deployment"), json),
            [
                r#"unknown field "x""#,
                r#"duplicate field "metadata.labels.a""#,
                r#"unknown field "spec.y""#,
                r#"duplicate field "spec.replicas""#,
                r#"unknown field "spec.template.spec.containers[0].w""#,
                r#"unknown field "spec.template.spec.containers[0].env[0].v""#,
            ]
        );
    }

    #[test]
    fn duplicates_are_reported_by_path() {
        let json = br#"{"spec": {"a": 1, "b": null, "a": {"c": 1, "c": 2}},
            "list": [1.5, -1, "x", true, {"d": 1, "e": {"d": 1}, "d": 1}], "spec": 1}"#;
        assert_eq!(
            duplicate_fields(json),
            [
                r#"duplicate field "spec.a""#,
                r#"duplicate field "list[4].d""#,
                r#"duplicate field "spec""#,
            ]
        );
    }

    #[test]
    fn invalid_json_has_no_duplicates() {
        let deep = "[".repeat(100_000);
        for text in ["", "{\"a\":1,\"a\":", "nonsense", &deep] {
            assert!(duplicate_fields(text.as_bytes()).is_empty());
        }
    }
}
