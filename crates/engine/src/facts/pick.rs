//! Reads of an object's text only what its selectable fields are made of.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::Facts;

impl Facts {
    /// The object, as far as [`Facts::extract`] looks at it.
    pub(crate) fn pick(&self, text: &[u8]) -> Result<Map<String, Value>, String> {
        if self.fields.is_empty() {
            return Ok(Map::new());
        }
        let seed = Pick {
            facts: self,
            inside: None,
        };
        seed.deserialize(&mut serde_json::Deserializer::from_slice(text))
            .map_err(|error| error.to_string())
    }

    fn reads(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().flat_map(|path| match *path {
            "status.successful" => ["status.succeeded", ""],
            "source" => ["source.component", "reportingComponent"],
            path => [path, ""],
        })
    }

    /// Whether a member is read: of the object, or of one of its members.
    fn looks_at(&self, inside: Option<&str>, name: &str) -> Look {
        let mut look = Look::Away;
        for path in self.reads() {
            let rest = match inside {
                None => Some(path),
                Some(outer) => path
                    .strip_prefix(outer)
                    .and_then(|rest| rest.strip_prefix('.')),
            };
            match rest.and_then(|rest| rest.strip_prefix(name)) {
                Some("") => return Look::Whole,
                Some(rest) if rest.starts_with('.') => look = Look::Inside,
                _ => {}
            }
        }
        look
    }
}

enum Look {
    Away,
    Inside,
    Whole,
}

struct Pick<'a> {
    facts: &'a Facts,
    /// The member of the object this is about.
    inside: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Map::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut picked = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = match self.facts.looks_at(self.inside, &name) {
                Look::Away => {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
                Look::Whole => members.next_value()?,
                Look::Inside => {
                    let seed = Pick {
                        facts: self.facts,
                        inside: Some(&name),
                    };
                    members.next_value_seed(seed)?.into()
                }
            };
            picked.insert(name, value);
        }
        Ok(picked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use crate::facts;

    #[test]
    fn what_is_picked_says_as_much_as_the_whole() {
        let object = json!({
            "metadata": {"name": "a"},
            "spec": {"nodeName": "n", "hostNetwork": true, "containers": [{"name": "c"}], "unschedulable": true, "clusterIP": "1.2.3.4"},
            "status": {"phase": "Running", "podIPs": [{"ip": "1.1.1.1"}], "succeeded": 3, "replicas": 4, "conditions": []},
            "involvedObject": {"kind": "Pod", "name": "p", "x": {}},
            "source": {"component": "", "host": "h"},
            "reportingComponent": "r", "reason": "why", "type": "Normal", "data": {"a": "b"},
        });
        let text = object.to_string();
        for row in facts::table::TABLE {
            let picked = row.pick(text.as_bytes()).unwrap();
            assert_eq!(
                row.extract(&picked),
                row.extract(object.as_object().unwrap()),
                "{}",
                row.kind
            );
            assert!(!picked.contains_key("data") && !picked.contains_key("metadata"));
        }
        let facts = facts::of("", "Pod");
        assert!(facts.pick(br#"{"spec": null}"#).is_ok());
        let pod = facts.pick(text.as_bytes()).unwrap();
        assert_eq!(pod["spec"], json!({"nodeName": "n", "hostNetwork": true}));
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "[]", "{", "{\"spec\": 1}"] {
            assert!(
                facts::of("", "Pod").pick(text.as_bytes()).is_err(),
                "{text}"
            );
        }
    }
}
