//! Fields that JSON text names twice in one object. They are lost when it is
//! parsed into a `Value`, so they are looked for in the text.

use std::{collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The fields that come twice in an object of the JSON text, worded as API
/// servers word them: `duplicate field "spec.foo"`. What is not JSON has none:
/// its parser says so.
pub(crate) fn duplicate_fields(json: &[u8]) -> Vec<String> {
    let mut search = Search::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    match Walk(&mut search).deserialize(&mut deserializer) {
        Ok(()) => search.found,
        Err(_) => Vec::new(),
    }
}

#[derive(Default)]
struct Search {
    path: String,
    found: Vec<String>,
}

/// Goes through one value.
struct Walk<'a>(&'a mut Search);

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
        let Self(search) = self;
        let length = search.path.len();
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if length > 0 {
                search.path.push('.');
            }
            search.path.push_str(&name);
            if seen.insert(name) {
                map.next_value_seed(Walk(search))?;
            } else {
                search
                    .found
                    .push(format!("duplicate field \"{}\"", search.path));
                map.next_value::<IgnoredAny>()?;
            }
            search.path.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self(search) = self;
        let length = search.path.len();
        for index in 0_usize.. {
            search.path.push_str(&format!("[{index}]"));
            let item = items.next_element_seed(Walk(search))?;
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
    use super::duplicate_fields;

    #[test]
    fn duplicates_are_named_by_path() {
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
    fn what_is_no_json_has_none() {
        let deep = "[".repeat(100_000);
        for text in ["", "{\"a\":1,\"a\":", "nonsense", &deep] {
            assert!(duplicate_fields(text.as_bytes()).is_empty());
        }
    }
}
