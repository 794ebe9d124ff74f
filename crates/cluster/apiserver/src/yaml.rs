//! Parses YAML and finds duplicate fields in its text.

use std::{collections::HashSet, fmt};

use longshore_engine::NESTING;
use longshore_model::{text::nesting, yaml};
use longshore_schema::parse;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Returns true if a media type is YAML.
pub(crate) fn is_named(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/yaml" | "application/x-yaml" | "text/yaml"
    )
}

/// Parses YAML, which includes JSON, and finds fields that a map repeats, with the message of
/// Kubernetes: `line 3: key "a" already set in map`. The line is the line of the value.
pub(crate) fn read(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    match parse(body) {
        Ok((value, duplicate_fields)) if duplicate_fields.is_empty() => {
            return Ok((value, duplicate_fields));
        }
        Ok((value, _)) => return Ok((value, duplicates(body))),
        Err(_) => {}
    }
    if nesting(body) > yaml::DEPTH {
        return Err(format!(
            "error converting YAML to JSON: exceeded max depth: objects may be nested {NESTING} levels deep"
        ));
    }
    yaml::check(body).map_err(|error| format!("error converting YAML to JSON: yaml: {error}"))?;
    let value = serde_yaml_ng::from_slice(body)
        .map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    Ok((value, duplicates(body)))
}

/// Maximum number of duplicate fields that are reported. Each one requires
/// another pass over the text.
const MAX_DUPLICATES: usize = 16;

fn duplicates(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    while found.len() < MAX_DUPLICATES
        && let Some(next) = duplicate(body, found.len())
    {
        found.push(next);
    }
    found
}

/// Returns the first duplicate after `skipped` ones. The parser provides line
/// numbers only in errors, so the visitor returns an error at the duplicate.
fn duplicate(body: &[u8], skipped: usize) -> Option<String> {
    yaml::check(body).ok()?;
    let mut search = Search {
        skipped,
        found: None,
    };
    let document = serde_yaml_ng::Deserializer::from_slice(body);
    let walk = Walk {
        search: &mut search,
        named_before: None,
    };
    let error = walk.deserialize(document).err()?;
    let line = error.location()?.line();
    let name = search.found?;
    Some(format!("line {line}: key {name:?} already set in map"))
}

struct Search {
    /// Number of duplicates that are still to be skipped.
    skipped: usize,
    found: Option<String>,
}

/// Visits one value.
struct Walk<'a> {
    search: &'a mut Search,
    /// The key of the value, if the map already has it.
    named_before: Option<String>,
}

impl Walk<'_> {
    /// Called at the end of a value: duplicates inside it come first.
    fn end<E: serde::de::Error>(self) -> Result<(), E> {
        let Some(name) = self.named_before else {
            return Ok(());
        };
        if self.search.skipped > 0 {
            self.search.skipped -= 1;
            return Ok(());
        }
        self.search.found = Some(name);
        Err(E::custom("named twice"))
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let before = seen.contains(&name);
            map.next_value_seed(Walk {
                search: &mut *self.search,
                named_before: before.then(|| name.clone()),
            })?;
            seen.insert(name);
        }
        self.end()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut more = true;
        while more {
            let item = items.next_element_seed(Walk {
                search: &mut *self.search,
                named_before: None,
            })?;
            more = item.is_some();
        }
        self.end()
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.end()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.end()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.end()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.end()
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.end()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.end()
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.end()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::duplicates;

    #[test]
    fn rule_14_duplicate_fields_are_reported_with_the_line_of_their_value() {
        let yaml =
            b"a: 1\nb:\n  c: x\n  d: [{e: 1, e: null}]\n  c:\n    f: 1\n    f: 2\na:\n  true\n";
        assert_eq!(
            duplicates(yaml),
            [
                r#"line 4: key "e" already set in map"#,
                r#"line 7: key "f" already set in map"#,
                r#"line 6: key "c" already set in map"#,
                r#"line 9: key "a" already set in map"#,
            ]
        );
        let json = b"{\"a\": 1, \"b\": {\"c\": [],\n\"c\": 1.5},\n\"a\": {}}";
        assert_eq!(
            duplicates(json),
            [
                r#"line 2: key "c" already set in map"#,
                r#"line 3: key "a" already set in map"#,
            ]
        );
    }

    #[test]
    fn invalid_yaml_is_rejected() {
        let deep = "[".repeat(100_000);
        for text in ["", "a: 1\nb: 2\n", "{\"a\":1,\"a\":", "a: [", "text", &deep] {
            assert!(duplicates(text.as_bytes()).is_empty(), "{text:.20}");
        }
    }

    #[test]
    fn an_alias_bomb_is_rejected_before_it_expands() {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for i in 1..300 {
            let before = format!("*a{},", i - 1).repeat(10);
            text += &format!("a{i}: &a{i} [{before}]\n");
        }
        let error = super::read(text.as_bytes()).unwrap_err();
        assert!(error.contains("excessive aliasing"), "{error}");
        assert!(duplicates(text.as_bytes()).is_empty());
        let small = super::read(b"a: &a {b: 1}\nc: [*a, *a]\n").unwrap();
        assert_eq!(small.0["c"][1]["b"], 1);
    }

    #[test]
    fn the_number_of_reported_duplicates_is_limited() {
        let text = "a: 1\n".repeat(1000);
        assert_eq!(duplicates(text.as_bytes()).len(), super::MAX_DUPLICATES);
    }
}
