//! Decodes only the parts of an object's JSON that its selectable fields need.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::KindRules;

impl KindRules {
    /// The parts of the object that [`KindRules::extract`] reads.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn decode_selectable(&self, text: &[u8]) -> Result<Map<String, Value>, String> {
        if self.fields.is_empty() {
            return Ok(Map::new());
        }
        let seed = SelectableDecoder {
            rules: self,
            inside: None,
        };
        seed.deserialize(&mut serde_json::Deserializer::from_slice(text))
            .map_err(|error| error.to_string())
    }

    fn paths_read(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().flat_map(|path| match *path {
            "status.successful" => ["status.succeeded", ""],
            "source" => ["source.component", "reportingComponent"],
            path => [path, ""],
        })
    }

    /// Decides which part of a member is needed. The member belongs to the object, or to the
    /// object's member `inside`.
    fn coverage_of(&self, inside: Option<&str>, name: &str) -> Coverage {
        let mut look = Coverage::Ignored;
        for path in self.paths_read() {
            let rest = match inside {
                None => Some(path),
                Some(outer) => path
                    .strip_prefix(outer)
                    .and_then(|rest| rest.strip_prefix('.')),
            };
            match rest.and_then(|rest| rest.strip_prefix(name)) {
                Some("") => return Coverage::Whole,
                Some(rest) if rest.starts_with('.') => look = Coverage::Partial,
                _ => {}
            }
        }
        look
    }
}

enum Coverage {
    Ignored,
    Partial,
    Whole,
}

struct SelectableDecoder<'a> {
    rules: &'a KindRules,
    /// The member of the object that is being decoded.
    inside: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for SelectableDecoder<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SelectableDecoder<'_> {
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
            let value = match self.rules.coverage_of(self.inside, &name) {
                Coverage::Ignored => {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
                Coverage::Whole => members.next_value()?,
                Coverage::Partial => {
                    let seed = SelectableDecoder {
                        rules: self.rules,
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

    use crate::kinds;

    #[test]
    fn partial_decoding_yields_the_same_fields() {
        let object = json!({
            "metadata": {"name": "a"},
            "spec": {"nodeName": "n", "hostNetwork": true, "containers": [{"name": "c"}], "unschedulable": true, "clusterIP": "1.2.3.4"},
            "status": {"phase": "Running", "podIPs": [{"ip": "1.1.1.1"}], "succeeded": 3, "replicas": 4, "conditions": []},
            "involvedObject": {"kind": "Pod", "name": "p", "x": {}},
            "source": {"component": "", "host": "h"},
            "reportingComponent": "r", "reason": "why", "type": "Normal", "data": {"a": "b"},
        });
        let text = object.to_string();
        for row in kinds::all() {
            let picked = row.decode_selectable(text.as_bytes()).unwrap();
            assert_eq!(
                row.extract(&picked),
                row.extract(object.as_object().unwrap()),
                "{}",
                row.kind
            );
            assert!(!picked.contains_key("data") && !picked.contains_key("metadata"));
        }
        let pod = kinds::find("", "Pod").unwrap();
        assert!(pod.decode_selectable(br#"{"spec": null}"#).is_ok());
        let pod = pod.decode_selectable(text.as_bytes()).unwrap();
        assert_eq!(pod["spec"], json!({"nodeName": "n", "hostNetwork": true}));
    }

    #[test]
    fn values_that_are_not_objects_are_rejected() {
        for text in ["", "[]", "{", "{\"spec\": 1}"] {
            assert!(
                kinds::find("", "Pod")
                    .unwrap()
                    .decode_selectable(text.as_bytes())
                    .is_err(),
                "{text}"
            );
        }
    }
}
